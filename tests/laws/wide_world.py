"""A wider world: several streams with ways of their own, timers, marks, ends and vanishing.

A script is a list of small acts, as in `world.py`, each on one of the streams. The `WideWorld`
carries them out and records every plan with what it was made from, so that a law can look at all of
it afterwards with the eyes of one who sees the whole log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tidegate.marks.cut import Cut
from tidegate.marks.mark import Mark
from tidegate.planning import (
    BatchPlan,
    Facts,
    IdleTimers,
    Late,
    PlannerState,
    Policy,
    Pressure,
    Query,
    Spans,
    WriterFact,
    plan,
)
from tidegate.planning.facts import Offsets
from tidegate.testing import MemoryLog

LEFT, RIGHT = "left", "right"
POLL = timedelta(microseconds=10)
Act = tuple[Any, ...]


class Row(NamedTuple):
    """A row of the log, and when it happened."""

    stream: str
    partition: str
    offset: int
    time: int


def micro(value: int) -> timedelta:
    """A duration in microseconds: the unit of these worlds."""
    return timedelta(microseconds=value)


_streams = st.sampled_from([LEFT, RIGHT])
_which = st.integers(0, 5)
_times = st.lists(st.integers(-20, 200), min_size=1, max_size=4)
_append = st.tuples(st.just("append"), _streams, _which, _times)
_plan = st.tuples(st.just("plan"), st.sampled_from([None, None, 1, 3, 10]), st.integers(0, 40))
acts = st.one_of(
    *[_append] * 4,
    *[_plan] * 3,
    st.tuples(st.just("restart")),
    *(
        st.tuples(st.just(act), _streams, _which)
        for act in ("split", "merge", "hide", "compact", "pause", "throttle", "breaks", "end")
    ),
    st.tuples(st.just("add"), _streams),
    st.tuples(st.just("free")),
    st.tuples(st.just("writers"), _streams, st.integers(0, 2)),
    st.tuples(st.just("mark"), _streams, st.integers(0, 100)),
)
scripts = st.lists(acts, min_size=1, max_size=25)
changing_scripts = st.lists(
    st.one_of(acts, st.tuples(st.just("lose"), st.sampled_from([Late.ROUTE, Late.NEXT]))),
    min_size=1,
    max_size=25,
)


@dataclass(frozen=True)
class Step:
    """One plan: what it was made from, and what it made."""

    before: PlannerState
    facts: Facts
    pressure: Pressure
    late: Late
    now: int
    after: PlannerState
    batch: BatchPlan


@dataclass
class WideWorld:
    """A log of several streams, a query on it, and a record of its plans."""

    query: Query
    policy: Policy
    overrides: Mapping[str, Policy] = field(default_factory=dict)
    partitions: int = 2
    log: MemoryLog = field(default_factory=MemoryLog)
    now: int = 0
    steps: list[Step] = field(default_factory=list)
    open: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    ended: set[tuple[str, str]] = field(default_factory=set)
    hidden: set[tuple[str, str]] = field(default_factory=set)
    broken: set[tuple[str, str]] = field(default_factory=set)
    paused: dict[tuple[str, str], str] = field(default_factory=dict)
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        share = 1 / self.partitions
        for stream in self.query.streams:
            parts = range(self.partitions)
            self.open[stream] = {self._fresh(): (i * share, (i + 1) * share) for i in parts}
            self.log.add_stream(stream, list(self.open[stream]))
        self.state = PlannerState.fresh("wide", self.query.streams)
        self.timers = IdleTimers(POLL)

    # ---- acts ----

    def run(self, script: list[Act]) -> WideWorld:
        """Carry out a script, or as much of it as comes before the query has finished."""
        for act, *arguments in script:
            if not self.state.finished:
                getattr(self, act)(*arguments)
        return self

    def append(self, stream: str, which: int, times: list[int]) -> None:
        """Append to one of the open partitions."""
        name = self._pick(stream, which)
        if name is not None:
            self.log.append(stream, name, times)

    def split(self, stream: str, which: int) -> None:
        """Seal a partition and open two."""
        name = self._pick(stream, which)
        if name is not None:
            low, high = self.open[stream].pop(name)
            middle = (low + high) / 2
            self._scale(
                stream, [name], {self._fresh(): (low, middle), self._fresh(): (middle, high)}
            )

    def merge(self, stream: str, which: int) -> None:
        """Seal two neighbours and open one."""
        name = self._pick(stream, which)
        if name is None:
            return
        low, high = self.open[stream][name]
        for other, (first, last) in list(self.open[stream].items()):
            if first == high and (stream, other) not in self.ended:
                del self.open[stream][name], self.open[stream][other]
                self._scale(stream, [name, other], {self._fresh(): (low, last)})
                return

    def add(self, stream: str) -> None:
        """Add a partition nobody preceded."""
        name = self._fresh()
        self.log.add_partition(stream, name)
        self.open[stream][name] = (0.0, 1.0)

    def hide(self, stream: str, which: int) -> None:
        """Let a partition vanish: open, sealed, or one that has not been read yet; not the past."""
        past = set(self.log._streams[stream].successors) - set(self.state.streams[stream].names)
        names = [name for name in self.log.rows(stream) if name not in past]
        name = names[which % len(names)]
        if self.state.streams[stream].started:
            self.log.hide(stream, name)
            self.hidden.add((stream, name))

    def compact(self, stream: str, which: int) -> None:
        """Join the spans of a partition."""
        name = self._pick(stream, which)
        if name is not None:
            self.log.compact(stream, name)

    def pause(self, stream: str, which: int) -> None:
        """Pause a partition."""
        name = self._pick(stream, which)
        if name is not None:
            self.paused[stream, name] = "by hand"

    def throttle(self, stream: str, which: int) -> None:
        """Let a partition give two rows per plan."""
        name = self._pick(stream, which)
        if name is not None:
            self.limits[stream, name] = 2

    def breaks(self, stream: str, which: int) -> None:
        """Make a partition unreadable."""
        name = self._pick(stream, which)
        if name is not None:
            self.log.break_partition(stream, name, "broken")
            self.broken.add((stream, name))

    def end(self, stream: str, which: int) -> None:
        """Let one partition come to its end."""
        name = self._pick(stream, which)
        if name is not None:
            self.log.end(stream, name)
            self.ended.add((stream, name))

    def free(self) -> None:
        """Let all return, resume and be readable."""
        for stream, name in self.hidden:
            self.log.hide(stream, name, hidden=False)
        for stream, name in self.broken:
            self.log.break_partition(stream, name, None)
        for held in (self.hidden, self.broken, self.paused, self.limits):
            held.clear()

    def writers(self, stream: str, count: int) -> None:
        """Say how many writers note time."""
        self.log.set_writers(stream, [WriterFact(f"w{i}") for i in range(count)])

    def mark(self, stream: str, number: int) -> None:
        """Mark everything there is; the numbers of marks never go back."""
        there = self.log._streams[stream]
        number = max([number, *(mark.lower for mark in there.marks)])
        leaves = {n: len(p.rows) for n, p in there.partitions.items() if n not in there.successors}
        self.log.mark(stream, Mark(number, number, Cut(leaves), frozenset({"w"})))

    def lose(self, late: Late) -> None:
        """Change what becomes of lost rows."""
        self.policy = replace(self.policy, late=late)

    def restart(self) -> None:
        """Go on from the JSON of the state, with timers that know nothing."""
        text = self.state.to_json()
        copy = PlannerState.from_json(text)
        assert copy.same_as(self.state)
        assert copy.to_json() == text
        self.state = copy.begin_run()
        self.timers = IdleTimers(POLL)

    def plan(self, max_rows: int | None = None, passed: int = 0) -> BatchPlan:
        """Let time pass, plan a batch, and record it."""
        self.now += passed
        before = self.state
        facts = self.timers.observe(self.log.facts(before), before, self.now)
        pressure = Pressure(max_rows=dict(self.limits), paused=dict(self.paused))
        self.state, batch = plan(
            before,
            facts,
            self.query,
            replace(self.policy, max_rows=max_rows),
            self.now,
            overrides=self.overrides,
            pressure=pressure,
            cores=3,
        )
        self.steps.append(
            Step(before, facts, pressure, self.policy.late, self.now, self.state, batch)
        )
        return batch

    def come_to_rest(self) -> WideWorld:
        """Plan until nothing moves any more, though no time passes and nothing comes."""
        for _ in range(60):
            if self.state.finished or not self.plan().moved:
                return self
        raise AssertionError("planning the same facts again and again never comes to rest")

    def drain(self) -> WideWorld:
        """Free everything, end the log, and plan until the query has finished."""
        self.free()
        for stream, names in self.open.items():
            self.writers(stream, 0)
            for name in names:
                self.log.end(stream, name)
        for _ in range(120):
            if self.state.finished or self.plan(5).finished:
                return self
        raise AssertionError(f"the query does not finish: {self.steps[-1].batch.holds}")

    # ---- one who sees the whole log ----

    def row(self, stream: str, partition: str, offset: int) -> Row:
        """One row."""
        [time] = self.log.read(stream, partition, offset, offset + 1)
        return Row(stream, partition, offset, time)

    def all_rows(self) -> Iterator[Row]:
        """Every row there is."""
        for stream in self.query.streams:
            for name, times in self.log.rows(stream).items():
                yield from (Row(stream, name, i, time) for i, time in enumerate(times))

    def rows_of(self, stream: str, spans: Spans) -> list[Row]:
        """The rows of some spans."""
        return [
            self.row(stream, spans.names[place], offset)
            for place, start, end in zip(spans.partition, spans.start, spans.end, strict=True)
            for offset in range(int(start), int(end))
        ]

    def below(self, stream: str, cut: Offsets) -> list[Row]:
        """Every row of a stream before a cut, those of all predecessors included."""
        past = self.log._streams[stream].related(cut, later=False)
        return [
            Row(stream, name, offset, time)
            for name, times in self.log.rows(stream).items()
            for offset, time in enumerate(times)
            if offset < cut.get(name, len(times) if name in past else 0)
        ]

    def _scale(
        self, stream: str, sealed: list[str], opened: dict[str, tuple[float, float]]
    ) -> None:
        self.log.scale(stream, sealed, opened)
        self.open[stream].update(opened)

    def _pick(self, stream: str, which: int) -> str | None:
        """One of the partitions that can still get rows."""
        names = [name for name in self.open[stream] if (stream, name) not in self.ended]
        return names[which % len(names)] if names else None

    def _fresh(self) -> str:
        self.number += 1
        return f"{self.number - 1}"
