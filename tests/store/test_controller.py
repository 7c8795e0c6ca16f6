"""The mark controller: what its cycles write, when they lose a race, and how it scales streams."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, update
from tests.store.noting import SCHEMA, is_scheduled, marks_of, note, say_goodbye

from tidegate.marks.cut import Cut
from tidegate.marks.mark import Mark
from tidegate.store import Scaling, Store
from tidegate.store.catalog import leases, marks, streams
from tidegate.store.catalog.schema import segments, writers
from tidegate.store.controller import INTERVAL, MarkController, run_due_cycle
from tidegate.store.mark_cycle import (
    EMBEDDED_INTERVAL,
    EmbeddedMarks,
    Lease,
    run_cycle,
    run_useful_cycle,
)
from tidegate.testing import ManualClock


@pytest.fixture
def orders(store: Store) -> Store:
    store.create_stream("orders", SCHEMA, segments=2, mark_timeout=timedelta(seconds=30))
    return store


def test_a_mark_waits_for_every_known_writer_and_then_combines_them(orders: Store) -> None:
    controller = MarkController(orders, "c")
    note(orders, "orders", "east", None)
    note(orders, "orders", "west", 100, s0_e0=7)
    assert controller.cycle() == {}
    note(orders, "orders", "east", 105, s1_e0=3)
    both = Mark(100, 105, Cut({"0.e0": 7, "1.e0": 3}), frozenset({"east", "west"}))
    assert controller.cycle() == {"orders": both}
    assert controller.cycle() == {}
    assert marks_of(orders, "orders") == [both]


def test_a_silent_writer_is_dropped_its_row_stays_and_its_next_note_brings_it_back(
    orders: Store, clock: ManualClock
) -> None:
    controller = MarkController(orders, "c")
    note(orders, "orders", "slow", 100, s0_e0=7)
    note(orders, "orders", "fast", 100, s0_e0=7)
    controller.cycle()
    note(orders, "orders", "fast", 200, s0_e0=9)
    assert controller.cycle() == {}
    clock.advance(timedelta(seconds=30))
    assert controller.cycle()["orders"].writers == {"fast"}
    stays = select(writers.c.sequence).where(writers.c.name == "slow")
    assert orders.database.read(lambda on: on.execute(stays).scalar_one()) == 0
    note(orders, "orders", "slow", 300, s0_e0=11)
    note(orders, "orders", "fast", 300, s0_e0=11)
    assert controller.cycle()["orders"].writers == {"fast", "slow"}


def test_a_stream_without_writers_leaves_the_schedule_until_the_next_note(
    orders: Store, clock: ManualClock
) -> None:
    controller = MarkController(orders, "c")
    note(orders, "orders", "w", 100, s0_e0=7)
    controller.cycle()
    say_goodbye(orders, "orders", "w")
    controller.cycle()
    assert not is_scheduled(orders, "orders")
    note(orders, "orders", "w", 200, s0_e0=8)
    assert list(controller.cycle()) == ["orders"]
    assert is_scheduled(orders, "orders")


def test_streams_that_come_and_go_are_picked_up_within_a_cycle(orders: Store) -> None:
    controller = MarkController(orders, "c")
    controller.cycle()
    orders.create_stream("late", SCHEMA)
    note(orders, "late", "w", 5, s0_e0=1)
    note(orders, "orders", "w", 5, s0_e0=1)
    assert sorted(controller.cycle()) == ["late", "orders"]
    orders.delete_stream("late")
    note(orders, "orders", "w", 6, s0_e0=1)
    assert list(controller.cycle()) == ["orders"]


def test_a_lost_race_changes_nothing(orders: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    note(orders, "orders", "w", 100, s0_e0=7)
    note(orders, "orders", "gone", None)
    say_goodbye(orders, "orders", "gone")
    orders.database.write(leases.ensure)
    bucket = streams.bucket_of("orders")
    token = orders.database.write(lambda on: leases.take(on, "me", [bucket], 0, 10**18))[bucket]
    lease = Lease("me", bucket, token)
    before = orders.database.read(lambda on: marks.schedule(on, "orders"))
    assert run_cycle(orders, "orders", lease) is not None
    after = orders.database.read(lambda on: marks.schedule(on, "orders"))
    with monkeypatch.context() as patched:
        # Another one read the same facts, and comes to write them a moment later.
        patched.setattr(marks, "schedule", lambda *_: before)
        assert run_cycle(orders, "orders", lease) is None
    assert orders.database.read(lambda on: marks.schedule(on, "orders")) == after
    assert len(marks_of(orders, "orders")) == 1


def test_a_mark_is_appended_only_after_the_number_that_was_last(orders: Store) -> None:
    found, mark = orders.describe("orders").id, Mark(1, 1, Cut({"0.e0": 0, "1.e0": 0}))

    def append(after: int) -> bool:
        return orders.database.write(lambda on: marks.append(on, found, mark, after=after, now=0))

    assert [append(0), append(-1), append(-1), append(0)] == [False, True, False, True]
    assert orders.database.read(lambda on: marks.last(on, found)) == (1, mark)


def test_the_first_mark_can_be_delayed(orders: Store, clock: ManualClock) -> None:
    controller = MarkController(orders, "c", first_mark_delay=timedelta(seconds=5))
    note(orders, "orders", "w", 100, s0_e0=7)
    assert controller.cycle() == {}
    clock.advance(timedelta(seconds=5))
    assert list(controller.cycle()) == ["orders"]
    note(orders, "orders", "w", 101, s0_e0=7)
    assert list(controller.cycle()) == ["orders"]


def test_without_a_controller_those_who_note_run_a_cycle_once_per_interval(
    orders: Store, clock: ManualClock
) -> None:
    embedded = EmbeddedMarks(orders)
    for time in (1, 2):
        note(orders, "orders", "w", time, s0_e0=time)
        embedded.noted("orders")
    assert [mark.lower for mark in marks_of(orders, "orders")] == [1]
    clock.advance(EMBEDDED_INTERVAL)
    embedded.noted("orders")
    assert [mark.lower for mark in marks_of(orders, "orders")] == [1, 2]
    assert run_due_cycle(orders, "orders") is None
    assert run_due_cycle(orders, "nowhere") is None


def test_whoever_plans_has_the_mark_of_every_note_at_once(orders: Store) -> None:
    noting, planning = EmbeddedMarks(orders), EmbeddedMarks(orders)
    for time in (1, 2, 3):  # all in one interval
        note(orders, "orders", "w", time, s0_e0=time)
        noting.noted("orders")
        planning.planned("orders")
        assert [mark.lower for mark in marks_of(orders, "orders")][-1] == time


def test_a_cycle_that_would_change_nothing_is_not_run(orders: Store, clock: ManualClock) -> None:
    planning = EmbeddedMarks(orders)
    planning.planned("orders")  # nobody has ever noted
    assert run_useful_cycle(orders, "nowhere") is None
    note(orders, "orders", "w", 1, s0_e0=1)
    assert run_useful_cycle(orders, "orders") is not None
    assert run_useful_cycle(orders, "orders") is not None  # now the writer is behind its own mark
    clock.advance(EMBEDDED_INTERVAL)
    assert run_useful_cycle(orders, "orders") is None
    say_goodbye(orders, "orders", "w")
    planning.planned("orders")
    assert not is_scheduled(orders, "orders")


def test_whoever_plans_drops_a_writer_that_is_silent(orders: Store, clock: ManualClock) -> None:
    planning = EmbeddedMarks(orders)
    note(orders, "orders", "w", 1, s0_e0=1)
    note(orders, "orders", "silent", None)
    planning.planned("orders")
    assert marks_of(orders, "orders") == []
    clock.advance(timedelta(seconds=30))
    planning.planned("orders")
    assert [mark.lower for mark in marks_of(orders, "orders")] == [1]


def test_a_due_cycle_is_left_to_the_controller_that_holds_the_bucket(
    orders: Store, clock: ManualClock
) -> None:
    controller = MarkController(orders, "c")
    controller.cycle()
    note(orders, "orders", "w", 1, s0_e0=1)
    assert run_due_cycle(orders, "orders") is None
    controller.retire()
    assert run_due_cycle(orders, "orders") is not None
    controller.balance()
    assert len(controller.tokens) == streams.BUCKETS


def test_a_busy_segment_is_split_and_quiet_neighbours_are_merged(
    tmp_path: Path, clock: ManualClock
) -> None:
    with Store.open(tmp_path, clock=clock.now) as store:
        policy = Scaling(target_rows=100, minimum=2)
        store.create_stream("s", SCHEMA, segments=2, scaling=policy)
        controller = MarkController(store, "c", scale_interval=timedelta(seconds=10))

        def grow(**rows: int) -> None:
            def work(on: Connection) -> None:
                for number, count in rows.items():
                    moved = update(segments).where(segments.c.number == int(number[1:]))
                    on.execute(moved.values(next_offset=segments.c.next_offset + count))

            store.database.write(work)
            clock.advance(timedelta(seconds=10))
            controller.cycle()

        def shape() -> list[str]:
            return [r.name for r in store.segments("s") if r.segment.is_open]

        grow()
        grow(n0=2_000, n1=500)
        assert shape() == ["0.e0", "1.e0"]
        grow(n0=2_001, n1=500)
        assert shape() == ["1.e0", "2.e1", "3.e1"]
        grow(n1=499, n2=500, n3=499)
        assert shape() == ["1.e0", "2.e1", "3.e1"]
        grow(n1=600, n2=499, n3=499)
        assert shape() == ["1.e0", "4.e2"]
        grow()
        grow()
        assert shape() == ["1.e0", "4.e2"]


def test_maintenance_runs_on_its_own_interval(
    orders: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(orders, "maintain", lambda: calls.append(clock.now()), raising=False)
    controller = MarkController(orders, "c", maintain_interval=timedelta(seconds=60))
    for _ in range(4):
        controller.cycle()
        clock.advance(timedelta(seconds=30))
    assert len(calls) == 2


def test_a_thousand_writers_are_combined_in_one_cycle(orders: Store) -> None:
    names = [f"w{i:04}" for i in range(1_000)]
    for place, name in enumerate(names[:3]):
        note(orders, "orders", name, 1_000 + place, s0_e0=place)
    template = select(writers).where(writers.c.name == names[0])

    def fill(on: Connection) -> None:
        row = on.execute(template).one()._mapping
        others = [
            {
                **row,
                "name": name,
                "notes": row["notes"]
                .replace(names[0], name)
                .replace('"time": 1000', f'"time": {1_000 + place}')
                .replace('"0.e0": 0', f'"0.e0": {place}'),
            }
            for place, name in enumerate(names)
            if place >= 3
        ]
        on.execute(writers.insert(), others)

    orders.database.write(fill)
    mark = MarkController(orders, "c").cycle()["orders"]
    assert (mark.lower, mark.upper, mark.cut["0.e0"]) == (1_000, 1_999, 999)
    assert mark.writers == set(names)


def test_a_running_controller_stops_when_told_and_gives_its_leases_back(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.create_stream("orders", SCHEMA)
        note(store, "orders", "w", 1, s0_e0=1)
        controller = MarkController(store, "c", interval=timedelta(milliseconds=1))
        stop = threading.Event()
        thread = threading.Thread(target=controller.run, args=(stop,))
        thread.start()
        while not marks_of(store, "orders"):
            stop.wait(0.001)
        stop.set()
        thread.join()
        assert set(store.database.read(leases.owners).values()) == {None}


def test_the_command_runs_cycles_and_stops_on_sigterm(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.create_stream("orders", SCHEMA)
        note(store, "orders", "w", 1, s0_e0=1)
        command = [sys.executable, "-m", "tidegate", "controller", str(tmp_path)]
        process = subprocess.Popen(
            [*command, "--interval", "10ms"], stdout=subprocess.PIPE, text=True
        )
        waited = threading.Event()
        while not marks_of(store, "orders") and process.poll() is None:
            waited.wait(0.02)
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "leases are given back" in told
        assert len(marks_of(store, "orders")) == 1
        assert set(store.database.read(leases.owners).values()) == {None}


def test_the_default_lease_outlives_several_cycles(open_store: Callable[..., Store]) -> None:
    controller = MarkController(open_store(), "c")
    assert controller.lease >= 5 * INTERVAL
