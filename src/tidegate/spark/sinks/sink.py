"""The sink: what takes the results of a batch, and how a batch becomes visible once.

A batch is run, written and committed in this order, and may be run again from any point:

1. `prepare` once per run: the sink learns the schema, and refuses what it cannot hold.
2. `settled(batch)`: does the sink itself know that this batch is done? Then nothing is written, and
   it says how many rows there were.
3. tasks `write` rows where they were computed (`TaskSink`), or the driver is handed the DataFrame
   (`FrameSink`), once per batch, also when it is empty; what they return travels to the driver.
4. `settle` on the driver: a sink with a memory of its own notes (lineage, batch) there.
5. `commit` inside the one catalog transaction of the batch, which comes only if the query's row was
   moved from the batch before to this one.

So a sink in the catalog (`StreamSink`) needs step 5 alone, an outer one with a memory (files, a
database) steps 2 and 4, and one without (console) may see a batch twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import Known
from tidegate.planning.slices import Interval
from tidegate.spark.session import on_connect
from tidegate.store.store import Store

OP = "_op"
REVISION = "_revision"
"""With `late = update`: `insert` or `delete`, and the batch that says so."""


@dataclass(frozen=True)
class Batch:
    """One batch of a job, as a sink sees it.

    (`job`, `lineage`, `number`) names it for good: a batch that runs again has the same, and the
    same `plan`, a fingerprint of what it reads; another plan under the same name is another
    driver's. Results lie in `interval` (in windows: they end in (a, b]); None when only late rows
    are at stake. `frontier`: no later batch has a result before it.
    """

    job: str
    lineage: str
    number: int
    interval: Interval | None
    watermark: Known
    frontier: Known
    finished: bool
    columns: pa.Schema
    plan: str = ""
    _hooks: list[Any] = field(default_factory=list, repr=False, compare=False)

    def is_planned_as(self, kept: str) -> bool:
        """Whether a batch of this name that was kept with that plan is this one.

        Behind the gate a plan has a part for every source, as a JSON object.
        """
        if kept == self.plan or not self.plan.startswith("{"):
            return kept == self.plan
        # Written before plans were kept, it says nothing.
        return agree(json.loads(kept or "{}"), json.loads(self.plan))

    def in_commit(self, work: Any) -> None:
        """Have `work(connection)` run inside the catalog transaction that commits this batch.

        What it changes in that database happens exactly when the batch is committed, and once.
        """
        self._hooks.append(work)


def agree(kept: Mapping[str, str], plan: Mapping[str, str]) -> bool:
    """Whether no source has answered otherwise.

    In the first batch of a run it is not yet known which sources are left over from another one.

    >>> agree({"source:a": "1", "source:old": "7"}, {"source:a": "1"})
    True
    >>> agree({"source:a": "1"}, {"source:a": "2"})
    False
    """
    return all(kept[name] == plan[name] for name in kept.keys() & plan.keys())


class _AnySink:
    """What all sinks share: nothing is remembered, nothing is written in the commit."""

    kind: ClassVar[str]
    keeps_deletes: ClassVar[bool] = True
    """Whether rows that take back others have a meaning there."""
    in_this_process: ClassVar[bool] = False
    """Whether it must run where the job was started: on Spark Connect it would not."""

    @property
    def node(self) -> str:
        """Its name among the nodes of the job."""
        return f"sink:{self.kind}"

    def prepare(self, store: Store, job: str, schema: pa.Schema, event_time: str | None) -> None:
        """Learn the schema; refuse it, or make ready."""

    def settled(self, batch: Batch) -> int | None:
        """How many rows it has of this batch, if the sink itself knows that it is done."""
        return None

    def settle(self, batch: Batch, written: Sequence[Any]) -> None:
        """Note the batch in a memory of its own."""

    def commit(
        self, on: Connection, store: Store, batch: Batch, written: Sequence[Any], now: Instant
    ) -> None:
        """Take part in the catalog transaction."""

    def rerouted(self, store: Store, written: Sequence[Any], sealed: Any) -> Sequence[Any]:
        """The same, after the commit found segments sealed: those of late rows, or its own."""
        return written

    def noted(self, store: Store) -> None:
        """The batch is committed: tell whoever waits for what was noted."""

    def rows_of(self, written: Sequence[Any]) -> int:
        """How many rows were written."""
        return 0


class TaskSink(_AnySink):
    """A sink that is written where the rows are computed. It is pickled to executors."""

    def write(
        self, batches: Iterator[pa.RecordBatch], store: Store, batch: Batch, task: int
    ) -> Any:
        """Write the rows of one task, in their order; return what the driver needs to know."""
        raise AssertionError("a subclass writes")


class FrameSink(_AnySink):
    """A sink that is handed the DataFrame on the driver, with its rows not computed yet."""

    def take(self, rows: DataFrame, batch: Batch) -> int:
        """Take the rows; return how many there were, if that is known."""
        raise AssertionError("a subclass takes")


Sink: TypeAlias = TaskSink | FrameSink


def refuse_deletes(sink: Sink) -> None:
    """Refuse `late = update` where corrections would have no meaning."""
    if not sink.keeps_deletes:
        raise errors.sink_without_deletes(sink.kind)


def refuse_connect(sink: Sink, spark: SparkSession) -> None:
    """Refuse a sink of this process where batches run in another one."""
    if sink.in_this_process and on_connect(spark):
        raise errors.sink_not_on_connect(sink.kind)
