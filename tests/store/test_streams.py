"""Streams and segments: created, described, altered, scaled, deleted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.errors import TidegateError
from tidegate.store import Retention, Scaling, Store

ORDERS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(TidegateError) as caught:
        act()
    return caught.value.code


def test_a_stream_is_described_as_it_was_declared(store: Store) -> None:
    made = store.create_stream(
        "shop.orders",
        ORDERS,
        event_column="at",
        routing_key=("id",),
        segments=3,
        scaling=Scaling(target_rows=1000.0, minimum=2),
        retention=Retention(age=timedelta(days=7), size=10**9),
        mark_timeout=timedelta(seconds=5),
        max_future=None,
    )
    found = store.describe("shop.orders")
    assert found.id == made.id
    assert found.config.schema == ORDERS
    assert found.config.event_column == "at"
    assert found.config.routing_key == ("id",)
    assert found.config.scaling == Scaling(1000.0, 2)
    assert found.config.retention == Retention(timedelta(days=7), 10**9)
    assert found.config.mark_timeout == timedelta(seconds=5)
    assert found.config.max_future is None
    assert [s.name for s in store.segments("shop.orders")] == ["0.e0", "1.e0", "2.e0"]


def test_a_stream_that_exists_is_an_error_unless_asked_otherwise(store: Store) -> None:
    first = store.create_stream("orders", ORDERS)
    assert code_of(lambda: store.create_stream("orders", ORDERS)) == "stream-exists"
    assert store.create_stream("orders", ORDERS, exist_ok=True).id == first.id
    other = pa.schema([("id", pa.string())])
    assert code_of(lambda: store.create_stream("orders", other, exist_ok=True)) == "stream-exists"


def test_of_many_who_create_a_stream_at_once_one_does(open_store: Callable[..., Store]) -> None:
    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda s: s.create_stream("orders", ORDERS, exist_ok=True), stores))
    assert len({record.id for record in made}) == 1
    assert stores[0].list_streams() == ["orders"]


@pytest.mark.parametrize("name", ["", "my orders", "../up", "a/b", ".x", "x.", "1st", "x" * 201])
def test_a_name_that_a_path_or_sql_would_stumble_over_is_refused(store: Store, name: str) -> None:
    assert code_of(lambda: store.create_stream(name, ORDERS)) == "stream-name-not-valid"


def test_wrong_declarations_are_refused_and_leave_nothing_behind(store: Store) -> None:
    twice = pa.schema([("id", pa.int64()), ("id", pa.int64())])
    assert code_of(lambda: store.create_stream("s", twice)) == "column-given-twice"
    taken = pa.schema([("_OFFSET", pa.int64())])
    assert code_of(lambda: store.create_stream("s", taken)) == "column-reserved"
    assert code_of(lambda: store.create_stream("s", ORDERS, routing_key=("x",))) == "unknown-column"
    assert code_of(lambda: store.create_stream("s", ORDERS, segments=0)) == "wrong-setting"
    assert store.list_streams() == []


def test_nullable_columns_can_be_added_and_no_others(store: Store) -> None:
    store.create_stream("orders", ORDERS)
    note = pa.field("note", pa.string())
    assert store.alter_stream("orders", add_columns=[note]).config.schema.names[-1] == "note"
    must = pa.field("must", pa.string(), nullable=False)
    assert (
        code_of(lambda: store.alter_stream("orders", add_columns=[must])) == "column-not-nullable"
    )
    assert store.describe("orders").config.schema.names == ["id", "at", "note"]


def test_a_deleted_stream_is_gone_and_can_be_made_anew(store: Store) -> None:
    first = store.create_stream("orders", ORDERS)
    store.delete_stream("orders")
    assert code_of(lambda: store.describe("orders")) == "unknown-stream"
    assert store.create_stream("orders", ORDERS).created_at >= first.created_at
    assert store.list_streams() == ["orders"]


def test_scaling_seals_segments_and_opens_their_successors(store: Store) -> None:
    store.create_stream("orders", ORDERS, segments=2)
    lineage = store.scale("orders", ["0.e0"], [(0, "1/4"), ("1/4", "1/2")])
    assert lineage.successors_of("0.e0") == ("2.e1", "3.e1")
    assert [s.segment.sealed_in for s in store.segments("orders")] == [1, None, None, None]
    assert store.describe("orders").epoch == 1


def test_segments_are_split_and_merged_by_hand(store: Store) -> None:
    store.create_stream("orders", ORDERS, segments=2)
    assert store.split("orders", "0.e0", 3).successors_of("0.e0") == ("2.e1", "3.e1", "4.e1")
    assert store.merge("orders", "4.e1", "1.e0").successors_of("1.e0") == ("5.e2",)
    with pytest.raises(TidegateError):
        store.merge("orders", "2.e1", "5.e2")  # 3.e1 lies between them
    assert store.describe("orders").epoch == 2


def test_a_scale_that_does_not_cover_the_same_keys_changes_nothing(store: Store) -> None:
    store.create_stream("orders", ORDERS, segments=2)
    with pytest.raises(TidegateError):
        store.scale("orders", ["0.e0"], [(0, "1/4")])
    assert store.describe("orders").epoch == 0
    assert len(store.segments("orders")) == 2


def test_a_folder_is_all_that_is_needed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "shop") as store:
        store.create_stream("orders", ORDERS)
    with Store.open(tmp_path / "shop") as store:
        assert store.list_streams() == ["orders"]


def test_a_catalog_url_needs_a_data_address() -> None:
    assert code_of(lambda: Store.open("sqlite:///x.db")) == "data-address-missing"
