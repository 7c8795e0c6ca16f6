"""Readers of a group share segments evenly, take over from each other, and fence each other."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.store.rows import create, drain, table, write

from tidegate.errors import ConflictError, InputError
from tidegate.marks.window import TimeWindow
from tidegate.store import Store
from tidegate.store.group import EXPIRY
from tidegate.store.mark_cycle import EMBEDDED_INTERVAL
from tidegate.testing import ManualClock


@pytest.fixture
def orders(store: Store) -> Store:
    create(store, "orders", segments=4)
    write(store, "orders", range(40))
    return store


def test_segments_are_shared_evenly_as_readers_join_and_leave(orders: Store) -> None:
    group = orders.reader_group("g", ["orders"])
    one = group.join("one")
    found = drain(one)
    assert len(one.segments) == 4
    two, three = group.join("two"), group.join("three")
    for reader in (one, two, three, one, two, three):
        reader.read()
    assert sorted(len(reader.segments) for reader in (one, two, three)) == [1, 1, 2]
    owned = [segment for reader in (one, two, three) for segment in reader.segments]
    assert len(set(owned)) == 4
    write(orders, "orders", range(40, 80))
    for reader in (one, two, three):
        found += drain(reader)
    assert sorted(found) == list(range(80))
    two.leave()
    three.leave()
    write(orders, "orders", range(80, 90))
    assert sorted(drain(one)) == list(range(80, 90))
    assert len(one.segments) == 4


def test_a_reader_keeps_what_it_has_not_committed_when_another_one_joins(orders: Store) -> None:
    group = orders.reader_group("g", ["orders"])
    one = group.join("one")
    first = drain(one, commit=False)
    two = group.join("two")
    assert two.read() is None
    assert one.read() is None
    one.commit()
    assert len(one.segments) == 2
    assert two.read() is None
    assert len(two.segments) == 2
    assert sorted(first) == list(range(40))


def test_the_dead_readers_segments_are_taken_over_and_its_commit_raises(
    orders: Store, clock: ManualClock
) -> None:
    group = orders.reader_group("g", ["orders"])
    dead, heir = group.join("dead"), group.join("heir")
    before = dead.read(5)
    assert before is not None
    dead.commit()
    assert dead.read(5) is not None
    clock.advance(EXPIRY)
    found = drain(heir)
    assert sorted(found + before.column("n").to_pylist()) == list(range(40))
    with pytest.raises(ConflictError, match="reader is fenced"):
        dead.commit()
    with pytest.raises(ConflictError, match="reader is fenced"):
        dead.read()
    assert drain(group.join("dead")) == []
    with pytest.raises(ConflictError, match="reader is fenced"):
        dead.commit()  # Another reader of that name is not this one.


def test_a_silent_reader_that_nobody_replaced_goes_on(orders: Store, clock: ManualClock) -> None:
    reader = orders.reader_group("g", ["orders"]).join("one")
    first = drain(reader, commit=False)
    clock.advance(2 * EXPIRY)
    reader.commit()
    assert sorted(first + drain(reader)) == list(range(40))


def test_a_checkpoint_is_restored_and_fences_all_readers(orders: Store) -> None:
    group = orders.reader_group("g", ["orders"])
    reader = group.join("one")
    assert reader.read(15) is not None
    reader.commit()
    kept = group.checkpoint()
    assert sum(kept["orders"].values()) == 15
    rest = drain(reader)
    group.restore(kept)
    with pytest.raises(ConflictError, match="reader is fenced"):
        reader.read()
    again = group.join("one")
    assert sorted(drain(again)) == sorted(rest)
    with pytest.raises(InputError, match="unknown stream"):
        group.restore({"elsewhere": {}})
    group.delete()
    with pytest.raises(InputError, match="unknown reader group"):
        again.commit()


def test_several_streams_in_one_group_take_turns(orders: Store) -> None:
    create(orders, "payments")
    write(orders, "payments", range(100, 110))
    group = orders.reader_group("g", ["orders", "payments"])
    reader = group.join("one")
    assert sorted(drain(reader, max_rows=4)) == [*range(40), *range(100, 110)]
    assert set(group.checkpoint()) == {"orders", "payments"}
    write(orders, "orders", [40])
    write(orders, "payments", [110])
    rows = reader.read(stream="payments")
    assert rows is not None
    assert rows.column("n").to_pylist() == [110]
    with pytest.raises(InputError, match="reader group reads other streams"):
        orders.reader_group("g", ["orders"])
    orders.delete_stream("payments")
    reader.commit()
    assert drain(reader) == [40]


@pytest.mark.parametrize(("balance", "given"), [("rows", "many"), ("time", "far")])
def test_the_segment_furthest_behind_by_rows_or_by_time_goes_to_who_joins(
    tmp_path: Path, clock: ManualClock, balance: str, given: str
) -> None:
    with Store.open(tmp_path, clock=clock.now) as store:
        for name in ("far", "many"):
            create(store, name)
            write(store, name, [0])
        settings = {"balance": balance}
        group = store.reader_group("g", ["far", "many"], **settings)  # type: ignore[arg-type]
        one = group.join("one")
        drain(one)
        write(store, "far", [1_000_000])
        write(store, "many", range(1, 100))
        two = group.join("two")
        one.commit()
        two.read(1)
        assert [stream for stream, _ in two.segments] == [given]
        with pytest.raises(InputError, match="balance"):
            store.reader_group("g", ["far"], balance="luck")  # type: ignore[arg-type]


def test_the_time_window_of_a_group_is_the_minimum_over_its_readers(
    store: Store, clock: ManualClock
) -> None:
    create(store, "orders", segments=2)
    with store.writer("orders", "w", notes_time=True) as writer:
        for start in (0, 50):
            writer.append(table(range(start, start + 50)))
            clock.advance(EMBEDDED_INTERVAL)
            writer.note_time(start + 50)
        group = store.reader_group("g", ["orders"])
        one, two, idle = (group.join(name) for name in ("one", "two", "idle"))
        for reader in (one, two, idle, one, two, idle):
            reader.read(1)
            reader.commit()
        assert sorted(map(len, (one.segments, two.segments, idle.segments))) == [0, 1, 1]
        ahead, behind = (r for r in (one, two, idle) if r.segments)
        without = next(r for r in (one, two, idle) if not r.segments)
        drain(ahead)
        assert ahead.time_window("orders") == TimeWindow(100, None)
        assert behind.time_window("orders") == TimeWindow(None, 50)
        assert without.time_window("orders") == TimeWindow(None, None)
        assert group.time_window("orders") == TimeWindow(None, 50)
        drain(behind)
        assert group.time_window("orders") == TimeWindow(100, None)
        behind.leave()
        left = group.checkpoint()["orders"]
        free = next(name for name in left if ("orders", name) not in ahead.segments)
        group.restore({"orders": {**left, free: 1}})
        # What nobody has counts as everybody's own.
        assert group.time_window("orders").lower is None


def test_expiry_must_be_positive(orders: Store) -> None:
    with pytest.raises(InputError, match="duration must be positive"):
        orders.reader_group("g", ["orders"], expiry=timedelta(0))
    with pytest.raises(InputError, match="streams"):
        orders.reader_group("g", [])
