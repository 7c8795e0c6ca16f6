"""A steady log of many partitions: facts for the planner as columns, made without a loop.

Every partition has had one span a minute, and each plan finds one new span in each of them. The log
answers what a planner may ask from the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning import (
    Facts,
    Partitions,
    PlannerState,
    Policy,
    Query,
    Spans,
    StreamFacts,
    plan,
)
from tidegate.planning.facts import Numbers, Offsets, Positions

STREAM = "orders"
MINUTE = timedelta(minutes=1)
QUERY = Query.windows([STREAM], MINUTE)


@dataclass(frozen=True)
class SteadyLog:
    """`partitions` partitions; span n of each covers about the n-th minute."""

    partitions: int
    spans: int

    def facts(self, planned: int) -> Facts:
        """What is there, when the first `planned` spans of every partition have been planned."""
        count = self.partitions
        # Made anew, as a log does: the planner finds equal names, not the same objects.
        names = tuple(f"orders/{i}" for i in range(count))
        none = np.zeros(count, dtype=np.bool_)
        partitions = Partitions(
            names=names,
            start=np.zeros(count, dtype=np.int64),
            latest=self.spans * self._rows_of_a_span(),
            sealed=none,
            ended=none,
            low=np.arange(count) / count,
            high=np.arange(1, count + 1) / count,
            arrived_at=np.full(count, self.spans * micros(MINUTE), dtype=np.int64),
            has_arrival=~none,
        )
        return Facts({STREAM: StreamFacts(partitions, self._columns(planned, names))}, self)

    def overlapping(
        self, stream: str, a: Known, b: Instant, start: Offsets, below: Offsets
    ) -> Spans:
        """The spans that can hold a time in [a, b); all of them lie between the cuts."""
        first = 0 if a is UNKNOWN else max(a // micros(MINUTE) - 1, 0)
        spans = self._columns(first, tuple(below))
        inside = spans.min_time < b
        if a is not UNKNOWN:
            inside &= spans.max_time >= a
        return spans.where(inside)

    def cut_at(self, stream: str, time: Instant) -> Offsets:
        """Where the spans that reach `time` begin."""
        first = min(max(time // micros(MINUTE) - 1, 0), self.spans) * self._rows_of_a_span()
        return {f"orders/{i}": offset for i, offset in enumerate(first.tolist())}

    def _rows_of_a_span(self) -> Numbers:
        """Each partition has spans of its own size."""
        return np.random.default_rng(9).integers(500, 1_500, self.partitions)

    def _columns(self, first: int, names: tuple[str, ...]) -> Spans:
        partition: Positions = np.repeat(np.arange(self.partitions), self.spans - first)
        number: Numbers = np.tile(np.arange(first, self.spans), self.partitions)
        # Partitions are up to half a minute apart, each always by the same amount.
        offset = np.random.default_rng(7).integers(0, micros(MINUTE) // 2, self.partitions)
        begins = number * micros(MINUTE) + offset[partition]
        rows = self._rows_of_a_span()[partition]
        return Spans(
            names=names,
            partition=partition,
            start=number * rows,
            end=(number + 1) * rows,
            rows=rows,
            bytes=rows * 100,
            min_time=begins,
            max_time=begins + micros(MINUTE) - 1,
            timed=np.ones(len(partition), dtype=np.bool_),
            disorder=np.zeros(len(partition), dtype=np.int64),
        )


def steady_state(partitions: int, policy: Policy) -> tuple[PlannerState, Facts]:
    """A state after three plans, and facts with one new span in every partition."""
    state = PlannerState.fresh("bench", [STREAM])
    for planned in range(3):
        facts = SteadyLog(partitions, planned + 1).facts(planned)
        state, _ = plan(state, facts, QUERY, policy, now=0)
    return state, SteadyLog(partitions, 4).facts(3)
