"""The planner: a pure function from what was and what is to what shall be done.

`plan(state, facts, query, policy, now)` gives the next state and the batch that leads to it. It has
no clock, reads no rows and keeps nothing. When nothing moves it returns the state it was given.

The steps, in order: call the roster and gather what is new; pace; take; look behind A; find every
stream's standing; merge them into W; release the interval that W completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np

from tidegate.eventtime.instants import Instant, ceil_to, floor_to, format_instant, micros
from tidegate.eventtime.lateness import Late
from tidegate.eventtime.watermark import UNKNOWN, Known, claim, later
from tidegate.planning.batch import BatchPlan, Correction, Hold, Idleness, StreamPlan
from tidegate.planning.behind import (
    first_of_ours,
    refuse_unclear_next,
    rows_behind,
    waiting_behind,
    waits_for_next,
)
from tidegate.planning.beside import ALONE, Beside
from tidegate.planning.facts import Facts, Spans
from tidegate.planning.latecomers import remember_latecomers
from tidegate.planning.pace import pace
from tidegate.planning.policy import NO_PRESSURE, Policy, Pressure, Release, Strategy
from tidegate.planning.query import Query
from tidegate.planning.reading import Reading, gather, lay_out, smallest_time, take
from tidegate.planning.slices import Interval, Slice, choose_interval, divide, shifted
from tidegate.planning.standing import Standing, find_hold, take_stand
from tidegate.planning.state import PlannerState
from tidegate.planning.watermarks import merged


def plan(
    state: PlannerState,
    facts: Facts,
    query: Query,
    policy: Policy,
    now: Instant,
    *,
    overrides: Mapping[str, Policy] | None = None,
    pressure: Pressure = NO_PRESSURE,
    cores: int = 2,
    beside: Beside = ALONE,
) -> tuple[PlannerState, BatchPlan]:
    """Plan the next batch of a query; see the head of this file.

    `beside`: what is known of streams of the same query that are planned elsewhere.
    """
    if state.finished:
        standing = Idleness(idle=True, ended=True, closing=shifted(state.watermark, 1))
        return state, _nothing(state, (), standing)
    refuse_unclear_next(query, policy)
    own = overrides or {}
    readings = [
        gather(name, state, facts, policy, own.get(name), pressure, side.before)
        for name, side in query.sides.items()
    ]
    readings = _paced(readings, state, policy, pressure)
    readings = [waiting_behind(reading, state, policy) for reading in readings]
    behind = rows_behind(readings, state, facts, query)
    closing = _closing_time(readings, state, query, behind)
    patience = _patience(query, policy)
    cap = shifted(later(closing, beside.closing), patience)
    standings = [take_stand(reading, now, cap, micros(query.grid)) for reading in readings]
    stands = [(s.number, s.known, s.idle) for s in standings]
    idle = all(bool(columns[2].all()) for columns in stands)
    if idle and len(beside):
        # Nobody waits for it, and so it must not hold the others either: it goes with them.
        stands.append((beside.number, beside.known, beside.idle))
    number = merged(stands).current_watermark()
    draft = replace(
        state,
        streams={s.reading.name: s.reading.state for s in standings},
        watermark=later(state.watermark, claim(number)),
        lowest=smallest_time(readings, state.lowest),
    )
    draft = _with_origin(draft, state, readings, query)
    closed = closed_before(state, draft, policy)
    all_read = all(standing.ended for standing in standings)
    ended = all_read and beside.ended
    standing = Idleness(idle=idle, ended=all_read, closing=closing)
    piece: Slice | None = None
    if policy.release is Release.TIME:
        limit = _release_limit(draft.watermark, closing if ended else UNKNOWN, patience, query)
        draft, piece = _release(draft, limit, facts, query, policy, ended, cores, behind)
    elif ended:
        draft = replace(draft, watermark=later(draft.watermark, claim(cap)), finished=True)
    holds = tuple(hold for s in standings if (hold := find_hold(s)) is not None)
    if draft.same_as(state):
        return state, _nothing(state, holds, standing)
    draft = replace(draft, batch=state.batch + 1)
    arrived = {s.reading.name: s.reading.arrived for s in standings}
    draft = remember_latecomers(draft, arrived, query, closed)
    streams = {s.reading.name: _stream_plan(s, state, draft, query, closed) for s in standings}
    return draft, BatchPlan(
        lineage=state.lineage,
        run=state.run,
        batch=draft.batch,
        moved=True,
        streams=streams,
        watermark_before=state.watermark,
        watermark=draft.watermark,
        frontier_before=frontier_of(state, policy),
        frontier=frontier_of(draft, policy),
        slice=piece,
        correction=correction_of(streams, state, query, policy),
        finished=draft.finished,
        holds=holds,
        warnings=_warnings(piece, policy),
        standing=standing,
    )


def _nothing(state: PlannerState, holds: tuple[Hold, ...], standing: Idleness) -> BatchPlan:
    return BatchPlan(
        lineage=state.lineage,
        run=state.run,
        batch=state.batch,
        moved=False,
        streams={},
        watermark_before=state.watermark,
        watermark=state.watermark,
        frontier_before=UNKNOWN,
        frontier=UNKNOWN,
        finished=state.finished,
        holds=holds,
        standing=standing,
    )


def _paced(
    readings: list[Reading], state: PlannerState, policy: Policy, pressure: Pressure
) -> list[Reading]:
    lines, pending = lay_out(readings, pressure)
    # In time order the limits bound what is released; to know of more rows costs nothing.
    limited = policy.release is Release.ARRIVAL
    reach = pace(
        lines,
        pending,
        max_rows=policy.max_rows if limited else None,
        max_bytes=policy.max_bytes if limited else None,
        max_drift=policy.max_drift,
        watermark=state.watermark,
    )
    first = np.cumsum([0, *(len(r.state.names) for r in readings)]).tolist()
    return [take(r, reach, line) for r, line in zip(readings, first[:-1], strict=True)]


# ---- time ----


def _closing_time(
    readings: list[Reading], state: PlannerState, query: Query, behind: Mapping[str, Spans]
) -> Known:
    """The smallest time at which everything that was seen has had its last use."""
    latest: Known = UNKNOWN
    for reading in readings:
        highest, use = reading.state.highest, query.sides[reading.name].use
        if reading.name in behind:
            highest = later(highest, state.released)  # they count as if their time were A
        if highest is not UNKNOWN:
            last = use.last_use(highest)
            latest = later(latest, highest + 1 if last is None else last)
    return shifted(latest, micros(query.held))


def _patience(query: Query, policy: Policy) -> int:
    """How far W must be past a time before that is given out."""
    allowed = timedelta(0) if policy.late is Late.UPDATE else policy.allowed_lateness
    return micros(allowed + query.waits if policy.release is Release.TIME else allowed)


def _with_origin(
    draft: PlannerState, state: PlannerState, readings: list[Reading], query: Query
) -> PlannerState:
    """A query that starts at a time has its first A there, on the grid; resolved once."""
    if any(stream.started for stream in state.streams.values()):
        return draft
    times = [r.policy.start for r in readings if isinstance(r.policy.start, int)]
    if not times:
        return draft
    origin = ceil_to(max(times), micros(query.grid))
    return replace(draft, origin=origin, released=later(draft.released, origin))


def closed_before(state: PlannerState, draft: PlannerState, policy: Policy) -> Known:
    """Up to where everything has been given out when the batch that leads to `draft` begins."""
    allowed = micros(policy.allowed_lateness)
    if policy.release is Release.ARRIVAL:
        return shifted(state.watermark, 1 - allowed)
    released = later(state.released, draft.origin)
    return shifted(released, -allowed if policy.late is Late.UPDATE else 0)


def frontier_of(state: PlannerState, policy: Policy) -> Known:
    """The smallest event time that a result of a batch after this state can carry."""
    return closed_before(state, state, policy)


# ---- release in time order ----


def _release(
    draft: PlannerState,
    limit: Known,
    facts: Facts,
    query: Query,
    policy: Policy,
    ended: bool,
    cores: int,
    behind: Mapping[str, Spans],
) -> tuple[PlannerState, Slice | None]:
    """The interval that W has completed, as far as the limits let it go in one batch."""
    if limit is UNKNOWN or (draft.released is not UNKNOWN and limit <= draft.released):
        return replace(draft, finished=ended), None
    cuts = {name: stream.cut() for name, stream in draft.streams.items()}
    answers: dict[tuple[str, Known, Instant], Spans] = {}

    def look(stream: str, a: Known, b: Instant) -> Spans:
        key = (stream, a, b)
        if key not in answers:
            start = draft.streams[stream].start_cut
            answers[key] = facts.ask.overlapping(stream, a, b, start, cuts[stream])
        return answers[key]

    lowest = limit if draft.lowest is UNKNOWN else draft.lowest
    interval, oversized = choose_interval(
        query,
        draft.released,
        limit,
        lowest=lowest,
        stride=draft.stride,
        max_rows=policy.max_rows,
        max_bytes=policy.max_bytes,
        look=look,
    )
    piece = divide(
        query,
        interval,
        oversized=oversized,
        lowest=lowest,
        cores=cores,
        look=look,
        behind=behind,
    )
    begin = min(lowest, interval.b) if interval.a is UNKNOWN else interval.a
    streams = {
        name: replace(stream, late_cut=cuts[name] if waits_for_next(stream, policy) else None)
        for name, stream in draft.streams.items()
    }
    return replace(
        draft,
        streams=streams,
        released=interval.b,
        stride=interval.b - begin,
        finished=ended and interval.b >= limit,
    ), piece


def _release_limit(watermark: Known, closing: Known, patience: int, query: Query) -> Known:
    """How far may be released: what W has completed, or, at the end, everything there is."""
    grid = micros(query.grid)
    if closing is not UNKNOWN:
        return ceil_to(closing, grid)
    return UNKNOWN if watermark is UNKNOWN else floor_to(watermark + 1 - patience, grid)


# ---- what the batch says ----


def _stream_plan(
    standing: Standing, state: PlannerState, draft: PlannerState, query: Query, closed: Known
) -> StreamPlan:
    reading = standing.reading
    side = query.sides[reading.name]
    arrived = reading.arrived
    late = np.zeros(len(arrived), dtype=np.bool_)
    if state.watermark is not UNKNOWN:
        late = arrived.timed & (arrived.min_time <= state.watermark)
    timeless = reading.state.strategy is Strategy.PROCESSING
    return StreamPlan(
        start_cut=reading.state.start_cut,
        before=state.streams[reading.name].cut() or reading.state.start_cut,
        cut=reading.state.cut(),
        arrived=arrived,
        late=arrived.where(late & (not timeless)),
        use=side.use,
        watermark_before=UNKNOWN if timeless else state.watermark,
        closed=UNKNOWN if timeless else closed,
        origin=first_of_ours(draft, query, reading.name),
        names=standing.names,
        number=standing.number,
        known=standing.known,
        idle=standing.idle,
        rebalanced=reading.rebalanced,
    )


def correction_of(
    streams: Mapping[str, StreamPlan], state: PlannerState, query: Query, policy: Policy
) -> Correction | None:
    """The windows that late rows of this batch may change, if they are still correctable."""
    a = state.released
    if policy.late is not Late.UPDATE or a is UNKNOWN:
        return None
    # The other side of a join meets rows that lie as far before it as it was waited for.
    touched = [
        int(stream.late.min_time.min()) - micros(query.sides[name].after)
        for name, stream in streams.items()
        if len(stream.late)
    ]
    if not touched:
        return None
    first = floor_to(max(a - micros(policy.allowed_lateness), min(touched)), micros(query.grid))
    if state.origin is not UNKNOWN:
        first = max(first, state.origin)
    return Correction(Interval(first, a)) if first < a else None


def _warnings(piece: Slice | None, policy: Policy) -> tuple[str, ...]:
    if piece is None:
        return ()
    found = []
    if piece.amplification > policy.max_amplification:
        found.append(
            f"reads {piece.rows_read} rows to release about {piece.rows_released}:"
            f" {piece.amplification:.1f} times, the limit is {policy.max_amplification:g}"
        )
    if piece.oversized:
        found.append(
            f"one step of the grid up to {format_instant(piece.interval.b)} is over the limits"
        )
    return tuple(found)
