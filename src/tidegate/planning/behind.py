"""Behind: rows below A that count all the same, in the next release.

With `late = next` a lost row counts as if its time were A, and so does a processing-time row that
comes behind A, for it is not late. The state keeps the cut at which A was reached; what lies below
A behind that cut has not been given out, and the release of [A, B) adds it. So each is given out
once, and what waits when the input ends is given out then.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.eventtime.lateness import InJoin, Late
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Facts, Spans
from tidegate.planning.policy import Policy, Release, Strategy
from tidegate.planning.query import Query
from tidegate.planning.reading import Reading
from tidegate.planning.slices import shifted
from tidegate.planning.state import PlannerState, StreamState


def refuse_unclear_next(query: Query, policy: Policy) -> None:
    """Refuse `late = next` where it would depend on how batches fall which window is next."""
    if policy.late is Late.NEXT and policy.release is Release.TIME:
        for name, side in query.sides.items():
            if side.before or side.after or query.reach is not None:
                raise errors.next_needs_tumbling(name)


def waits_for_next(stream: StreamState, policy: Policy) -> bool:
    """Whether rows below A count in the next release: by policy, or because none is late."""
    counts = policy.late is Late.NEXT or stream.strategy is Strategy.PROCESSING
    return policy.release is Release.TIME and counts


def waiting_behind(reading: Reading, state: PlannerState, policy: Policy) -> Reading:
    """From where on rows below A wait for the next release; what came under another policy is past.

    Nothing changes where nothing is read: a policy alone is no reason for a batch.
    """
    before, now = state.streams[reading.name], reading.state
    if not reading.taken.any():
        return reading
    since = before.late_cut
    if not waits_for_next(now, policy):
        since = None
    elif since is None and state.released is not UNKNOWN:
        since = before.cut()
    return replace(reading, state=replace(now, late_cut=since))


def rows_behind(
    readings: list[Reading], state: PlannerState, facts: Facts, query: Query
) -> dict[str, Spans]:
    """Spans whose rows below A have come since A was reached, where such rows still count."""
    a = state.released
    if a is UNKNOWN:
        return {}
    found: dict[str, Spans] = {}
    for reading in readings:
        name, since, cut = reading.name, reading.state.late_cut, reading.state.cut()
        first = first_of_ours(state, query, name)
        if since is None or since == cut or (first is not UNKNOWN and first >= a):
            continue
        spans = facts.ask.overlapping(name, first, a, since, cut)
        if len(spans):
            found[name] = spans
    return found


def first_of_ours(state: PlannerState, query: Query, name: str) -> Known:
    """The smallest time that counts in a query which starts at a time."""
    side = query.sides[name]
    return shifted(state.origin, -micros(side.before) if isinstance(side.use, InJoin) else 0)
