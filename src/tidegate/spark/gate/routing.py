"""The late and bad rows of a batch of the gate, found where it is planned.

The tasks of the batch have left them out; here the same rows are read once more, of the few spans
that can hold any, counted, and written to files that nobody sees until the planner's transaction.
Rows before 1970 are bad rows here: Spark's stateful operators begin at that time. Those that drop
what lies at the watermark begin just behind it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.log import EVENT_TIME, OFFSET, REASON, Log
from tidegate.planning.batch import BatchPlan
from tidegate.spark.bad_rows import bad_tasks, errors_stream, routed
from tidegate.spark.gate.spec import EPOCH, Gate
from tidegate.spark.late import LateRows, late_tasks
from tidegate.spark.rows import rows_of
from tidegate.spark.totals import ByPartition, Counted
from tidegate.store.staging import Staged, stage
from tidegate.store.store import Store

ANCIENT: Final = "before 1970"
FIRST: Final = "the first instant of 1970"
"""The reasons of rows that Spark could not judge."""


@dataclass(frozen=True)
class Routed:
    """What was found: counts by (stream, partition), and files to be made visible."""

    late: ByPartition = field(default_factory=Counter)
    lost: ByPartition = field(default_factory=Counter)
    bad: ByPartition = field(default_factory=Counter)
    staged: tuple[Staged, ...] = ()

    def counted(self, told: dict[str, Any]) -> Counted:
        """As what a batch has counted."""
        return Counted(told=told, late=self.late, lost=self.lost, bad=self.bad)


def route(gate: Gate, store: Store, log: Log, batch: BatchPlan) -> Routed:
    """Find, count and stage the late and bad rows of a batch that has become durable."""
    logs, late = {gate.stream: log}, LateRows()
    for task in late_tasks(gate, store, logs, batch, since=gate.earliest):
        late = late.with_(task.found())
    bad, staged = _ancient(gate, store, log, batch)
    for found in (task.found() for task in bad_tasks(gate, store, logs, batch)):
        bad += found.counts
        staged += found.staged
    return Routed(late.late, late.lost, bad, (*late.staged, *staged))


def _ancient(
    gate: Gate, store: Store, log: Log, batch: BatchPlan
) -> tuple[ByPartition, list[Staged]]:
    stream = batch.streams[gate.stream]
    counts: ByPartition = Counter()
    staged: list[Staged] = []
    if stream.before == stream.cut:
        return counts, staged
    spans = log.overlapping(UNKNOWN, gate.earliest, stream.before, stream.cut)
    if not len(spans):
        return counts, staged
    log, origin = gate.open_log(), stream.origin  # with the columns that it has now
    columns = [*log.schema.names, EVENT_TIME, OFFSET]
    for partition, rows in rows_of(log, spans, columns, (origin, gate.earliest)).by_partition():
        if rows.num_rows:
            name = errors_stream(store, gate.stream)
            counts[gate.stream, partition] += rows.num_rows
            table = pa.Table.from_batches([rows]).drop_columns([EVENT_TIME])
            ancient = pc.less(rows.column(EVENT_TIME).cast(pa.int64()), EPOCH)
            table = table.append_column(REASON, pc.if_else(ancient, ANCIENT, FIRST))
            made = routed(gate, partition, table)
            place = f"{gate.name}/{batch.batch}"
            staged.append(stage(store, name, made, place, writer=gate.name))
    return counts, staged
