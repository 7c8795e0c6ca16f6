"""Every sink, made for a test: with what a reader of it sees, and what it promises."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection

from tidegate.planning.policy import Policy
from tidegate.planning.query import Query
from tidegate.spark.frames import run_tasks
from tidegate.spark.results import write_frame
from tidegate.spark.shape import Plain
from tidegate.spark.sinks import (
    Batch,
    ConsoleSink,
    FilesSink,
    ForeachBatch,
    FrameSink,
    MemorySink,
    Sink,
    StreamSink,
    read_files,
)
from tidegate.spark.spec import Job
from tidegate.store import Store
from tidegate.store.catalog import queries
from tidegate.store.reading import read_between


@dataclass(frozen=True)
class Made:
    """A sink under test."""

    sink: Sink
    numbers: Callable[[], list[int]]
    """The column n of all rows that a reader sees, in order."""
    table: Callable[[], pa.Table] | None
    """All rows, where they can be had back."""
    once: bool = True
    """Whether a batch that runs again is seen once."""


Printed = Callable[[], str]
Maker = Callable[[Path, Store, Printed], Made]


def _of_table(sink: Sink, table: Callable[[], pa.Table]) -> Made:
    return Made(sink, lambda: list(table()["n"].to_pylist()), table)


def stream(folder: Path, store: Store, printed: Printed) -> Made:
    def table() -> pa.Table:
        found = pa.Table.from_batches(list(read_between(store, "results")))
        own = [n for n in found.column_names if not n.startswith("_")] + ["_op", "_revision"]
        found = found.select([name for name in own if name in found.column_names])
        names = {"event_time": "_event_time"}
        return found.rename_columns([names.get(name, name) for name in found.column_names])

    return _of_table(StreamSink("results"), table)


def files(folder: Path, store: Store, printed: Printed) -> Made:
    return _of_table(FilesSink(folder / "results"), lambda: read_files(folder / "results"))


def memory(folder: Path, store: Store, printed: Printed) -> Made:
    sink = MemorySink("contract")
    sink.clear()
    return _of_table(sink, sink.table)


def console(folder: Path, store: Store, printed: Printed) -> Made:
    def numbers() -> list[int]:
        return [int(found) for found in re.findall(r"row (\d+)\b", printed())]

    return Made(ConsoleSink(rows=1000), numbers, None, once=False)


def function(folder: Path, store: Store, printed: Printed) -> Made:
    kept: dict[tuple[str, str, int], pa.Table] = {}

    def keep(rows: DataFrame, batch: Batch) -> int:
        table = rows.toArrow().cast(batch.columns)
        kept[batch.job, batch.lineage, batch.number] = table
        return len(table)

    return _of_table(ForeachBatch(keep), lambda: pa.concat_tables([kept[key] for key in kept]))


MAKERS: dict[str, Maker] = {
    "stream": stream,
    "files": files,
    "memory": memory,
    "console": console,
    "function": function,
}


# ---- what a job does with a sink ----


class Until(IntEnum):
    """How far a run comes before its process dies."""

    WRITTEN = 1
    SETTLED = 2
    COMMITTED = 3


@dataclass(frozen=True)
class Delivery:
    """The steps of a batch in their order, as in `tidegate.spark.batches`, without a plan."""

    spark: SparkSession
    store: Store
    made: Made

    def prepare(self, schema: pa.Schema) -> None:
        self.made.sink.prepare(self.store, "job", schema, "_event_time")

    def run(self, batch: Batch, parts: list[pa.Table], until: Until = Until.COMMITTED) -> int:
        """Run a batch; return how many rows it counts."""
        sink, written = self.made.sink, list[Any]()
        done = sink.settled(batch)
        if done is not None:
            rows = done
        else:
            frame = self._frame(batch, parts)
            if isinstance(sink, FrameSink):
                rows = sink.take(frame, batch)
            else:
                written = write_frame(sink, self._job(), batch, frame)
                rows = sink.rows_of(written)
            if until >= Until.SETTLED:
                sink.settle(batch, written)
        if until is Until.COMMITTED:
            self.store.database.write(lambda on: self._commit(on, batch, written))
        return rows

    def _commit(self, on: Connection, batch: Batch, written: list[Any]) -> None:
        step = queries.Step("job", batch.lineage, batch.number, batch.plan, batch.frontier)
        if queries.commit(on, step, 0) is None:
            return
        self.made.sink.commit(on, self.store, batch, written, 0)
        for hook in batch._hooks:
            hook(on)

    def _frame(self, batch: Batch, parts: list[pa.Table]) -> DataFrame:
        def task(part: pa.Table) -> Any:
            return lambda: iter(part.to_batches())

        return run_tasks(self.spark, [task(part) for part in parts], batch.columns)

    def _job(self) -> Job:
        return Job(
            name="job",
            catalog=self.store.database.url.render_as_string(hide_password=False),
            data=self.store.files.address,
            logs={},
            query=Query.ordered("rows"),
            shape=Plain(),
            policy=Policy(),
            sink=self.made.sink,
        )
