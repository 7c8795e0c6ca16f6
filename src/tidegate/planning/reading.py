"""Reading: which spans of a stream are new, how far they are taken, and what will then be seen.

One `Reading` per stream carries the columns of its partitions through the steps of a plan. `gather`
makes them from the state and the facts, `lay_out` puts all streams side by side for the pace, and
`take` notes what the pace has chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.planning.facts import Facts, Flags, Numbers, Positions, Spans, StreamFacts
from tidegate.planning.pace import Hindrance, Lines, Pending, Reach, running_maxima
from tidegate.planning.policy import AUTO, OnUnreadable, Policy, Pressure
from tidegate.planning.roster import call_roster
from tidegate.planning.state import PlannerState, StreamState
from tidegate.planning.watermarks import choose_strategy

STREAM_SETTINGS = ("watermark", "tolerance", "idle_after", "max_future", "start", "on_unreadable")
"""What a stream may set for itself; everything else is the query's."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One stream within a plan. Columns have one row per partition of `state`.

    `place` finds a partition in the facts (-1: vanished). `spans` are the new ones, with the `row`
    of each. After `take`, `taken` says which of them are read, and `hindrance` why not all are.
    """

    name: str
    policy: Policy
    facts: StreamFacts
    state: StreamState
    place: Positions
    rebalanced: bool
    spans: Spans
    row: Positions
    latest: Numbers
    hindrance: Numbers
    taken: Flags
    why: Mapping[str, str]
    """The reason given for a partition that is paused or unreadable."""

    def of_facts(self, column: Flags) -> Flags:
        """A column of the facts, row by row of the state; False for the vanished."""
        return (
            np.where(self.place >= 0, column[self.place], False)
            if len(column)
            else (np.zeros(len(self.place), dtype=np.bool_))
        )

    @property
    def at_end(self) -> Flags:
        """Who has been planned to the end of what there is, and may read on."""
        free = self.hindrance == Hindrance.NONE
        result: Flags = free & self.state.present & (self.state.position >= self.latest)
        return result

    @property
    def over(self) -> Flags:
        """Who has ended, and has been planned to its end."""
        return self.at_end & self.of_facts(self.facts.partitions.ended)

    @property
    def arrived(self) -> Spans:
        """The new spans that are read."""
        return replace(
            self.spans.where(self.taken), names=self.state.names, partition=self.row[self.taken]
        )

    def waiting_from(self) -> Known:
        """The smallest time of what is there and not read."""
        waiting = ~self.taken & self.spans.timed
        return int(self.spans.min_time[waiting].min()) if waiting.any() else UNKNOWN


def gather(
    name: str,
    state: PlannerState,
    facts: Facts,
    policy: Policy,
    override: Policy | None,
    pressure: Pressure,
    reach_back: timedelta,
) -> Reading:
    """Bring a stream's roster up to date and find what is new in it.

    `reach_back` is how far before a start time the query still needs rows of this stream.
    """
    if override is not None:
        policy = replace(policy, **{s: getattr(override, s) for s in STREAM_SETTINGS})
    known = facts.streams[name]
    roster = call_roster(name, state.streams[name], facts, policy, reach_back)
    strategy = choose_strategy(roster.state, known, policy)
    spans, row = _new_spans(known.spans, roster.state)
    latest = (
        np.where(roster.place >= 0, known.partitions.latest[roster.place], -1)
        if len(known.partitions)
        else np.full(len(roster.place), -1, dtype=np.int64)
    )
    # An idle partition that has something to read has returned.
    idle = roster.state.idle & (roster.state.position >= latest)
    return Reading(
        name=name,
        policy=policy,
        facts=known,
        state=replace(roster.state, idle=idle, strategy=strategy),
        place=roster.place,
        rebalanced=roster.rebalanced,
        spans=spans,
        row=row,
        latest=np.maximum(latest, roster.state.position),
        hindrance=_hindered(name, policy, roster.state.names, known, pressure),
        taken=np.zeros(len(spans), dtype=np.bool_),
        why={
            **{n: reason for (stream, n), reason in pressure.paused.items() if stream == name},
            **known.partitions.unreadable,
        },
    )


def _new_spans(spans: Spans, state: StreamState) -> tuple[Spans, Positions]:
    """The spans behind the positions, in the order of the state's rows and of offsets."""
    if spans.names == state.names:
        row = spans.partition
    else:
        index = {partition: i for i, partition in enumerate(state.names)}
        rows = np.array([index.get(n, -1) for n in spans.names], dtype=np.intp)
        row = rows[spans.partition] if len(spans) else spans.partition
    new = row >= 0
    new[new] = spans.end[new] > state.position[row[new]]
    if not new.all():
        spans, row = spans.where(new), row[new]
    order = np.lexsort((spans.start, row))
    if not np.array_equal(order, np.arange(len(order))):
        spans, row = spans.where(order), row[order]
    # A span may begin before the position, where small chunks have been compacted into one.
    start = np.maximum(spans.start, state.position[row])
    return replace(spans, start=start, rows=np.minimum(spans.rows, spans.end - start)), row


