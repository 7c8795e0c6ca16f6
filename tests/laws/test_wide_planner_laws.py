"""Laws of the planner over several streams: the same scripts, and a naive look at the whole log."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.wide_world import (
    LEFT,
    RIGHT,
    Act,
    Row,
    Step,
    WideWorld,
    changing_scripts,
    micro,
    scripts,
)

from tidegate.eventtime.instants import micros
from tidegate.eventtime.lateness import InWindows
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning import Late, Policy, Query, Release, Strategy

TUMBLING = Query.windows([LEFT, RIGHT], micro(10))
KEYED = replace(TUMBLING, keyed=True)
HOPPING = Query.windows([LEFT, RIGHT], micro(12), slide=micro(4))
APART = Query.windows([LEFT, RIGHT], micro(5), slide=micro(10))
ORDERED = Query.ordered(LEFT, RIGHT)
BEFORE, AFTER = 15, 7
JOIN = Query.interval_join(LEFT, RIGHT, before=micro(BEFORE), after=micro(AFTER))

queries = st.sampled_from([TUMBLING, KEYED, HOPPING, APART, ORDERED, JOIN])
"""Of these `late = next` is refused for hopping windows and joins."""
strategies = st.tuples(st.sampled_from(Strategy), st.sampled_from(Strategy))
policies = st.builds(
    lambda release, tolerance, idle_after, allowed, drift: Policy(
        release=release,
        tolerance=micro(tolerance),
        idle_after=idle_after,
        allowed_lateness=micro(allowed),
        max_drift=drift,
    ),
    st.sampled_from([Release.TIME, Release.TIME, Release.ARRIVAL]),
    st.sampled_from([0, 0, 5, 30]),
    st.sampled_from([None, micro(20)]),
    st.sampled_from([0, 0, 13]),
    st.sampled_from([None, None, micro(5), micro(30)]),
)


def wide(query: Query, policy: Policy, ways: tuple[Strategy, Strategy]) -> WideWorld:
    own = dict(zip((LEFT, RIGHT), (replace(policy, watermark=way) for way in ways), strict=True))
    return WideWorld(query, policy, own)


class Fates:
    """What became of every row, from the plans alone."""

    def __init__(self, world: WideWorld) -> None:
        self.arrived: Counter[Row] = Counter()
        self.released: Counter[Row] = Counter()
        self.next: Counter[Row] = Counter()
        self.used_late: Counter[Row] = Counter()
        self.lost: dict[Row, Late] = {}
        for step in world.steps:
            if step.batch.moved:
                self._arrive(world, step)
                self._release(world, step)

    def _arrive(self, world: WideWorld, step: Step) -> None:
        for name, stream in step.batch.streams.items():
            can_be_late = set(world.rows_of(name, stream.late))
            for row in world.rows_of(name, stream.arrived):
                self.arrived[row] += 1
                judged = stream.judge(np.array([row.time]))
                assert not judged.late[0] or row in can_be_late
                assert not judged.lost[0] or judged.late[0]
                if judged.lost[0]:
                    self.lost[row] = step.late
                elif step.before.released is not UNKNOWN and row.time < step.before.released:
                    self.used_late[row] += 1

    def _release(self, world: WideWorld, step: Step) -> None:
        if step.batch.slice is None:
            return
        a = step.batch.slice.interval.a
        for task in step.batch.slice.tasks:
            for name, spans in task.reads.items():
                rows = [row for row in world.rows_of(name, spans) if _inside(row, task.interval.a)]
                self.released.update(row for row in rows if row.time < task.interval.b)
            for name, spans in task.behind.items():
                assert a is not UNKNOWN
                use = world.query.sides[name].use
                rows = world.rows_of(name, spans)
                self.next.update(row for row in rows if use.is_lost(row.time, a))

    def check(self, world: WideWorld) -> None:
        """Each row is released once, or counts in the next release, or is used late, or lost."""
        everything = list(world.all_rows())
        assert Counter(everything) == self.arrived
        if world.policy.release is Release.ARRIVAL:
            return
        assert all(count == 1 for count in (self.released + self.next).values())
        for row in everything:
            given_out = row in self.released or row in self.next
            lost = row in self.lost and not given_out
            used = row in self.used_late and not given_out
            assert given_out + lost + used == 1, (row, given_out, lost, used)


def _inside(row: Row, a: Known) -> bool:
    return a is UNKNOWN or row.time >= a


@given(scripts, queries, policies, strategies)
@settings(max_examples=120, deadline=None)
def test_every_row_of_every_stream_has_one_fate(
    script: list[Act], query: Query, policy: Policy, ways: tuple[Strategy, Strategy]
) -> None:
    world = wide(query, policy, ways).run(script).come_to_rest()
    early = world.state.finished
    world.drain()
    if not early:
        Fates(world).check(world)


@given(changing_scripts, st.sampled_from([TUMBLING, KEYED, ORDERED]), strategies)
@settings(max_examples=80, deadline=None)
def test_policies_that_change_do_not_release_a_row_twice(
    script: list[Act], query: Query, ways: tuple[Strategy, Strategy]
) -> None:
    policy = Policy(release=Release.TIME, idle_after=micro(20))
    world = wide(query, policy, ways).run(script).come_to_rest()
    early = world.state.finished
    world.drain()
    if not early:
        Fates(world).check(world)


@given(scripts, st.sampled_from([TUMBLING, KEYED, ORDERED]), strategies)
@settings(max_examples=80, deadline=None)
def test_with_late_next_no_row_is_lost_even_when_the_input_ends(
    script: list[Act], query: Query, ways: tuple[Strategy, Strategy]
) -> None:
    policy = Policy(release=Release.TIME, late=Late.NEXT, idle_after=micro(20))
    world = wide(query, policy, ways).run(script)
    if not world.state.finished:
        fates = Fates(world.drain())
        assert set(fates.released) | set(fates.next) == set(world.all_rows())


@given(scripts, queries, policies, strategies)
@settings(max_examples=120, deadline=None)
def test_no_watermark_passes_what_is_still_waited_for(
    script: list[Act], query: Query, policy: Policy, ways: tuple[Strategy, Strategy]
) -> None:
    """W moves only as far as everybody who is behind, held, sealed or simply active lets it."""
    world = wide(query, policy, ways).run(script).come_to_rest()
    for step in world.steps:
        before, after = step.before.watermark, step.after.watermark
        assert before is UNKNOWN or (after is not UNKNOWN and after >= before)
        if after is UNKNOWN or after == before or step.after.finished:
            continue
        for name in query.streams:
            assert all(after < number for number in _numbers_waited_for(step, name))


def _numbers_waited_for(step: Step, name: str) -> list[int]:
    """The numbers of those who may not be passed; one that has none may not be passed at all."""
    stream, facts = step.after.streams[name], step.facts.streams[name]
    never = -(10**9)
    if stream.strategy is Strategy.PROCESSING:
        return [] if _over(step, name) else [step.now]
    latest = dict(zip(facts.partitions.names, facts.partitions.latest.tolist(), strict=True))
    sealed = dict(zip(facts.partitions.names, facts.partitions.sealed.tolist(), strict=True))
    ended = dict(zip(facts.partitions.names, facts.partitions.ended.tolist(), strict=True))
    waited_for = []
    for i, partition in enumerate(stream.names):
        if partition not in latest:
            continue
        held = (name, partition) in step.pressure.paused or partition in facts.partitions.unreadable
        unread = stream.position[i] < latest[partition]
        if held or unread or sealed[partition] or not (stream.idle[i] or ended[partition]):
            waited_for.append(int(stream.number[i]) if stream.known[i] else never)
        assert not (stream.idle[i] and (held or unread or sealed[partition]))
    if stream.strategy is Strategy.EVENTS:
        return waited_for
    unread_rows = any(stream.position[i] < latest.get(p, 0) for i, p in enumerate(stream.names))
    if (facts.writers and not _over(step, name)) or unread_rows:
        return [never if stream.stream_number is UNKNOWN else stream.stream_number]
    return []


def _over(step: Step, name: str) -> bool:
    partitions = step.facts.streams[name].partitions
    return bool((partitions.ended | partitions.sealed).all())


@given(scripts, st.sampled_from([TUMBLING, KEYED, HOPPING, APART]), policies, strategies)
@settings(max_examples=100, deadline=None)
def test_windows_made_from_what_tasks_read_are_those_of_all_rows(
    script: list[Act], query: Query, policy: Policy, ways: tuple[Strategy, Strategy]
) -> None:
    """Every window is emitted once, whole in one task, with all that lies before the cut."""
    world = wide(query, replace(policy, release=Release.TIME), ways).run(script).drain()
    emitted: Counter[tuple[str, int, float]] = Counter()
    for step in world.steps:
        if step.batch.slice is None:
            continue
        for name in query.streams:
            there = world.below(name, step.batch.streams[name].cut)
            found: dict[int, Counter[Row]] = {}
            for task in step.batch.slice.tasks:
                rows = world.rows_of(name, task.reads[name])
                made = _windows(query, name, rows, task.interval.a, task.interval.b)
                emitted.update((name, end, task.low) for end in made)
                for end, content in made.items():
                    found.setdefault(end, Counter()).update(content)
            interval = step.batch.slice.interval
            assert found == _windows(query, name, there, interval.a, interval.b)
    assert all(count == 1 for count in emitted.values())


def _windows(query: Query, name: str, rows: list[Row], a: Known, b: int) -> dict[int, Counter[Row]]:
    """The windows that end in (a, b], with their rows."""
    use = query.sides[name].use
    assert isinstance(use, InWindows)
    size, slide = micros(use.size), micros(use.slide or use.size)
    found: dict[int, Counter[Row]] = {}
    for row in rows:
        for start in range(row.time // slide * slide, row.time - size, -slide):
            end = start + size
            if (a is UNKNOWN or end > a) and end <= b:
                found.setdefault(end, Counter())[row] += 1
    return found


@given(scripts, policies, strategies)
@settings(max_examples=100, deadline=None)
def test_a_task_of_a_join_reads_all_that_its_rows_can_meet(
    script: list[Act], policy: Policy, ways: tuple[Strategy, Strategy]
) -> None:
    world = wide(JOIN, replace(policy, release=Release.TIME), ways).run(script).drain()
    driven: Counter[Row] = Counter()
    for step in world.steps:
        if step.batch.slice is None:
            continue
        there = world.below(RIGHT, step.batch.streams[RIGHT].cut)
        for task in step.batch.slice.tasks:
            others = set(world.rows_of(RIGHT, task.reads[RIGHT]))
            for row in world.rows_of(LEFT, task.reads[LEFT]):
                if _inside(row, task.interval.a) and row.time < task.interval.b:
                    driven[row] += 1
                    first, last = row.time - BEFORE, row.time + AFTER
                    assert others >= {other for other in there if first <= other.time <= last}
    assert all(count == 1 for count in driven.values())


@given(scripts, st.sampled_from([0, 5, 30]), st.sampled_from([0, 7, 25, 60]))
@settings(max_examples=100, deadline=None)
def test_with_update_a_window_holds_whatever_came_while_it_could_be_corrected(
    script: list[Act], tolerance: int, allowed: int
) -> None:
    policy = Policy(
        release=Release.TIME,
        late=Late.UPDATE,
        tolerance=micro(tolerance),
        allowed_lateness=micro(allowed),
        idle_after=None,
    )
    world = WideWorld(HOPPING, policy).run(script).drain()
    content: dict[tuple[str, int], Counter[Row]] = {}
    wanted: list[tuple[Row, Known]] = []
    for step in world.steps:
        correction = step.batch.correction
        intervals = [step.batch.interval, correction.interval if correction else None]
        for name, stream in step.batch.streams.items():
            closed = step.before.released
            final = UNKNOWN if closed is UNKNOWN else closed - allowed
            wanted += [(row, final) for row in world.rows_of(name, stream.arrived)]
            there = world.below(name, stream.cut)
            for interval in intervals:
                if interval is not None:
                    made = _windows(HOPPING, name, there, interval.a, interval.b)
                    content.update({(name, end): rows for end, rows in made.items()})
    for row, final in wanted:
        for end, rows in _windows(HOPPING, row.stream, [row], final, 10**9).items():
            assert rows <= content[row.stream, end]
