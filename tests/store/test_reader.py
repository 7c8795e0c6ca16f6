"""A reader reads every row once, in order, over scales and restarts, and knows its time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest
from tests.store.rows import create, drain, in_key_order, table, write

from tidegate.errors import ConflictError, InputError
from tidegate.marks.window import TimeWindow
from tidegate.store import Store
from tidegate.store.mark_cycle import EMBEDDED_INTERVAL
from tidegate.store.reader import STREAM
from tidegate.testing import ManualClock


@pytest.fixture
def orders(store: Store) -> Store:
    create(store, "orders", segments=2)
    write(store, "orders", range(20))
    return store


def test_every_row_is_read_once_in_portions_with_its_place_and_time(orders: Store) -> None:
    reader = orders.reader_group("g", ["orders"]).join("one")
    system = ("_partition", "_offset", "_event_time")
    found: list[dict[str, object]] = []
    while (rows := reader.read(6, system_columns=system)) is not None:
        assert 1 <= rows.num_rows <= 6
        assert rows.schema.metadata[STREAM] == b"orders"
        found += rows.to_pylist()
    assert sorted(row["n"] for row in found) == list(range(20))  # type: ignore[type-var]
    places = {(row["_partition"], row["_offset"]) for row in found}
    ends = {record.name: record.end for record in orders.segments("orders")}
    assert places == {(name, at) for name, end in ends.items() for at in range(end)}
    assert all(row["_event_time"] == row["at"] for row in found)
    rows = orders.reader_group("h", ["orders"]).join("one").read(columns=["n"])
    assert isinstance(rows, pa.Table)
    assert rows.column_names == ["n"]


def test_what_is_not_committed_is_read_again_and_what_is_committed_never(
    orders: Store, open_store: Callable[..., Store]
) -> None:
    group = orders.reader_group("g", ["orders"])
    first = group.join("one")
    seen = first.read(5)
    assert seen is not None
    first.commit()
    drain(first, commit=False)
    again = open_store().reader_group("g", ["orders"]).join("one")
    assert sorted(drain(again) + seen.column("n").to_pylist()) == list(range(20))
    with pytest.raises(ConflictError, match="reader is fenced"):
        first.commit()
    assert drain(again) == []


def test_a_successor_is_read_only_after_the_group_has_committed_all_it_follows(
    orders: Store,
) -> None:
    group = orders.reader_group("g", ["orders"])
    one, two = group.join("one"), group.join("two")
    orders.scale("orders", ["0.e0", "1.e0"], [(0, "1/4"), ("1/4", 1)])
    write(orders, "orders", range(20, 40))
    found = drain(one)
    assert one.read() is None  # 3.e1 follows both, and the two that are sealed are passed together.
    found += drain(two, commit=False)
    assert one.read() is None
    assert sorted(found) == list(range(20))
    two.commit()
    assert sorted(drain(one) + drain(two)) == list(range(20, 40))
    assert set(group.checkpoint()["orders"]) == {"2.e1", "3.e1"}


def test_segments_that_never_had_a_row_are_passed_at_once(orders: Store) -> None:
    reader = orders.reader_group("g", ["orders"]).join("one")
    drain(reader)
    open_ones = ["0.e0", "1.e0"]
    for epoch in (1, 2, 3):
        orders.scale("orders", open_ones, [("0", "1")])
        open_ones = [f"{epoch + 1}.e{epoch}"]
    write(orders, "orders", range(20, 23))
    found = reader.read()
    assert found is not None
    assert found.column("n").to_pylist() == [20, 21, 22]


def test_rows_of_one_key_keep_their_order_over_scales(orders: Store) -> None:
    group = orders.reader_group("g", ["orders"])
    reader = group.join("one")
    found = drain(reader)
    orders.scale("orders", ["0.e0"], [(0, "1/8"), ("1/8", "1/2")])
    write(orders, "orders", range(20, 50))
    found += drain(reader)
    orders.scale("orders", ["1.e0", "3.e1"], [("1/8", 1)])
    write(orders, "orders", range(50, 80))
    found += drain(reader)
    assert sorted(found) == list(range(80))
    assert in_key_order(found)
    assert set(group.checkpoint()["orders"]) == {"2.e1", "4.e2"}


def test_a_group_begins_where_it_is_told_to(orders: Store) -> None:
    latest = orders.reader_group("late", ["orders"], start="latest")
    write(orders, "orders", range(20, 30))
    assert sorted(drain(latest.join("r"))) == list(range(20, 30))
    cut = {"orders": {r.name: r.end for r in orders.segments("orders")}}
    write(orders, "orders", range(30, 35))
    assert sorted(drain(orders.reader_group("cut", ["orders"], start=cut).join("r"))) == [
        *range(30, 35)
    ]
    with pytest.raises(InputError, match="cut is ahead of the stream"):
        orders.reader_group("x", ["orders"], start={"orders": {"0.e0": 10_000}})
    with pytest.raises(InputError, match="unknown stream"):
        orders.reader_group("x", ["orders"], start={})
    with pytest.raises(InputError, match="start"):
        orders.reader_group("x", ["orders"], start="middle")  # type: ignore[arg-type]


def test_the_time_window_of_a_reader_follows_the_marks_it_has_passed(
    store: Store, clock: ManualClock
) -> None:
    create(store, "orders")
    group = store.reader_group("g", ["orders"])
    reader = group.join("one")
    reader.read()
    assert reader.time_window("orders") == TimeWindow(None, None)
    writer = store.writer("orders", "w", notes_time=True)
    for start in (0, 10):
        writer.append(table(range(start, start + 10)))
        clock.advance(EMBEDDED_INTERVAL)
        writer.note_time(start + 10)
    assert reader.time_window("orders") == TimeWindow(None, 10)
    assert group.time_window("orders") == TimeWindow(None, 10)
    reader.read(12)
    assert reader.time_window("orders") == TimeWindow(10, 20)
    assert group.time_window("orders") == TimeWindow(None, 10)  # Not committed yet.
    reader.commit()
    assert group.time_window("orders") == TimeWindow(10, 20)
    reader.read()
    assert reader.time_window("orders") == TimeWindow(20, None)
    writer.close()
    clock.advance(timedelta(minutes=1))
    store.on_note[0]("orders")
    assert reader.time_window("orders") == TimeWindow(None, None)  # No known writer is left.
