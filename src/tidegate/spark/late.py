"""Late rows of a batch: judged once, counted, and the lost ones routed once.

Which rows were new under which watermark stands in the two states of a batch, so its late rows are
a deterministic read of the log, and where the statistics show that there can be none nothing is
read. Tasks judge, count, and write the lost ones to files of `<stream>.late`; the batch's own
catalog transaction makes them visible. So it happens once, whatever is retried or replayed.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.eventtime.lateness import Late
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import EVENT_TIME, Log, open_log
from tidegate.planning.batch import BatchPlan, StreamPlan
from tidegate.planning.facts import Spans
from tidegate.planning.policy import Policy
from tidegate.spark.frames import run_tasks
from tidegate.spark.rows import StreamRows, rows_of
from tidegate.store.staging import Staged, stage
from tidegate.store.steps import reached
from tidegate.store.store import Store

SUFFIX: Final = ".late"
_TIME: Final = pa.timestamp("us", tz="UTC")
COLUMNS: Final = (
    pa.field("late_time", _TIME),
    pa.field("late_job", pa.string()),
    pa.field("late_batch", pa.int64()),
    pa.field("late_watermark", _TIME),
)
"""What a late row has beside its own columns: its time, who lost it, when, and under which W."""

MANIFEST: Final = pa.schema([("manifest", pa.binary())])


class Owner(Protocol):
    """Whose rows they are: a job, or a source of one."""

    @property
    def name(self) -> str:
        """The name that routed rows carry."""

    @property
    def policy(self) -> Policy:
        """What becomes of lost rows."""

    @property
    def cores(self) -> int:
        """How many tasks may look for them at once."""

    def store(self) -> Store:
        """Where they are routed to."""


@dataclass(frozen=True)
class LateRows:
    """What was found in a batch: counts by (stream, partition), and files to be made visible."""

    late: Counter[tuple[str, str]] = field(default_factory=Counter)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    staged: tuple[Staged, ...] = ()

    def with_(self, other: LateRows) -> LateRows:
        """Both together."""
        staged = (*self.staged, *other.staged)
        return LateRows(self.late + other.late, self.lost + other.lost, staged)


@dataclass(frozen=True)
class LateTask:
    """The late rows of some spans of one stream."""

    job: Owner
    stream: str
    rows: StreamRows
    plan: StreamPlan
    batch: int
    routed: bool
    kept: bool
    """Those that nothing can use any more still count, in the next release."""

    def run(self) -> Iterator[pa.RecordBatch]:
        """In a task of Spark."""
        found = pickle.dumps(self.found())
        yield pa.RecordBatch.from_pydict({"manifest": [found]}, schema=MANIFEST)

    def found(self) -> LateRows:
        """Judge, count and stage."""
        found = LateRows()
        for partition, batch in self.rows.by_partition():
            times = batch.column(EVENT_TIME).cast(pa.int64()).to_numpy()
            judged = self.plan.judge(times)
            lost = judged.lost & (not self.kept)
            name = (self.stream, partition)
            found.late[name] += int(judged.late.sum())
            found.lost[name] += int(lost.sum())
            if self.routed and lost.any():
                staged = self._staged(batch.filter(pa.array(lost)))
                found = replace(found, staged=(*found.staged, staged))
        return found

    def _staged(self, rows: pa.RecordBatch) -> Staged:
        count, w = rows.num_rows, self.plan.watermark_before
        own = [name for name in rows.schema.names if name != EVENT_TIME]
        extra = [
            rows.column(EVENT_TIME),
            pa.repeat(pa.scalar(self.job.name), count),
            pa.repeat(pa.scalar(self.batch, pa.int64()), count),
            pa.repeat(pa.scalar(None if w is UNKNOWN else w, pa.int64()), count).cast(_TIME),
        ]
        table = pa.table(
            [*(rows.column(name) for name in own), *extra],
            names=[*own, *(column.name for column in COLUMNS)],
        )
        place = f"{self.job.name}/{self.batch}"
        name = self.stream + SUFFIX
        staged = stage(self.job.store(), name, table, place, writer=self.job.name)
        reached("late rows: staged")
        return staged


def late_tasks(
    job: Owner,
    store: Store,
    logs: Mapping[str, Log],
    batch: BatchPlan,
    since: Known = UNKNOWN,
) -> list[LateTask]:
    """The work that the late rows of a batch are; none where statistics show that there is none.

    Rows before `since` are none of it.
    """
    return [
        task
        for name, stream in batch.streams.items()
        if len(stream.late)
        for task in _tasks(job, store, logs[name], name, stream, batch.batch, since)
    ]


def late_rows(
    spark: SparkSession, job: Owner, store: Store, logs: Mapping[str, Log], batch: BatchPlan
) -> LateRows:
    """Judge, count and stage the late rows of a batch."""
    tasks = late_tasks(job, store, logs, batch)
    if not tasks:
        return LateRows()
    found = LateRows()
    for row in run_tasks(spark, [task.run for task in tasks], MANIFEST).collect():
        found = found.with_(pickle.loads(row.manifest))
    return found


def late_stream(store: Store, log: Log, name: str) -> str:
    """The stream of late rows; it is created, or gets the columns that were added since."""
    wanted = pa.schema([*(f.with_nullable(True) for f in log.schema), *COLUMNS])
    if name not in store.list_streams():
        # Timed by its commit: a late row is news about the past.
        store.create_stream(name, wanted, exist_ok=True)
        return name
    there = store.describe(name).config.schema.names
    added = [column for column in wanted if column.name not in there]
    if added:
        store.alter_stream(name, add_columns=added)
    return name


def _tasks(
    job: Owner,
    store: Store,
    log: Log,
    name: str,
    stream: StreamPlan,
    batch: int,
    since: Known,
) -> list[LateTask]:
    routed = routes(job.policy)
    log = open_log(log.describe())  # as it is now: it may have more columns than the job knows
    if routed:
        late_stream(store, log, name + SUFFIX)
    w = stream.watermark_before
    assert w is not UNKNOWN, "without a watermark no row is late"
    none = Spans.of([])
    judge = replace(stream, start_cut={}, before={}, cut={}, arrived=none, late=none)
    columns = [*log.schema.names, EVENT_TIME]
    shares = np.array_split(np.arange(len(stream.late)), min(job.cores, len(stream.late)))
    return [
        LateTask(
            job,
            name,
            rows_of(log, stream.late.where(share), columns, (since, w + 1)),
            judge,
            batch,
            routed,
            job.policy.late is Late.NEXT,
        )
        for share in shares
    ]


def routes(policy: Policy) -> bool:
    """Whether lost rows are kept in a stream of their own."""
    return policy.late in (Late.ROUTE, Late.UPDATE)
