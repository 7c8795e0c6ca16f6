"""The planner: a pure function from what was and what is to what shall be done.

`plan(state, facts, query, policy, now)` gives the next state and the batch that leads to it. It has
no clock, reads no rows and keeps nothing. When nothing moves it returns the state it was given.

The steps, in order: call the roster and gather what is new; pace; take; find every stream's
standing; merge them into W; release the interval that W completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np

from tidegate.eventtime.instants import Instant, ceil_to, floor_to, format_instant, micros
from tidegate.eventtime.lateness import InJoin, Late
from tidegate.eventtime.watermark import UNKNOWN, Known, claim, later
from tidegate.planning.batch import BatchPlan, Correction, Hold, StreamPlan
from tidegate.planning.facts import Facts, Spans
from tidegate.planning.pace import pace
from tidegate.planning.policy import NO_PRESSURE, Policy, Pressure, Release, Strategy
from tidegate.planning.query import Query
from tidegate.planning.reading import Reading, gather, lay_out, smallest_time, take
from tidegate.planning.slices import Interval, Slice, choose_interval, divide, shifted
from tidegate.planning.standing import Standing, find_hold, take_stand
from tidegate.planning.state import PlannerState, StreamState
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
) -> tuple[PlannerState, BatchPlan]:
    """Plan the next batch of a query; see the head of this file."""
    if state.finished:
        return state, _nothing(state, ())
    own = overrides or {}
    readings = [
        gather(name, state, facts, policy, own.get(name), pressure, side.before)
        for name, side in query.sides.items()
    ]
    readings = _paced(readings, state, policy, pressure)
    cap = _closing_time({r.name: r.state for r in readings}, query)
    standings = [take_stand(reading, now, cap, micros(query.grid)) for reading in readings]
    number = merged([(s.number, s.known, s.idle) for s in standings]).current_watermark()
    draft = replace(
        state,
        streams={s.reading.name: s.reading.state for s in standings},
        watermark=later(state.watermark, claim(number)),
        lowest=smallest_time(readings, state.lowest),
    )
    draft = _with_origin(draft, query, policy)
    closed = _closed(draft, state, policy)
    ended = all(standing.ended for standing in standings)
    piece: Slice | None = None
    if policy.release is Release.TIME:
        draft, piece = _release(draft, standings, facts, query, policy, ended, cores)
    elif ended:
        last = _closing_time(draft.streams, query)
        draft = replace(draft, watermark=later(draft.watermark, claim(last)), finished=True)
    holds = tuple(hold for s in standings if (hold := find_hold(s)) is not None)
    if draft.same_as(state):
        return state, _nothing(state, holds)
    draft = replace(draft, batch=state.batch + 1)
    streams = {s.reading.name: _stream_plan(s, state, draft, query, closed) for s in standings}
    return draft, BatchPlan(
        lineage=state.lineage,
        run=state.run,
        batch=draft.batch,
        moved=True,
        streams=streams,
        watermark_before=state.watermark,
        watermark=draft.watermark,
        frontier=_frontier(draft, policy),
        slice=piece,
        correction=_correction(streams, state, query, policy),
        finished=draft.finished,
        holds=holds,
        warnings=_warnings(piece, policy),
    )


def _nothing(state: PlannerState, holds: tuple[Hold, ...]) -> BatchPlan:
    return BatchPlan(
        lineage=state.lineage,
        run=state.run,
        batch=state.batch,
        moved=False,
        streams={},
        watermark_before=state.watermark,
        watermark=state.watermark,
        frontier=UNKNOWN,
        finished=state.finished,
        holds=holds,
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


def _closing_time(streams: Mapping[str, StreamState], query: Query) -> Known:
    """The smallest time at which everything that was seen has had its last use."""
    latest: Known = UNKNOWN
    for name, side in query.sides.items():
        highest = streams[name].highest
        if highest is not UNKNOWN:
            last = side.use.last_use(highest)
            latest = later(latest, highest + 1 if last is None else last)
    return latest


def _with_origin(draft: PlannerState, query: Query, policy: Policy) -> PlannerState:
    """A query that starts at a time has its first A there, on the grid."""
    if draft.origin is not UNKNOWN or not isinstance(policy.start, int):
        return draft
    origin = ceil_to(policy.start, micros(query.grid))
    return replace(draft, origin=origin, released=later(draft.released, origin))


def _closed(draft: PlannerState, state: PlannerState, policy: Policy) -> Known:
    """Up to where everything has been given out when this batch begins."""
    allowed = micros(policy.allowed_lateness)
    if policy.release is Release.ARRIVAL:
        return shifted(state.watermark, 1 - allowed)
    return shifted(draft.released, -allowed if policy.late is Late.UPDATE else 0)


def _frontier(draft: PlannerState, policy: Policy) -> Known:
    """The smallest event time that a result of a later batch can carry."""
    return _closed(draft, draft, policy)


# ---- release in time order ----


def _release(
    draft: PlannerState,
    standings: list[Standing],
    facts: Facts,
    query: Query,
    policy: Policy,
    ended: bool,
    cores: int,
) -> tuple[PlannerState, Slice | None]:
    """The interval that W has completed, as far as the limits let it go in one batch."""
    limit = _release_limit(draft, query, policy, ended)
    if limit is UNKNOWN or (draft.released is not UNKNOWN and limit <= draft.released):
        return replace(draft, finished=ended), None
    cuts = {s.reading.name: s.reading.state.cut() for s in standings}
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
        behind=_behind(draft, standings, facts, policy, cuts),
    )
    begin = min(lowest, interval.b) if interval.a is UNKNOWN else interval.a
    streams = {
        s.reading.name: replace(s.reading.state, late_cut=cuts[s.reading.name])
        if _waits_for_the_next(s, policy)
        else s.reading.state
        for s in standings
    }
    return replace(
        draft,
        streams=streams,
        released=interval.b,
        stride=interval.b - begin,
        finished=ended and interval.b >= limit,
    ), piece


def _release_limit(draft: PlannerState, query: Query, policy: Policy, ended: bool) -> Known:
    grid = micros(query.grid)
    if ended:
        closing = _closing_time(draft.streams, query)
        return UNKNOWN if closing is UNKNOWN else ceil_to(closing, grid)
    if draft.watermark is UNKNOWN:
        return UNKNOWN
    patience = timedelta(0) if policy.late is Late.UPDATE else policy.allowed_lateness
    return floor_to(draft.watermark + 1 - micros(patience + query.waits), grid)


def _waits_for_the_next(standing: Standing, policy: Policy) -> bool:
    """Whether rows below A count in the next release: by policy, or because none is late."""
    return policy.late is Late.NEXT or standing.reading.state.strategy is Strategy.PROCESSING


def _behind(
    draft: PlannerState,
    standings: list[Standing],
    facts: Facts,
    policy: Policy,
    cuts: Mapping[str, Mapping[str, int]],
) -> dict[str, Spans]:
    """Spans whose rows below A have come since A was reached, where such rows still count."""
    if draft.released is UNKNOWN:
        return {}
    found: dict[str, Spans] = {}
    for standing in standings:
        name = standing.reading.name
        since = standing.reading.state.late_cut
        if since and _waits_for_the_next(standing, policy):
            spans = facts.ask.overlapping(name, draft.origin, draft.released, since, cuts[name])
            if len(spans):
                found[name] = spans
    return found


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
    back = micros(side.before) if isinstance(side.use, InJoin) else 0
    return StreamPlan(
        start_cut=reading.state.start_cut,
        before=state.streams[reading.name].cut() or reading.state.start_cut,
        cut=reading.state.cut(),
        arrived=arrived,
        late=arrived.where(late & (not timeless)),
        use=side.use,
        watermark_before=UNKNOWN if timeless else state.watermark,
        closed=UNKNOWN if timeless else closed,
        origin=shifted(draft.origin, -back),
        names=standing.names,
        number=standing.number,
        known=standing.known,
        idle=standing.idle,
        rebalanced=reading.rebalanced,
    )


def _correction(
    streams: Mapping[str, StreamPlan], state: PlannerState, query: Query, policy: Policy
) -> Correction | None:
    """The windows that late rows of this batch may change, if they are still correctable."""
    a = state.released
    if policy.late is not Late.UPDATE or a is UNKNOWN:
        return None
    below = [
        int(stream.late.min_time.min())
        for stream in streams.values()
        if len(stream.late) and int(stream.late.min_time.min()) < a
    ]
    if not below:
        return None
    first = max(a - micros(policy.allowed_lateness), min(below))
    first = floor_to(first, micros(query.grid))
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