def _hindered(
    name: str, policy: Policy, names: tuple[str, ...], facts: StreamFacts, pressure: Pressure
) -> Numbers:
    hindered = np.full(len(names), Hindrance.NONE, dtype=np.int64)
    unreadable = facts.partitions.unreadable
    if unreadable or pressure.paused:
        for i, partition in enumerate(names):
            if (name, partition) in pressure.paused:
                hindered[i] = Hindrance.PAUSED
            if partition in unreadable:
                if policy.on_unreadable is OnUnreadable.FAIL:
                    raise errors.partition_unreadable(name, partition, unreadable[partition])
                hindered[i] = Hindrance.UNREADABLE
    return hindered


def lay_out(readings: list[Reading], pressure: Pressure) -> tuple[Lines, Pending]:
    """All streams side by side: one line per partition, and the spans that could be read.

    Where a stream has one number for all of it, a partition is as far as its largest event time.
    """
    lines = Lines(
        position=np.concatenate([r.state.position for r in readings]),
        latest=np.concatenate([r.latest for r in readings]),
        number=np.concatenate(
            [np.where(r.state.known, r.state.number, r.state.max_seen - _lag(r)) for r in readings]
        ),
        known=np.concatenate([r.state.known | r.state.seen for r in readings]),
        idle=np.concatenate([r.state.idle | ~r.state.present for r in readings]),
        max_seen=np.concatenate([r.state.max_seen for r in readings]),
        seen=np.concatenate([r.state.seen for r in readings]),
        lag=np.concatenate(
            [np.full(len(r.state.names), _lag(r), dtype=np.int64) for r in readings]
        ),
        limit=_limits(readings, pressure),
        hindered=np.concatenate([r.hindrance for r in readings]),
    )
    first = np.cumsum([0, *(len(r.state.names) for r in readings)])
    line = np.concatenate([r.row + first[i] for i, r in enumerate(readings)])
    times = np.concatenate([r.spans.max_time for r in readings])
    timed = np.concatenate([r.spans.timed for r in readings])
    pending = Pending(
        line=line,
        end=np.concatenate([r.spans.end for r in readings]),
        rows=np.concatenate([r.spans.rows for r in readings]),
        bytes=np.concatenate([r.spans.bytes for r in readings]),
        reaches=running_maxima(line, times, timed, lines),
    )
    return lines, pending


def _lag(reading: Reading) -> int:
    tolerance = reading.policy.tolerance
    return reading.state.disorder if tolerance is AUTO else micros(tolerance)


def _limits(readings: list[Reading], pressure: Pressure) -> Numbers:
    limit = np.full(sum(len(r.state.names) for r in readings), -1, dtype=np.int64)
    if pressure.max_rows:
        keys = [(r.name, partition) for r in readings for partition in r.state.names]
        for i, key in enumerate(keys):
            if key in pressure.max_rows:
                limit[i] = pressure.max_rows[key]
    return limit


def take(reading: Reading, reach: Reach, first_line: int) -> Reading:
    """Note what the pace has chosen, and what will have been seen."""
    state = reading.state
    lines = slice(first_line, first_line + len(state.names))
    taken = reading.spans.end <= reach.end[lines][reading.row]
    read = taken & reading.spans.timed
    max_seen, seen = state.max_seen.copy(), state.seen.copy()
    rows, times = reading.row[read], reading.spans.max_time[read]
    fresh = np.zeros(len(seen), dtype=np.bool_)
    fresh[rows] = True
    max_seen[fresh & ~seen] = np.iinfo(np.int64).min
    np.maximum.at(max_seen, rows, times)
    # What is not read yet will be told again: it alone is no reason for a batch.
    spread = reading.facts.spans.disorder if taken.any() else state.position[:0]
    return replace(
        reading,
        taken=taken,
        hindrance=reach.hindrance[lines],
        state=replace(
            state,
            position=reach.end[lines],
            max_seen=max_seen,
            seen=seen | fresh,
            highest=later(state.highest, int(times.max())) if len(times) else state.highest,
            disorder=max(state.disorder, int(spread.max())) if len(spread) else state.disorder,
        ),
    )


def smallest_time(readings: list[Reading], before: Known) -> Known:
    """The smallest event time seen by the query so far."""
    lowest = before
    for reading in readings:
        read = reading.taken & reading.spans.timed
        if read.any():
            first = int(reading.spans.min_time[read].min())
            lowest = first if lowest is UNKNOWN else min(lowest, first)
    return lowest
