"""The reader: rows and watermark messages of one source, on whatever machine a task runs.

Between two offsets lie ranges of rows. They are packed into tasks, so that all cores work; the
message rides with the last of them. A range that can hold a row which Spark's operators would drop,
by the statistics of its chunks, is looked at row by row, and such rows are left out, or counted
later, as the policy says. All others go through as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidegate.eventtime.instants import LIMIT, Instant
from tidegate.eventtime.lateness import Late
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import EVENT_TIME, Log, questions_of
from tidegate.planning.batch import StreamPlan
from tidegate.planning.facts import Numbers, Spans
from tidegate.planning.policy import Strategy
from tidegate.spark.arrow_types import arrow_schema, cast
from tidegate.spark.gate.offsets import BEGINNING, Offset
from tidegate.spark.gate.packs import packed, row_type
from tidegate.spark.gate.planner import GatePlanner
from tidegate.spark.gate.spec import Gate
from tidegate.spark.gate.trick import WATERMARK
from tidegate.spark.rows import read_rows
from tidegate.spark.source_partitions import Read, pack, runs
from tidegate.spark.workers import in_worker


@dataclass(frozen=True)
class Judge:
    """Which rows of a doubtful range go through, and as of when.

    `behind` is the time up to which rows count later: as if at `at`.
    """

    plan: StreamPlan
    behind: Known
    at: Instant
    earliest: Instant
    """Spark cannot judge what lies before it."""

    @staticmethod
    def of(gate: Gate, offset: Offset, plan: StreamPlan) -> Judge:
        """The judge of the batch that led to an offset."""
        none = Spans.of([])
        small = replace(plan, start_cut={}, before={}, cut={}, arrived=none, late=none)
        timeless = offset.state.streams[gate.stream].strategy is Strategy.PROCESSING
        at = 0 if offset.judge is UNKNOWN else offset.judge + 1
        if timeless:
            # It is never late, only slow to commit; Spark would take it for late.
            return Judge(small, offset.judge, at, gate.earliest)
        if gate.policy.late is Late.NEXT and plan.closed is not UNKNOWN:
            return Judge(small, plan.closed - 1, plan.closed, gate.earliest)
        return Judge(small, UNKNOWN, at, gate.earliest)

    def kept(self, times: Numbers) -> tuple[Numbers, Numbers]:
        """The numbers of the rows that go through, and their times."""
        judged = self.plan.judge(times)
        away = judged.before_start | (times < self.earliest)
        later = np.zeros(len(times), dtype=np.bool_)
        if self.behind is UNKNOWN:
            away |= judged.lost
        elif self.plan.closed is UNKNOWN:
            later = times <= self.behind
        else:
            later = judged.lost
        chosen = np.flatnonzero(~away)
        return chosen, np.where(later, np.maximum(times, self.at), times)[chosen]

    @property
    def doubtful_below(self) -> Instant:
        """Only rows before this can be other than plain."""
        w, origin, behind = self.plan.watermark_before, self.plan.origin, self.behind
        known = [
            *([] if w is UNKNOWN else [w + 1]),
            *([] if origin is UNKNOWN else [origin]),
            *([] if behind is UNKNOWN else [behind + 1]),
        ]
        return max([self.earliest, *known])


@dataclass
class GateTask(InputPartition):
    """What one task gives out: ranges, those among them that are looked at, and a message."""

    reads: tuple[Read, ...] = ()
    looked_at: tuple[bool, ...] = ()
    judge: Judge | None = None
    message: Instant | None = None


@dataclass
class GateReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A source of the gate, as Spark's interface has it."""

    gate: Gate
    schema: StructType
    packs: bool = False
    opened: GatePlanner | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "opened": None}

    def _planner(self) -> GatePlanner:
        if self.opened is None:
            self.opened = GatePlanner(self.gate)
        return self.opened

    # ---- beside the driver ----

    def initialOffset(self) -> dict[str, Any]:
        """Where every query begins; Spark asks again in every replay of its first batch."""
        return dict(BEGINNING)

    def getDefaultReadLimit(self) -> ReadLimit:
        """All: the planner has limits of its own.

        Spark asks this of every source of a query before it asks any for an offset; so this is
        where each makes itself known to the others.
        """
        self._planner()
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """End this run with what there is now."""
        self._planner().stop_at_what_is_there()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch."""
        return self._planner().after(start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        offset = Offset.read(end)
        assert offset is not None, "a batch ends behind the beginning"
        log = self.gate.open_log()
        batch = offset.batch(self.gate, questions_of({self.gate.stream: log}))
        plan = batch.streams[self.gate.stream]
        message = None if offset.sent is UNKNOWN else offset.sent
        if plan.before == plan.cut:
            return [GateTask(message=message)]
        judge = Judge.of(self.gate, offset, plan)
        spans = log.overlapping(UNKNOWN, LIMIT, plan.before, plan.cut)
        doubtful = _by_partition(
            log.overlapping(UNKNOWN, judge.doubtful_below, plan.before, plan.cut)
        )
        tasks = [
            GateTask(reads, tuple(_meets(read, doubtful) for read in reads), judge)
            for reads in pack(runs(spans), self.gate.cores)
        ] or [GateTask()]
        tasks[-1].message = message
        return tasks

    # ---- on executors ----

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, and its message behind them."""
        assert isinstance(partition, GateTask)
        return in_worker(self._given(partition))

    def _given(self, partition: GateTask) -> Iterator[pa.RecordBatch]:
        wanted = arrow_schema(self.schema)
        given = wanted.remove(wanted.get_field_index(WATERMARK))
        typed = arrow_schema(row_type(self.schema)) if self.packs else given
        log = self.gate.open_log() if partition.reads else None
        for read, looked_at in zip(partition.reads, partition.looked_at, strict=True):
            assert log is not None, "there is something to read"
            judge = partition.judge if looked_at else None
            for batch in self._rows(log, read, judge):
                if batch.num_rows:
                    rows = cast(batch, typed)
                    rows = packed(rows, given) if self.packs else rows
                    yield with_watermark(rows, wanted)
        if partition.message is not None:
            yield _message(partition.message, wanted)

    def _rows(self, log: Log, read: Read, judge: Judge | None) -> Iterator[pa.RecordBatch]:
        columns = self.gate.columns
        extra = () if judge is None or EVENT_TIME in columns else (EVENT_TIME,)
        place = read.partition, read.start, read.end
        for batch in read_rows(log, *place, [*columns, *extra]):
            yield batch if judge is None else self._judged(batch, judge)

    def _judged(self, batch: pa.RecordBatch, judge: Judge) -> pa.RecordBatch:
        times = batch.column(EVENT_TIME).cast(pa.int64()).to_numpy()
        kept, moved = judge.kept(times)
        changed = not np.array_equal(moved, times[kept])
        if len(kept) < len(times):
            batch = batch.take(pa.array(kept))
        if changed:
            for name in {EVENT_TIME, self.gate.event_column}:
                place = batch.schema.get_field_index(name)
                kind = batch.schema.field(place)
                column = pc.cast(pa.array(moved), pa.timestamp("us", tz="UTC")).cast(kind.type)
                batch = batch.set_column(place, kind, column)
        return batch.select(list(self.gate.columns))


def _by_partition(spans: Spans) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    columns = (spans.partition.tolist(), spans.start.tolist(), spans.end.tolist())
    for place, start, end in zip(*columns, strict=True):
        found.setdefault(spans.names[place], []).append((start, end))
    return found


def _meets(read: Read, ranges: dict[str, list[tuple[int, int]]]) -> bool:
    return any(s < read.end and e > read.start for s, e in ranges.get(read.partition, ()))


def with_watermark(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with a watermark that is null."""
    known = dict(zip(rows.schema.names, rows.columns, strict=True))
    arrays = [known.get(f.name, pa.nulls(rows.num_rows, f.type)) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _message(watermark: Instant, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        pa.array([watermark], pa.int64()).cast(field.type)
        if field.name == WATERMARK
        else pa.nulls(1, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
