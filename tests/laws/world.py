"""A world to plan in: random scripts over a log in memory, and an account of every row.

A script is a list of small acts: append, scale, add, hide, compact, plan, crash, restart. The
`World` carries them out and keeps, for every row ever appended, what became of it: so a law can say
that each was released once, or used late, or lost once, and that none was skipped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning import (
    BatchPlan,
    Late,
    PlannerState,
    Policy,
    Pressure,
    Query,
    Release,
    Spans,
    plan,
)
from tidegate.testing import MemoryLog

STREAM = "rows"
Row = tuple[str, int]
Act = tuple[Any, ...]

times = st.integers(-20, 200)
acts = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 5), st.lists(times, min_size=1, max_size=5)),
    st.tuples(st.just("append"), st.integers(0, 5), st.lists(times, min_size=1, max_size=5)),
    st.tuples(st.just("plan"), st.sampled_from([None, None, 1, 3, 10])),
    st.tuples(st.just("plan"), st.sampled_from([None, None, 1, 3, 10])),
    st.tuples(st.just("crash"), st.sampled_from([None, 2])),
    st.tuples(st.just("restart")),
    st.tuples(st.just("split"), st.integers(0, 5)),
    st.tuples(st.just("merge"), st.integers(0, 5)),
    st.tuples(st.just("add")),
    st.tuples(st.just("hide"), st.integers(0, 5)),
    st.tuples(st.just("show")),
    st.tuples(st.just("compact"), st.integers(0, 5)),
    st.tuples(st.just("pause"), st.integers(0, 5)),
    st.tuples(st.just("resume")),
)
scripts = st.lists(acts, min_size=1, max_size=25)
calm_acts = acts.filter(lambda act: act[0] not in ("hide", "show", "add"))
calm_scripts = st.lists(calm_acts, min_size=1, max_size=25)


@dataclass
class World:
    """A log, a query on it, and the account of every row."""

    query: Query
    policy: Policy
    partitions: int = 2
    log: MemoryLog = field(default_factory=MemoryLog)
    clock: int = 0
    open: dict[str, tuple[float, float]] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    paused: dict[tuple[str, str], str] = field(default_factory=dict)
    plans: list[BatchPlan] = field(default_factory=list)
    states: list[PlannerState] = field(default_factory=list)
    arrived: Counter[Row] = field(default_factory=Counter)
    released: Counter[Row] = field(default_factory=Counter)
    used_late: Counter[Row] = field(default_factory=Counter)
    lost: Counter[Row] = field(default_factory=Counter)
    late: Counter[Row] = field(default_factory=Counter)
    order: list[Row] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        share = 1 / self.partitions
        self.open = {f"{i}": (i * share, (i + 1) * share) for i in range(self.partitions)}
        self.number = self.partitions
        self.log.add_stream(STREAM, list(self.open))
        self.state = PlannerState.fresh("law", [STREAM])

    # ---- acts ----

    def run(self, script: list[Act]) -> World:
        """Carry out a script."""
        for act, *arguments in script:
            getattr(self, act)(*arguments)
        return self

    def append(self, which: int, rows: list[int]) -> None:
        """Append to one of the open partitions."""
        self.log.append(STREAM, self._pick(which), rows)

    def split(self, which: int) -> None:
        """Seal a partition and open two."""
        name = self._pick(which)
        low, high = self.open.pop(name)
        middle = (low + high) / 2
        opened = {self._fresh(): (low, middle), self._fresh(): (middle, high)}
        self.log.scale(STREAM, [name], opened)
        self.open.update(opened)

    def merge(self, which: int) -> None:
        """Seal two neighbours and open one."""
        name = self._pick(which)
        low, high = self.open[name]
        after = [n for n, (first, _) in self.open.items() if first == high]
        if after:
            joined = {self._fresh(): (low, self.open[after[0]][1])}
            self.log.scale(STREAM, [name, after[0]], joined)
            del self.open[name], self.open[after[0]]
            self.open.update(joined)

    def add(self) -> None:
        """Add a partition nobody preceded."""
        name = self._fresh()
        self.log.add_partition(STREAM, name)
        self.open[name] = (0.0, 1.0)

    def hide(self, which: int) -> None:
        """Let a partition vanish that is in the merge."""
        name = self._pick(which)
        if name in self.state.streams[STREAM].names:
            self.log.hide(STREAM, name)
            self.hidden.append(name)

    def show(self) -> None:
        """Let all return."""
        for name in self.hidden:
            self.log.hide(STREAM, name, hidden=False)
        self.hidden.clear()

    def compact(self, which: int) -> None:
        """Join the spans of a partition."""
        self.log.compact(STREAM, self._pick(which))

    def pause(self, which: int) -> None:
        """Pause a partition."""
        self.paused[STREAM, self._pick(which)] = "by hand"

    def resume(self) -> None:
        """Resume all."""
        self.paused.clear()

    def plan(self, max_rows: int | None = None) -> BatchPlan:
        """Plan a batch, and carry it out."""
        policy = replace(self.policy, max_rows=max_rows)
        self.clock += 1
        pressure = Pressure(paused=dict(self.paused))
        facts = self.log.facts(self.state)
        after, batch = plan(self.state, facts, self.query, policy, self.clock, pressure=pressure)
        if not batch.moved:
            assert after is self.state
        self._account(batch)
        self.state = after
        self.plans.append(batch)
        self.states.append(after)
        return batch

    def crash(self, max_rows: int | None) -> None:
        """Plan a batch that is never logged."""
        policy = replace(self.policy, max_rows=max_rows)
        plan(self.state, self.log.facts(self.state), self.query, policy, self.clock)

    def restart(self) -> None:
        """Go on from the JSON of the state."""
        text = self.state.to_json()
        copy = PlannerState.from_json(text)
        assert copy.same_as(self.state)
        assert copy.to_json() == text
        self.state = copy.begin_run()

    def drain(self) -> World:
        """Bring everything back, end the log, and plan until the query has finished."""
        self.show()
        self.resume()
        for name in list(self.open):
            self.log.end(STREAM, name)
        for _ in range(80):
            if self.plan(5).finished:
                return self
        raise AssertionError(f"the query does not finish: {self.plans[-1].holds}")

    # ---- the account ----

    def time(self, row: Row) -> int:
        """The event time of a row."""
        return self.log.read(STREAM, row[0], row[1], row[1] + 1)[0]

    def all_rows(self) -> list[Row]:
        """Every row there is."""
        return [(n, i) for n, rows in self.log.rows(STREAM).items() for i in range(len(rows))]

    def _account(self, batch: BatchPlan) -> None:
        if not batch.moved:
            return
        stream = batch.streams[STREAM]
        in_late_spans = {
            (stream.late.names[p], i)
            for p, start, end in zip(
                stream.late.partition, stream.late.start, stream.late.end, strict=True
            )
            for i in range(int(start), int(end))
        }
        for name, (start, end) in stream.ranges().items():
            for i in range(start, end):
                self._arrive((name, i), batch, (name, i) in in_late_spans)
        if batch.slice:
            for task in batch.slice.tasks:
                low, high = task.interval.a, task.interval.b
                self._release_between(task.reads[STREAM], low, high)
                if STREAM in task.behind:
                    assert batch.interval is not None
                    self._release_between(task.behind[STREAM], UNKNOWN, batch.interval.a)

    def _arrive(self, row: Row, batch: BatchPlan, in_late_span: bool) -> None:
        self.arrived[row] += 1
        judged = batch.streams[STREAM].judge(np.array([self.time(row)]))
        if judged.late[0]:
            assert in_late_span, "a late row lies in a span that is said to have none"
            self.late[row] += 1
        if judged.lost[0]:
            assert judged.late[0], "every lost row is late"
            self.lost[row] += 1
        elif self.policy.release is Release.TIME and self._below_a(row):
            self.used_late[row] += 1

    def _below_a(self, row: Row) -> bool:
        return self.state.released is not UNKNOWN and self.time(row) < self.state.released

    def _release_between(self, spans: Spans, low: Known, high: Known) -> None:
        assert high is not UNKNOWN
        for p, start, end in zip(spans.partition, spans.start, spans.end, strict=True):
            for i in range(int(start), int(end)):
                row = (spans.names[p], i)
                if (low is UNKNOWN or self.time(row) >= low) and self.time(row) < high:
                    self.released[row] += 1
                    self.order.append(row)

    def _pick(self, which: int) -> str:
        return list(self.open)[which % len(self.open)]

    def _fresh(self) -> str:
        self.number += 1
        return f"{self.number - 1}"


def micro(value: int) -> timedelta:
    """A duration in microseconds: the unit of these worlds."""
    return timedelta(microseconds=value)


def in_time(late: Late = Late.ROUTE, tolerance: int = 0, **more: Any) -> Policy:
    """A policy that releases in time order."""
    return Policy(
        release=Release.TIME, late=late, tolerance=micro(tolerance), idle_after=None, **more
    )
