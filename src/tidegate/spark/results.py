"""The results of a batch: the query over its pieces, by whichever kernel, as rows for the sink.

A result row of a windowed job that says nothing else has the time `window end - 1 us`; a query that
gives a column `_event_time` decides itself. Corrections are the difference between what windows
gave below the cut before and what they give below the cut after: deletes and inserts, with the
number of the batch as their revision.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.eventtime.watermark import Known
from tidegate.planning.slices import Interval
from tidegate.spark.arrow_types import arrow_schema, cast
from tidegate.spark.duckdb_kernel import DuckTask
from tidegate.spark.frames import empty_frames, frames, run_tasks
from tidegate.spark.kernels import Choice
from tidegate.spark.reads import Piece
from tidegate.spark.shape import EVENT_TIME, WINDOW_END
from tidegate.spark.sinks.sink import OP, REVISION, Batch, TaskSink
from tidegate.spark.spec import Job
from tidegate.spark.sql_text import Statement
from tidegate.spark.workers import in_worker
from tidegate.store.store import Store

MANIFEST: Final = pa.schema([("task", pa.int64()), ("manifest", pa.binary())])
SMALL: Final = 250_000
"""Pieces are put together up to so many rows: below that a task costs more than its work."""
LARGE: Final = 32_000_000
"""And to no more than so many, a second's work: a task that fails is done again."""


class HasStore(Protocol):
    """Whatever knows the store that its sink writes to."""

    def store(self) -> Store:
        """The store."""


class Query:
    """A job's query, ready to be run over pieces of time."""

    def __init__(
        self, spark: SparkSession, job: Job, statement: Statement | None, schemas: Any
    ) -> None:
        self.job = job
        self.statement = statement
        self.schemas = schemas
        empty = empty_frames(spark, schemas, job.shape)
        self.result = arrow_schema(self._asked(spark, empty).schema)
        self.columns = self._with_time(self.result)

    @property
    def event_time(self) -> str | None:
        """The column that gives a result its time, if there is one."""
        return EVENT_TIME if EVENT_TIME in self.columns.names else None

    # ---- spark ----

    def in_spark(
        self, spark: SparkSession, pieces: Sequence[Piece], interval: Interval, origin: Known
    ) -> DataFrame:
        """The result over an interval, as a DataFrame that is not computed yet."""
        reads = {name: [piece.reads for piece in pieces] for name in self.schemas}
        made = frames(spark, reads, interval, origin, self.job.shape, self.schemas)
        found = self._asked(spark, made)
        if EVENT_TIME not in found.columns and WINDOW_END in found.columns:
            time = F.timestamp_micros(F.unix_micros(WINDOW_END) - F.lit(1))
            found = found.withColumn(EVENT_TIME, time)
        return found

    def _asked(self, spark: SparkSession, made: dict[str, DataFrame]) -> DataFrame:
        if self.job.function is not None:
            return self.job.function(**made)
        assert self.statement is not None
        arguments = self.statement.arguments.items()
        named: dict[str, Any] = {argument: made[name] for name, argument in arguments}
        return spark.sql(self.statement.for_spark(), **named)

    # ---- duckdb ----

    def in_duckdb(
        self, choice: Choice, pieces: Sequence[Piece], origin: Known
    ) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        """The same as tasks, each with pieces of its own."""
        assert choice.text is not None
        shape, texts = self.job.shape, (choice.text, self.result, choice.row_by_row)
        kept = [DuckTask(p.interval, origin, p.reads, shape, *texts) for p in pieces]
        return [
            _Together(tuple(kept[i] for i in group)).run
            for group in packed([p.rows for p in pieces], self.job.cores)
        ]

    def _with_time(self, schema: pa.Schema) -> pa.Schema:
        if EVENT_TIME in schema.names or WINDOW_END not in schema.names:
            return schema
        return schema.append(pa.field(EVENT_TIME, pa.timestamp("us", tz="UTC")))


@dataclass(frozen=True)
class _Together:
    """Some pieces one after the other, in one task."""

    tasks: tuple[DuckTask, ...]

    def run(self) -> Iterator[pa.RecordBatch]:
        for task in self.tasks:
            for batch in task.run():
                yield timed(batch)


def timed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of results with its event time."""
    if EVENT_TIME in batch.schema.names or WINDOW_END not in batch.schema.names:
        return batch
    ends = batch.column(WINDOW_END).cast(pa.int64())
    return batch.append_column(
        pa.field(EVENT_TIME, pa.timestamp("us", tz="UTC")),
        pc.subtract(ends, 1).cast(pa.timestamp("us", tz="UTC")),
    )


def packed(rows: Sequence[int], cores: int) -> list[list[int]]:
    """Which pieces are one task: neighbours, many at first and fewer towards the end.

    Between two tasks a core waits some 20 ms, so few are better; but the last ones must be small,
    or one core waits for another. So each is given half of what its core would have of the rest.

    >>> packed([5_000_000] * 12, cores=1)
    [[0, 1, 2, 3, 4, 5], [6, 7, 8], [9], [10], [11]]
    >>> packed([5_000_000] * 4, cores=2)
    [[0], [1], [2], [3]]
    >>> packed([1_000] * 4, cores=2)
    [[0, 1, 2, 3]]
    """
    groups: list[list[int]] = []
    left, room = sum(rows), 0
    for number, count in enumerate(rows):
        if not groups or count > room:
            groups.append([])
            room = min(max(left // (2 * cores), SMALL), LARGE)
        groups[-1].append(number)
        room -= count
        left -= count
    return groups


def write_tasks(
    spark: SparkSession,
    sink: TaskSink,
    job: Job,
    batch: Batch,
    tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]],
) -> list[Any]:
    """Run tasks and write what each gives, in the task; what the sink returns, in their order."""

    def writing(number: int, task: Callable[[], Iterator[pa.RecordBatch]]) -> Any:
        def run() -> Iterator[pa.RecordBatch]:
            yield _manifest(number, sink.write(task(), job.store(), batch, number))

        return run

    made = [writing(number, task) for number, task in enumerate(tasks)]
    return _collected(run_tasks(spark, made, MANIFEST)) if made else []


def write_frame(sink: TaskSink, job: HasStore, batch: Batch, rows: DataFrame) -> list[Any]:
    """Compute a DataFrame and write every partition of it where it is."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        typed = (cast(one, batch.columns) for one in batches)
        yield _manifest(number, sink.write(typed, job.store(), batch, number))

    manifests = "task long, manifest binary"
    return _collected(rows.mapInArrow(lambda batches: in_worker(run(batches)), manifests))


def corrected(before: DataFrame, after: DataFrame, batch: int) -> DataFrame:
    """The difference between two results: what is taken back, and what is said instead."""

    def marked(rows: DataFrame, op: str) -> DataFrame:
        return with_revision(rows, op, batch)

    deletes, inserts = before.exceptAll(after), after.exceptAll(before)
    return marked(deletes, "delete").unionAll(marked(inserts, "insert"))


def with_revision(rows: DataFrame, op: str, batch: int) -> DataFrame:
    """Results of a job whose results may be corrected."""
    return rows.withColumns({OP: F.lit(op), REVISION: F.lit(batch).cast("long")})


def _manifest(number: int, written: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"task": [number], "manifest": [pickle.dumps(written)]}, schema=MANIFEST
    )


def _collected(rows: DataFrame) -> list[Any]:
    found = sorted(rows.collect(), key=lambda row: row.task)
    return [pickle.loads(row.manifest) for row in found]
