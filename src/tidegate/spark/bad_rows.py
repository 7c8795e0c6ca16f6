"""Bad rows of a batch, where the log was not written by us: routed once, with the job's name.

The store's writers keep bad rows out of a stream. In other logs readers meet them: rows without an
event time, with one that cannot be read, or one from the future. Tasks look for them among the rows
that are new in a batch, and write them to files of `<stream>.errors`; the batch's own catalog
transaction makes them visible.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.logs.log import OFFSET, REASON, Log, open_log
from tidegate.logs.store_log import StoreLog
from tidegate.planning.batch import BatchPlan
from tidegate.spark.frames import run_tasks
from tidegate.spark.late import MANIFEST, Owner
from tidegate.store.bad_rows import SCHEMA, SUFFIX
from tidegate.store.staging import Staged, stage
from tidegate.store.steps import reached
from tidegate.store.store import Store


@dataclass(frozen=True)
class BadFound:
    """Counts by (stream, partition), and files to be made visible."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    staged: tuple[Staged, ...] = ()


@dataclass(frozen=True)
class BadTask:
    """The bad rows in some new rows of one partition."""

    job: Owner
    stream: str
    log: Mapping[str, Any]
    partition: str
    start: int
    end: int
    batch: int

    def run(self) -> Iterator[pa.RecordBatch]:
        """In a task of Spark."""
        found = pickle.dumps(self.found())
        yield pa.RecordBatch.from_pydict({"manifest": [found]}, schema=MANIFEST)

    def found(self) -> BadFound:
        """Look for them, and stage them."""
        rows = open_log(self.log).bad_rows(self.partition, self.start, self.end)
        found = BadFound()
        if len(rows):
            found.counts[self.stream, self.partition] = len(rows)
            name = self.stream + SUFFIX
            place = f"{self.job.name}/{self.batch}"
            made = routed(self.job, self.partition, rows)
            staged = stage(self.job.store(), name, made, place, writer=self.job.name)
            reached("bad rows: staged")
            found = BadFound(found.counts, (staged,))
        return found


def routed(job: Owner, partition: str, rows: pa.Table) -> pa.Table:
    """Bad rows, with their offsets and reasons, as rows of `<stream>.errors`."""
    own = rows.drop_columns([OFFSET, REASON]).to_pylist()
    offsets = rows.column(OFFSET).to_pylist()
    now = job.store().clock()
    texts = [
        json.dumps({"partition": partition, "offset": offset, "row": row}, default=str)
        for row, offset in zip(own, offsets, strict=True)
    ]
    return pa.table(
        {
            "reason": rows.column(REASON),
            "column": pa.nulls(len(rows), pa.string()),
            "value": pa.nulls(len(rows), pa.string()),
            "row": texts,
            "writer": [job.name] * len(rows),
            "failed_at": pa.array([now] * len(rows)).cast(SCHEMA.field("failed_at").type),
        },
        schema=SCHEMA,
    )


def bad_tasks(job: Owner, store: Store, logs: Mapping[str, Log], batch: BatchPlan) -> list[BadTask]:
    """The work that the bad rows of a batch are; none where writers keep them out."""
    tasks: list[BadTask] = []
    for name, stream in batch.streams.items():
        log = logs[name]
        if isinstance(log, StoreLog):
            continue
        for partition, end in stream.cut.items():
            start = stream.before.get(partition, stream.start_cut.get(partition, 0))
            if start < end:
                made = (name, log.describe(), partition, start, end, batch.batch)
                tasks.append(BadTask(job, *made))
    for name in dict.fromkeys(task.stream for task in tasks):
        errors_stream(store, name)
    return tasks


def errors_stream(store: Store, stream: str) -> str:
    """The stream of bad rows; it is created when it is not there."""
    name = stream + SUFFIX
    if name not in store.list_streams():
        store.create_stream(name, SCHEMA, exist_ok=True, event_column="failed_at", max_future=None)
    return name


def bad_rows(
    spark: SparkSession, job: Owner, store: Store, logs: Mapping[str, Log], batch: BatchPlan
) -> BadFound:
    """Find, count and stage the bad rows among those that are new in a batch."""
    tasks = bad_tasks(job, store, logs, batch)
    if not tasks:
        return BadFound()
    counts: Counter[tuple[str, str]] = Counter()
    staged: list[Staged] = []
    for row in run_tasks(spark, [task.run for task in tasks], MANIFEST).collect():
        found: BadFound = pickle.loads(row.manifest)
        counts += found.counts
        staged += found.staged
    return BadFound(counts, tuple(staged))
