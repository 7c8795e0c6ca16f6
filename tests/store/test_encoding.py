"""Encoding: every row is good or bad, whatever it came in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.store.config import StreamConfig
from tidegate.store.encoding import Encoded, encode

SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC"))]
)
ORDERS = StreamConfig(SCHEMA, event_column="at", routing_key=("id",))
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW = 1_769_860_800_000_000


def encoded(rows: Any, config: StreamConfig = ORDERS, skip: int = 0) -> Encoded:
    return encode(rows, config, EventTimeRegistry(), NOW, stream="orders", skip=skip)


ROWS = [{"id": n, "name": f"n{n}", "at": NOON - timedelta(seconds=n)} for n in range(5)]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        pa.Table.from_pylist(ROWS, SCHEMA),
        pa.RecordBatch.from_pylist(ROWS, SCHEMA),
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        pa.Table.from_pylist(ROWS, SCHEMA).cast(
            pa.schema([("id", pa.int32()), ("name", pa.large_string()), ("at", pa.timestamp("ms"))])
        ),
    ],
    ids=["dicts", "table", "batch", "pandas", "polars", "other widths"],
)
def test_rows_may_come_in_many_shapes(rows: Any) -> None:
    for skip in (0, 2):
        found = encoded(rows, skip=skip)
        assert found.bad == ()
        assert found.rows == 5 - skip
        assert found.table.select(SCHEMA.names).to_pylist() == ROWS[skip:]
        assert found.table.column("_event_time").to_pylist() == [r["at"] for r in ROWS[skip:]]


@pytest.mark.parametrize(
    ("row", "reason", "column"),
    [
        ({"id": None, "at": NOON}, "missing", "id"),
        ({"at": NOON}, "missing", "id"),
        ({"id": "7", "at": NOON}, "wrong type", "id"),
        ({"id": 1.5, "at": NOON}, "wrong type", "id"),
        ({"id": True, "at": NOON}, "wrong type", "id"),
        ({"id": 2**70, "at": NOON}, "wrong type", "id"),
        ({"id": 1, "name": 5, "at": NOON}, "wrong type", "name"),
        ({"id": 1, "name": b"x", "at": NOON}, "wrong type", "name"),
        ({"id": 1}, "missing", "at"),
        ({"id": 1, "at": "soon"}, "unparsable", "at"),
        ({"id": 1, "at": 5}, "unparsable", "at"),
        ({"id": 1, "at": NOON + timedelta(minutes=5, microseconds=1)}, "future", "at"),
    ],
)
def test_a_bad_row_is_told_apart_from_its_good_neighbours(
    row: dict[str, Any], reason: str, column: str
) -> None:
    found = encoded([ROWS[0], row, ROWS[1]])
    assert found.places.tolist() == [0, 2]
    assert found.table.column("id").to_pylist() == [0, 1]
    (bad,) = found.bad
    assert (bad.row, bad.reason, bad.column) == (1, reason, column)
    assert json.loads(bad.original).keys() == row.keys()
    assert bad.value == (None if row.get(column) is None else str(row[column]))


def test_a_column_of_the_wrong_type_makes_every_row_bad() -> None:
    found = encoded(pa.table({"id": ["1", "2"], "at": [NOON, NOON]}))
    assert [bad.reason for bad in found.bad] == ["wrong type", "wrong type"]


def test_values_that_do_not_fit_are_found_one_by_one() -> None:
    rows = pa.table({"id": [float(n) for n in range(100)], "at": [NOON] * 100})
    odd = pa.array([0.5 if n in (17, 93) else float(n) for n in range(100)])
    found = encoded(rows.set_column(0, "id", odd))
    assert [bad.row for bad in found.bad] == [17, 93]
    assert found.table.num_rows == 98


def test_iso_texts_are_taken_for_timestamps() -> None:
    found = encoded([{"id": 1, "at": "2026-01-31T12:00:00Z"}])
    assert found.table.column("at").to_pylist() == [NOON]


def test_the_guard_against_the_future_can_be_switched_off() -> None:
    far = {"id": 1, "at": NOON + timedelta(days=400)}
    assert encoded([far]).bad[0].reason == "future"
    config = StreamConfig(SCHEMA, event_column="at", max_future=None)
    assert encoded([far], config).bad == ()


def test_a_stream_without_event_time_gets_no_time_column() -> None:
    assert encoded(ROWS, StreamConfig(SCHEMA)).table.column_names == SCHEMA.names


def test_a_column_that_must_not_be_null_makes_a_bad_row() -> None:
    config = StreamConfig(pa.schema([pa.field("name", pa.string(), nullable=False)]))
    assert [bad.reason for bad in encoded([{"name": None}], config).bad] == ["missing"]


def test_nothing_in_gives_nothing_out() -> None:
    assert encoded([]).rows == 0
    assert encoded(SCHEMA.empty_table()).rows == 0


@pytest.mark.parametrize("rows", [5, {"id": 1}, [1, 2], "rows"])
def test_what_is_not_rows_is_an_error(rows: Any) -> None:
    with pytest.raises(TidegateError) as caught:
        encoded(rows)
    assert caught.value.code == "rows-not-understood"


def test_a_column_that_the_stream_does_not_have_is_an_error() -> None:
    with pytest.raises(TidegateError) as caught:
        encoded([{"id": 1, "idd": 1, "at": NOON}])
    assert caught.value.code == "unknown-column"
