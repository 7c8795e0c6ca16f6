"""A batch from the two states around it: what a plan said, said again.

Spark's offset log keeps states, not plans. A batch that runs, or runs again after a crash, knows
the state before and the state after; everything it has to read follows from them, the query and
answers about the past, which never change. So the batch is the same one, however often it runs, and
whatever was appended, scaled or compacted meanwhile.

`replay(before, after, ...)` has the interval, the tasks, the late spans, the correction and the
frontier of the plan that led from one to the other. It does not repeat what only an observer wants:
holds, warnings, and the new spans that hold no late row.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.planning.batch import BatchPlan, StreamPlan
from tidegate.planning.behind import first_of_ours, waits_for_next
from tidegate.planning.facts import Offsets, Questions, Spans, flags, numbers
from tidegate.planning.plan import closed_before, correction_of, frontier_of
from tidegate.planning.policy import Policy, Release, Strategy
from tidegate.planning.query import Query
from tidegate.planning.slices import Interval, Slice, divide
from tidegate.planning.state import PlannerState


def replay(
    before: PlannerState,
    after: PlannerState,
    ask: Questions,
    query: Query,
    policy: Policy,
    *,
    cores: int = 2,
) -> BatchPlan:
    """The batch that leads from one state to the next; see the head of this file."""
    closed = closed_before(before, after, policy)
    streams = {name: _stream(name, before, after, ask, query, closed) for name in query.sides}
    return BatchPlan(
        lineage=after.lineage,
        run=after.run,
        batch=after.batch,
        moved=not after.same_as(before),
        streams=streams,
        watermark_before=before.watermark,
        watermark=after.watermark,
        frontier_before=frontier_of(before, policy),
        frontier=frontier_of(after, policy),
        slice=_slice(before, after, ask, query, policy, cores),
        correction=correction_of(streams, before, query, policy),
        finished=after.finished,
    )


def _stream(
    name: str,
    before: PlannerState,
    after: PlannerState,
    ask: Questions,
    query: Query,
    closed: Known,
) -> StreamPlan:
    was, now = before.streams[name], after.streams[name]
    begin = was.cut() or now.start_cut
    timeless = now.strategy is Strategy.PROCESSING
    late = Spans.of([])
    if before.watermark is not UNKNOWN and not timeless and begin != now.cut():
        late = ask.overlapping(name, UNKNOWN, before.watermark + 1, begin, now.cut())
    return StreamPlan(
        start_cut=now.start_cut,
        before=begin,
        cut=now.cut(),
        arrived=late,
        late=late,
        use=query.sides[name].use,
        watermark_before=UNKNOWN if timeless else before.watermark,
        closed=UNKNOWN if timeless else closed,
        origin=first_of_ours(after, query, name),
        names=(),
        number=numbers(),
        known=flags(),
        idle=flags(),
        rebalanced=False,
    )


def _slice(
    before: PlannerState,
    after: PlannerState,
    ask: Questions,
    query: Query,
    policy: Policy,
    cores: int,
) -> Slice | None:
    a = released_before(before, after)
    if policy.release is not Release.TIME or after.released is UNKNOWN or after.released == a:
        return None
    cuts = {name: stream.cut() for name, stream in after.streams.items()}

    def look(stream: str, first: Known, below: int) -> Spans:
        start = after.streams[stream].start_cut
        return ask.overlapping(stream, first, below, start, cuts[stream])

    return divide(
        query,
        Interval(a, after.released),
        oversized=False,
        lowest=after.released if after.lowest is UNKNOWN else after.lowest,
        cores=cores,
        look=look,
        behind=_behind(before, after, ask, query, policy, cuts),
    )


def released_before(before: PlannerState, after: PlannerState) -> Known:
    """A of the batch: where the last one ended, or where the query was told to start."""
    return later(before.released, after.origin)


def _behind(
    before: PlannerState,
    after: PlannerState,
    ask: Questions,
    query: Query,
    policy: Policy,
    cuts: Mapping[str, Offsets],
) -> dict[str, Spans]:
    """Spans whose rows below A wait for this release; see `behind.py`."""
    a, found = before.released, dict[str, Spans]()
    if a is UNKNOWN:
        return found
    for name in query.sides:
        was, now = before.streams[name], after.streams[name]
        since = was.late_cut
        if was.cut() != now.cut():
            if not waits_for_next(now, policy):
                since = None
            elif since is None:
                since = was.cut()
        first = first_of_ours(before, query, name)
        if since is None or since == cuts[name] or (first is not UNKNOWN and first >= a):
            continue
        spans = ask.overlapping(name, first, a, since, cuts[name])
        if len(spans):
            found[name] = spans
    return found
