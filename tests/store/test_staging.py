"""Staging: files written by tasks appear together, in the order given, or not at all."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from tests.store.rows import create, table
from tests.store.test_writer import code_of, intents_left
from tests.store.visible import all_of, visible

from tidegate.store import Store
from tidegate.store.catalog.chunks import Ranges, SegmentSealed
from tidegate.store.staging import LIFE, Staged, discard, publish_staged, reroute, stage
from tidegate.store.sweep import sweep
from tidegate.testing import ManualClock


def publish(store: Store, staged: Sequence[Staged]) -> tuple[Ranges, int]:
    """As a driver does it; also how often segments were found sealed."""
    held, rerouted = list(staged), 0
    while True:
        try:
            found = store.database.write(_publishing(store, held))
        except SegmentSealed as sealed:
            held, rerouted = reroute(store, held, sealed), rerouted + 1
            continue
        return found, rerouted


def _publishing(store: Store, staged: Sequence[Staged]) -> Callable[[Connection], Ranges]:
    return lambda on: publish_staged(on, store, staged, store.clock())


def travelled(staged: Staged) -> Staged:
    """What the driver gets of what a task has sent."""
    found: Staged = pickle.loads(pickle.dumps(staged))
    return found


def in_order(store: Store, stream: str) -> bool:
    """Whether the rows of every segment are in the order of their numbers."""
    parts = [[row["n"] for row in rows] for rows in visible(store, stream).values()]
    return all(part == sorted(part) for part in parts)


def test_nothing_is_visible_before_and_all_of_it_after(store: Store) -> None:
    create(store, "orders", segments=4)
    staged = [travelled(stage(store, "orders", table(range(n, n + 50)), "job")) for n in (0, 50)]
    assert [one.rows for one in staged] == [50, 50]
    assert [one.max_time for one in staged] == [49, 99]
    assert all_of(store, "orders", "n") == []
    ranges, _ = publish(store, staged)
    assert sorted(all_of(store, "orders", "n")) == list(range(100))
    assert in_order(store, "orders")
    assert sum(end - start for start, end in ranges.values()) == 100
    assert intents_left(store) == 0


def test_without_a_routing_key_the_place_chooses_the_segment(store: Store) -> None:
    store.create_stream("plain", pa.schema([("n", pa.int64())]), segments=4)
    places = [f"task {n}" for n in range(16)]
    staged = [stage(store, "plain", [{"n": n}], place) for n, place in enumerate(places)]
    assert len({one.good.pieces[0].segment for one in staged}) > 1
    again = [stage(store, "plain", [{"n": n}], place) for n, place in enumerate(places)]
    assert [a.good.pieces[0].segment for a in again] == [b.good.pieces[0].segment for b in staged]
    publish(store, staged)
    assert sorted(all_of(store, "plain", "n")) == list(range(16))


def test_rows_without_any_are_a_lot_without_files(store: Store) -> None:
    create(store, "orders")
    empty = travelled(stage(store, "orders", table([]), "job"))
    assert (empty.rows, empty.max_time, empty.good.pieces) == (0, None, ())
    assert publish(store, [empty])[0] == publish(store, [])[0] == {}
    assert list(store.files.list()) == []


_CHANGES: list[Any] = [
    lambda store: store.split("orders", "0.e0", 3),
    lambda store: store.merge("orders", "0.e0", "1.e0"),
    lambda store: store.scale("orders", [f"{n}.e0" for n in range(4)], [(0, 1)]),
    lambda store: (store.split("orders", "1.e0"), store.merge("orders", "4.e1", "5.e1")),
]


@pytest.mark.parametrize("change", _CHANGES, ids=["split", "merge", "all into one", "and back"])
def test_a_scale_in_between_keeps_the_order_of_every_segment(
    change: Any, store: Store, clock: ManualClock
) -> None:
    create(store, "orders", segments=4)
    before = [stage(store, "orders", table(range(n, n + 40), keys=16), "job") for n in (0, 40)]
    change(store)
    after = stage(store, "orders", table(range(80, 120), keys=16), "job")
    _, rerouted = publish(store, [travelled(one) for one in (*before, after)])
    assert rerouted == 1
    assert sorted(all_of(store, "orders", "n")) == list(range(120))
    assert in_order(store, "orders")
    moved = intents_left(store)  # the first files, until their time is over
    clock.advance(LIFE)
    assert sweep(store).orphans == moved > 0
    assert sorted(all_of(store, "orders", "n")) == list(range(120))


def test_every_row_is_published_once_when_a_later_task_saw_the_scale_first(store: Store) -> None:
    create(store, "orders", segments=2)
    old = stage(store, "orders", table(range(40, 80)), "job")
    store.merge("orders", "0.e0", "1.e0")
    new = stage(store, "orders", table(range(40)), "job")
    publish(store, [new, old])
    assert all_of(store, "orders", "n") == list(range(80))


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_scales_between_tasks_and_tries_lose_and_reorder_nothing(
    data: st.DataObject, store: Store
) -> None:
    name = f"s{len(store.list_streams())}"
    create(store, name, segments=data.draw(st.integers(1, 4), label="segments"))

    def scale() -> None:
        here = [s for s in store.segments(name) if s.segment.is_open]
        at = data.draw(st.integers(0, len(here) - 1), label="at")
        if len(here) > 1 and data.draw(st.booleans(), label="merge"):
            ordered = sorted(here, key=lambda record: record.segment.low)
            at = min(at, len(ordered) - 2)
            store.merge(name, ordered[at].name, ordered[at + 1].name)
        else:
            store.split(name, here[at].name)

    sizes = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=4), label="sizes")
    staged, first = [], 0
    for size in sizes:
        staged.append(travelled(stage(store, name, table(range(first, first + size)), "job")))
        first += size
        if data.draw(st.booleans(), label="scale"):
            scale()
    while True:
        try:
            store.database.write(_publishing(store, staged))
            break
        except SegmentSealed as sealed:
            staged = reroute(store, staged, sealed)
            if data.draw(st.booleans(), label="scale again"):
                scale()
    assert sorted(all_of(store, name, "n")) == list(range(first))
    assert in_order(store, name)


def test_bad_rows_are_routed_once_with_their_reasons(store: Store) -> None:
    create(store, "orders", segments=2)
    rows = [{"key": n, "n": n, "at": n if n % 3 else None} for n in range(9)]
    rows = [{**row, "at": None if row["at"] is None else _at(row["at"])} for row in rows]
    staged = travelled(stage(store, "orders", rows, "job", bad_rows="route", writer="shop"))
    assert (staged.rows, dict(staged.reasons)) == (6, {"missing": 3})
    assert all_of(store, "orders.errors", "reason") == []
    store.split("orders", "0.e0")
    store.split("orders.errors", "0.e0")
    ranges, rerouted = publish(store, [staged])
    assert rerouted == 2
    assert sorted(all_of(store, "orders", "n")) == [1, 2, 4, 5, 7, 8]
    assert all_of(store, "orders.errors", "writer") == ["shop"] * 3
    assert {name.split(".")[0] for name in ranges} <= {"1", "2", "3"}


def _at(number: int) -> Any:
    return pa.scalar(number, pa.timestamp("us", tz="UTC")).as_py()


def test_bad_rows_are_refused_and_nothing_is_written(store: Store) -> None:
    create(store, "orders")
    rows = [{"key": 1, "n": 1}]
    assert code_of(lambda: stage(store, "orders", rows, "job")) == "rows-refused"
    assert intents_left(store) == 0
    assert list(store.files.list()) == []


def test_what_is_discarded_is_gone_and_what_was_published_stays(store: Store) -> None:
    create(store, "orders", segments=2)
    kept, unwanted = (stage(store, "orders", table(range(20)), "job") for _ in range(2))
    publish(store, [kept])
    discard(store, [kept, unwanted])
    assert sorted(all_of(store, "orders", "n")) == list(range(20))
    assert len(list(store.files.list())) == len(kept.good.pieces)
    assert code_of(lambda: publish(store, [unwanted])) == "upload-expired"


def test_a_second_publishing_is_refused(store: Store) -> None:
    create(store, "orders")
    staged = [stage(store, "orders", table(range(5)), "job")]
    publish(store, staged)
    assert code_of(lambda: publish(store, staged)) == "upload-expired"
    assert all_of(store, "orders", "n") == list(range(5))


def test_staged_files_outlive_a_long_job_and_not_for_ever(store: Store, clock: ManualClock) -> None:
    create(store, "orders")
    staged = [stage(store, "orders", table(range(5)), "job") for _ in range(2)]
    clock.advance(LIFE - timedelta(seconds=1))
    assert sweep(store).orphans == 0
    publish(store, staged[:1])
    clock.advance(timedelta(seconds=1))
    assert sweep(store).orphans == 1
    assert code_of(lambda: publish(store, staged[1:])) == "upload-expired"


def test_a_stream_that_was_replaced_takes_none_of_it(store: Store, clock: ManualClock) -> None:
    create(store, "orders")
    staged = [stage(store, "orders", table(range(5)), "job")]
    store.delete_stream("orders")
    clock.advance(timedelta(seconds=1))
    create(store, "orders")
    assert code_of(lambda: publish(store, staged)) == "stream-replaced"
    assert all_of(store, "orders", "n") == []


def test_files_that_only_the_task_can_see_are_not_published(store: Store) -> None:
    create(store, "orders")
    staged = [stage(store, "orders", table(range(5)), "job")]
    for path in list(store.files.list()):
        store.files.delete(path)
    assert code_of(lambda: publish(store, staged)) == "staged-files-missing"
    assert [s.end for s in store.segments("orders")] == [0]


def test_several_streams_go_in_one_transaction_of_the_caller(store: Store) -> None:
    create(store, "orders")
    create(store, "late")
    staged = [stage(store, name, table(range(5)), "job") for name in ("late", "orders")]

    def work(on: Connection) -> Ranges:
        return publish_staged(on, store, staged, store.clock())

    assert store.database.write(work) == {"0.e0": (0, 5)}
    assert all_of(store, "orders", "n") == all_of(store, "late", "n") == list(range(5))
