"""Batches and rows for the tests of sinks, with all common types."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.slices import Interval
from tidegate.spark.sinks import Batch, FilesSink
from tidegate.spark.sinks.manifests import ResultFile
from tidegate.store.steps import listening
from tidegate.store.store import Store

NO_STORE = cast(Store, None)
"""A files sink asks nothing of the store."""

PLAIN = pa.schema([("n", pa.int64()), ("text", pa.string())])

FLAT = pa.schema(
    [
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("long", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("money", pa.decimal128(20, 4)),
        ("yes", pa.bool_()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("length", pa.duration("us")),
    ]
)
"""The types that every sink and every format holds."""

NESTED = pa.schema(
    [
        *FLAT,
        ("bytes", pa.binary()),
        ("list", pa.list_(pa.timestamp("us", tz="UTC"))),
        ("struct", pa.struct([("a", pa.decimal128(9, 2)), ("b", pa.binary())])),
        ("map", pa.map_(pa.string(), pa.float64())),
    ]
)

_SOME: dict[str, list[Any]] = {
    "tiny": [-128, 127],
    "small": [-(2**15), 2**15 - 1],
    "whole": [-(2**31), 2**31 - 1],
    "long": [-(2**63), 2**63 - 1],
    "single": [0.5, math.inf],
    "double": [1e-300, -math.inf],
    "money": [Decimal("-1234567890123456.7890"), Decimal("0.0001")],
    "yes": [True, False],
    "text": ["", 'a "quoted"\n, line; null'],
    "day": [date(1, 1, 1), date(9999, 12, 31)],
    "at": [datetime(1931, 1, 1, 0, 0, 0, 1, UTC), datetime(2026, 1, 31, 12, tzinfo=UTC)],
    "local": [-1, 1_800_000_000_000_000],
    "length": [timedelta(microseconds=-1), timedelta(days=400)],
    "bytes": [b"", b"\xff\x00"],
    "list": [[], [datetime(2026, 1, 31, tzinfo=UTC), None]],
    "struct": [{"a": Decimal("1.20"), "b": None}, {"a": None, "b": b"\xfe"}],
    "map": [[], [("x", 0.5), ("y", None)]],
}


def some_rows(schema: pa.Schema) -> pa.Table:
    """A row of small values, one of large ones, and one of nulls."""
    columns = [pa.array([*_SOME[field.name], None], field.type) for field in schema]
    return pa.table(columns, schema=schema)


def numbered(first: int, last: int) -> pa.Table:
    """Rows of the plain schema with these numbers."""
    numbers = list(range(first, last))
    return pa.table([numbers, [f"row {n}" for n in numbers]], schema=PLAIN)


def batch_of(
    number: int,
    *,
    columns: pa.Schema = PLAIN,
    lineage: str = "first-history",
    plan: str = "",
    job: str = "job",
    a: Known = UNKNOWN,
) -> Batch:
    """A batch, as a run of it would describe it."""
    return Batch(
        job=job,
        lineage=lineage,
        number=number,
        interval=Interval(a, number * 60),
        watermark=number * 60 - 1,
        frontier=number * 60,
        finished=False,
        columns=columns,
        plan=plan or f"plan-{number}",
    )


def written(sink: FilesSink, batch: Batch, parts: Sequence[pa.Table]) -> list[ResultFile | None]:
    """What the tasks of a batch do with a files sink, a table each."""
    return [
        sink.write(iter(part.to_batches(max_chunksize=7)), NO_STORE, batch, task)
        for task, part in enumerate(parts)
    ]


def run(sink: FilesSink, batch: Batch, parts: Sequence[pa.Table]) -> int:
    """A run of a batch, up to the catalog's transaction; the rows that it counts."""
    sink.prepare(NO_STORE, batch.job, batch.columns, None)
    done = sink.settled(batch)
    if done is not None:
        return done
    made = written(sink, batch, parts)
    sink.settle(batch, made)
    return sink.rows_of(made)


def run_two(folder: str) -> None:
    """Two batches into a folder, of nine rows in all."""
    sink = FilesSink(folder)
    run(sink, batch_of(1), [numbered(0, 5), numbered(5, 6)])
    run(sink, batch_of(2), [numbered(6, 9)])


def run_two_or_die(folder: str, kill_at: int) -> None:
    """The same in a child that is killed at its n-th step."""
    passed = 0

    def step(_: str) -> None:
        nonlocal passed
        passed += 1
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with listening(step):
        run_two(folder)
    Path(folder, "steps").write_text(str(passed))
