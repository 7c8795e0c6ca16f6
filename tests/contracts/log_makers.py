"""Logs for the contract suite: each with rows, and with ways to append to it and to end it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tidegate.eventtime.instants import format_instant
from tidegate.logs.files import FileLog
from tidegate.logs.log import Log
from tidegate.logs.nexmark import NexmarkLog
from tidegate.logs.store_log import StoreLog
from tidegate.store import Store
from tidegate.testing import ManualClock, MemoryLog

BASE = 1_700_000_000_000_000


@dataclass
class Made:
    """A log with rows; `append` adds some, `end` says that no more will come."""

    log: Log
    append: Callable[[], object] | None
    end: Callable[[], object] | None
    close: Callable[[], object] = lambda: None
    ends_itself: bool = False


def disordered(count: int, seed: int, base: int = BASE) -> list[int]:
    """Times that rise by about 50 ms and lie up to 2 s behind."""
    draw = random.Random(seed)
    return [base + i * 50_000 - draw.randrange(2_000_000) for i in range(count)]


def memory(_: Path) -> Made:
    there = MemoryLog()
    there.add_stream("rows", ["a", "b"])
    for name, seed in (("a", 1), ("b", 2)):
        for start in range(0, 60, 20):
            there.append("rows", name, disordered(60, seed)[start : start + 20])

    def end() -> None:
        there.end("rows", "a")
        there.end("rows", "b")

    return Made(there.log("rows"), lambda: there.append("rows", "b", [BASE + 5_000_000, BASE]), end)


# ---- files ----


def write_file(path: Path, format: str, rows: list[dict[str, Any]]) -> None:
    """Write a file beside its place, and move it there when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    if format == "jsonl":
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif format == "csv":
        pa.csv.write_csv(pa.Table.from_pylist(rows), draft)
    else:
        table = pa.Table.from_pylist(rows)
        if all(isinstance(row["at"], int) for row in rows):
            at = table.column("at").cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(1, "at", at)
        pq.write_table(table, draft, row_group_size=7)
    draft.rename(path)


def files(folder: Path, format: str, *, texts: bool) -> Made:
    """Three files in each of two partitions; with texts, some rows have no readable time."""

    def rows(seed: int, first: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for i, time in enumerate(disordered(60, seed)[first : first + 20], first):
            at: Any = format_instant(time) if texts else time
            found.append({"id": i, "at": "soon" if texts and i % 13 == 5 else at})
        return found

    for name, seed in (("a", 1), ("b", 2)):
        for number in range(3):
            write_file(folder / "log" / name / f"{number}.x", format, rows(seed, number * 20))

    def end() -> None:
        for name in ("a", "b"):
            (folder / "log" / name / "_END").touch()

    log = FileLog("rows", folder / "log", format=format, event_column="at")
    return Made(log, lambda: write_file(folder / "log/b/3.x", format, rows(3, 0)), end)


# ---- the generator ----


def nexmark(_: Path) -> Made:
    log = NexmarkLog(
        "rows", "bid", total=2000, partitions=3, rate=100, shuffle=7, delayed=0.1, span_rows=90,
        skew=[timedelta(0), timedelta(seconds=5), timedelta(seconds=-3)],
        pauses=[(1, timedelta(seconds=8), timedelta(seconds=4))],
    )  # fmt: skip
    return Made(log, None, lambda: None, ends_itself=True)


def nexmark_live(_: Path) -> Made:
    clock = ManualClock(BASE)
    log = NexmarkLog(
        "rows", total=1000, partitions=2, rate=100, start_at=BASE, shuffle=4, span_rows=50,
        live=True, clock=clock.now,
    )  # fmt: skip
    clock.advance(timedelta(seconds=6))
    log.snapshot({})
    return Made(
        log,
        lambda: clock.advance(timedelta(seconds=2)),
        lambda: clock.advance(timedelta(seconds=60)),
        ends_itself=True,
    )


# ---- the store ----


def store(folder: Path, *, event_column: str | None) -> Made:
    """Three flushes into two segments, by a clock that stands between them."""
    clock = ManualClock(BASE + 60_000_000)
    there = Store.open(folder / "store", clock=clock.now)
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    there.create_stream("rows", schema, event_column=event_column, routing_key=("id",), segments=2)
    writer = there.writer("rows", flush_age=None)

    def append(first: int = 0, seed: int = 3) -> None:
        times = disordered(60, seed)[first : first + 20]
        ids = list(range(first, first + 20))
        writer.append(pa.table({"id": ids, "at": pa.array(times, schema.field("at").type)}))
        writer.flush()
        clock.advance(timedelta(seconds=1))

    for first in (0, 20, 40):
        append(first, 1)

    def close() -> None:
        writer.close()
        there.close()

    return Made(StoreLog(there, "rows"), append, None, close)


MAKERS: dict[str, Callable[[Path], Made]] = {
    "memory": memory,
    "parquet": lambda folder: files(folder, "parquet", texts=False),
    "parquet of texts": lambda folder: files(folder, "parquet", texts=True),
    "json lines": lambda folder: files(folder, "jsonl", texts=True),
    "csv": lambda folder: files(folder, "csv", texts=True),
    "store": lambda folder: store(folder, event_column="at"),
    "store by commit": lambda folder: store(folder, event_column=None),
    "nexmark": nexmark,
    "nexmark live": nexmark_live,
}
