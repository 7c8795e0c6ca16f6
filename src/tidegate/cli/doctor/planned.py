"""The same input under the planner of Tidegate: a watermark per partition, and their minimum.

Nothing is modelled here. The planner is given the rows as they arrive, batch by batch, and its own
plans say which rows are lost and how far the watermark is. All partitions are known from the start,
and none falls idle: whoever is silent is waited for.

>>> arrivals = Arrivals.of(["a", "b"], [("a", [0, 300_000_000]), ("b", [20_000_000])])
>>> told = planned(arrivals, timedelta(minutes=1), tolerance=timedelta(0))
>>> told.lost.tolist(), told.watermarks
([False, False, False], [UNKNOWN, 19999999])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from tidegate.cli.doctor.arrivals import Arrivals
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.span_table import inner_disorder
from tidegate.planning.facts import (
    Facts,
    Flags,
    Numbers,
    Offsets,
    Partitions,
    Spans,
    StreamFacts,
)
from tidegate.planning.plan import plan
from tidegate.planning.policy import Policy, Release
from tidegate.planning.query import Query
from tidegate.planning.state import PlannerState

STREAM: Final = "input"
_ROW: Final = 100
"""Bytes of a row; where there is no limit they decide nothing."""


@dataclass(frozen=True, eq=False)
class PlannedOutcome:
    """Which rows are lost, and the watermark after every batch."""

    lost: Flags
    watermarks: list[Known]


def planned(
    arrivals: Arrivals,
    window: timedelta | None,
    tolerance: timedelta,
    *,
    done: Callable[[float], None] = lambda share: None,
) -> PlannedOutcome:
    """What the planner does with these arrivals; `done` is told which share of them it has had."""
    query = Query.ordered(STREAM) if window is None else Query.windows([STREAM], window)
    policy = Policy(release=Release.TIME, tolerance=tolerance, idle_after=None)
    state = PlannerState.fresh("doctor", [STREAM])
    log = _Arriving(arrivals)
    lost, judged = (np.zeros(arrivals.rows, dtype=np.bool_) for _ in range(2))
    watermarks: list[Known] = []
    for number in range(len(arrivals.ends)):
        state, batch = plan(state, log.facts(number), query, policy, now=0)
        for stream in batch.streams.values():
            for name, (start, end) in stream.ranges().items():
                places = log.places(name, start, end)
                lost[places] = stream.judge(arrivals.times[places]).lost
                judged[places] = True
        watermarks.append(state.watermark)
        done((number + 1) / len(arrivals.ends))
    assert judged.all(), "without limits a plan reads all there is"
    return PlannedOutcome(lost, watermarks)


def largest_disorder(arrivals: Arrivals) -> timedelta:
    """How far a row lies behind an earlier one of its own partition, at the most.

    With this tolerance the planner loses nothing, whatever the batches are.
    """
    order = np.argsort(arrivals.partition, kind="stable")
    parts = np.split(arrivals.times[order], np.cumsum(arrivals.counts())[:-1])
    return timedelta(microseconds=max(inner_disorder(part) for part in parts))


class _Arriving:
    """A log that grows by a batch at a time; what is asked about the past never changes.

    All spans are found beforehand, one for each partition in each batch.
    """

    def __init__(self, arrivals: Arrivals) -> None:
        self._names = arrivals.names
        self._successors = arrivals.successors
        counts = arrivals.counts()
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self._first = dict(zip(self._names, first.tolist(), strict=True))
        self._all = dict(zip(self._names, counts.tolist(), strict=True))
        # The rows of every partition, by their place among the arrivals: its offsets are theirs.
        self._order = np.argsort(arrivals.partition, kind="stable")
        self._batch, self._spans = _spans_of(arrivals, self._order, first)
        # Where the spans of each batch stand, without looking through all of them.
        self._by_batch = np.argsort(self._batch, kind="stable")
        edges = np.arange(len(arrivals.ends) + 1)
        self._edges = np.searchsorted(self._batch[self._by_batch], edges)
        self._before: dict[str, set[str]] = {name: set() for name in self._names}
        for name, heirs in self._successors.items():
            for heir in heirs:
                self._before[heir].add(name)
        # Those that follow others are seen when these are sealed.
        self._latest = {name: 0 for name in self._names if not self._before[name]}

    def places(self, name: str, start: int, end: int) -> Numbers:
        """The places of some offsets of a partition among the arrivals."""
        first = self._first[name]
        return self._order[first + start : first + end]

    def facts(self, number: int) -> Facts:
        """What the planner sees when a batch has come: all before it has been read."""
        chosen = np.sort(self._by_batch[self._edges[number] : self._edges[number + 1]])
        new = self._spans.where(chosen)
        for code, end in zip(new.partition.tolist(), new.end.tolist(), strict=True):
            self._latest[self._names[code]] = end
        over = [
            n for n, end in self._latest.items() if n in self._successors and end == self._all[n]
        ]
        for name in over:
            for heir in self._successors[name]:
                self._latest.setdefault(heir, 0)
        heirs = {name: self._successors[name] for name in over if self._successors[name]}
        partitions = Partitions.of(
            self._latest,
            sealed=heirs,
            ended=[name for name in over if name not in heirs],
            successors=heirs,
        )
        return Facts({STREAM: StreamFacts(partitions, new)}, self)

    def overlapping(
        self, stream: str, a: Known, b: Instant, start: Offsets, below: Offsets
    ) -> Spans:
        """The spans between two cuts that can hold a time in [a, b); cuts are those of batches."""
        spans = self._spans
        begin, end = self._column(start), self._column(below)
        inside = (spans.min_time < b) & (spans.end > begin[spans.partition])
        inside &= spans.start < end[spans.partition]
        return spans.where(inside if a is UNKNOWN else inside & (spans.max_time >= a))

    def cut_at(self, stream: str, time: Instant) -> Offsets:
        """Nobody asks: a query of the doctor begins at the beginning."""
        raise AssertionError("a query of the doctor begins at the beginning")

    def _column(self, cut: Offsets) -> Numbers:
        """A cut as a column; what lies before one of its partitions is wholly behind it."""
        whole = {name: self._all[name] for name in self._ancestors(cut)}
        return np.array([cut.get(n, whole.get(n, 0)) for n in self._names], dtype=np.int64)

    def _ancestors(self, cut: Offsets) -> set[str]:
        found: set[str] = set()
        todo = list(cut) if self._successors else []
        while todo:
            new = self._before[todo.pop()] - found
            found |= new
            todo += new
        return found


def _spans_of(arrivals: Arrivals, order: Numbers, first: Numbers) -> tuple[Numbers, Spans]:
    """The batch of every span, and the spans, by partition and offset."""
    codes, times = arrivals.partition[order], arrivals.times[order]
    batch = np.searchsorted(arrivals.ends, order, side="right")
    begins = np.flatnonzero(np.diff(batch, prepend=-1) | np.diff(codes, prepend=-1))
    ends = np.append(begins[1:], len(order))
    partition = codes[begins].astype(np.intp)
    rows = ends - begins
    return batch[begins], Spans(
        names=arrivals.names,
        partition=partition,
        start=begins - first[partition],
        end=ends - first[partition],
        rows=rows,
        bytes=rows * _ROW,
        min_time=np.minimum.reduceat(times, begins),
        max_time=np.maximum.reduceat(times, begins),
        timed=np.ones(len(begins), dtype=np.bool_),
        # Only a tolerance that chooses itself asks for it.
        disorder=np.zeros(len(begins), dtype=np.int64),
    )
