"""The batch plan: what one batch reads, and what is known when it has.

A plan is a value. It says, per stream, which offsets are new; which of them can hold late rows at
all; the watermark before and after; in time order also the interval that is released and the tasks
that read it; and for every watermark that is held back, who holds it and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from tidegate.eventtime.lateness import LastUse, late_rows
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Flags, Numbers, Offsets, Spans
from tidegate.planning.slices import Interval, Slice
from tidegate.planning.watermarks import merged


class Reason(Enum):
    """Why a watermark does not advance."""

    NO_DATA = "no data yet"
    LATEST = "at its latest event"
    SEALED = "sealed, waiting for the partitions that share its successors"
    BEHIND = "behind"
    THROTTLED = "throttled"
    ALIGNED = "aligned"
    PAUSED = "paused"
    UNREADABLE = "unreadable"
    MARKS = "waiting for marks"
    CLOCK = "at the clock"


@dataclass(frozen=True)
class Hold:
    """Who holds a stream's watermark: a partition, or a writer whose marks are waited for.

    With neither it is the stream itself: it has no partition yet, or it follows the clock.
    """

    stream: str
    reason: Reason
    partition: str | None = None
    writer: str | None = None
    detail: str = ""

    def __str__(self) -> str:
        who = self.stream
        if self.writer is not None:
            who = f"{who}, writer {self.writer}"
        elif self.partition is not None:
            who = f"{who}, partition {self.partition}"
        why = f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value
        return f"{who}: {why}"


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """One stream's part of a batch.

    `arrived` are the new spans, from the cut `before` to the cut `cut`; `late` are those of them
    that can hold late rows, which is none when all their times lie above the watermark. A new row
    is late when its time is at or before `watermark_before`; lost when its last use lies at or
    before `closed`; none of ours when its time lies before `origin`. `number`, `known` and `idle`
    are what the stream brought into the merge: a row per partition in `names`, or, without names,
    one row for all of it.
    """

    start_cut: Offsets
    before: Offsets
    cut: Offsets
    arrived: Spans
    late: Spans
    use: LastUse
    watermark_before: Known
    closed: Known
    origin: Known
    names: tuple[str, ...]
    number: Numbers
    known: Flags
    idle: Flags
    rebalanced: bool

    @property
    def stream_number(self) -> Known:
        """What it says in all: nothing before this is still to come in the stream.

        Nobody waits for a partition that has vanished or ended, so none of them holds it.
        """
        found = merged([(self.number, self.known, self.idle)]).current_watermark()
        return found if isinstance(found, int) else UNKNOWN

    def judge(self, times: Numbers) -> Judgement:
        """Tell late, lost and foreign rows apart, for new rows with these times."""
        foreign = (
            np.zeros(len(times), dtype=np.bool_) if self.origin is UNKNOWN else times < self.origin
        )
        late = late_rows(times, self.watermark_before) & ~foreign
        return Judgement(late, self.use.lost_rows(times, self.closed) & ~foreign, foreign)

    def ranges(self) -> dict[str, tuple[int, int]]:
        """The new offsets per partition: [start, end)."""
        if not len(self.arrived):
            return {}
        first = np.unique(self.arrived.partition, return_index=True)[1]
        last = np.concatenate([first[1:], [len(self.arrived)]]) - 1
        return {
            self.arrived.names[self.arrived.partition[i]]: (
                int(self.arrived.start[i]),
                int(self.arrived.end[j]),
            )
            for i, j in zip(first, last, strict=True)
        }


class Judgement(NamedTuple):
    """What new rows are: late ones, those of them that are lost, and those before the start."""

    late: Flags
    lost: Flags
    before_start: Flags


@dataclass(frozen=True)
class Idleness:
    """How the streams of a plan stand, for those who plan other streams of the same query.

    `idle`: nobody waits for any of them. `ended`: all have been read to their end, for good.
    `closing`: the time at which everything that was seen has had its last use.
    """

    idle: bool = False
    ended: bool = False
    closing: Known = UNKNOWN


@dataclass(frozen=True)
class Correction:
    """With `late = update`: windows that end in (a, b] are run again, below both cuts."""

    interval: Interval


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """A batch.

    `frontier` is a number: no later batch gives out a result before it, and `frontier_before` is
    what the batch before said of that. `moved` says whether there is anything to run; a plan that
    moves nothing has no streams.
    """

    lineage: str
    run: int
    batch: int
    moved: bool
    streams: Mapping[str, StreamPlan]
    watermark_before: Known
    watermark: Known
    frontier_before: Known
    frontier: Known
    slice: Slice | None = None
    correction: Correction | None = None
    finished: bool = False
    holds: tuple[Hold, ...] = ()
    warnings: tuple[str, ...] = ()
    standing: Idleness = Idleness()

    @property
    def interval(self) -> Interval | None:
        """The interval that is released, in time order."""
        return self.slice.interval if self.slice else None

    @property
    def rows_arrived(self) -> int:
        """How many rows are new."""
        return sum(int(stream.arrived.rows.sum()) for stream in self.streams.values())

    @property
    def rows_read(self) -> int:
        """How many rows are read: the new ones, or those of the slice's tasks."""
        return self.slice.rows_read if self.slice else self.rows_arrived

    @property
    def advanced(self) -> bool:
        """Whether the watermark moved."""
        return self.watermark is not UNKNOWN and self.watermark != self.watermark_before

    @property
    def emitted(self) -> bool:
        """Whether the frontier moved, so that whoever follows is told of a new one."""
        return self.frontier is not UNKNOWN and self.frontier != self.frontier_before
