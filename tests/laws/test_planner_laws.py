"""Laws of the planner, over random scripts of appends, scales, rebalances, crashes and restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.world import (
    STREAM,
    Act,
    World,
    acts,
    calm_scripts,
    in_time,
    micro,
    scripts,
)

from tidegate.eventtime.lateness import Once
from tidegate.eventtime.release import OrderedRelease
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning import Late, Policy, Query, Side

TUMBLING = Query.windows([STREAM], micro(10))
HOPPING = Query.windows([STREAM], micro(12), slide=micro(4))
ORDERED = Query.ordered(STREAM)
ARRIVAL = replace(TUMBLING, sides={STREAM: Side(Once())})
QUERIES = st.sampled_from([TUMBLING, HOPPING, ORDERED])


def by_arrival(tolerance: int = 0) -> Policy:
    return Policy(tolerance=micro(tolerance), idle_after=None)


def once(rows: Counter[tuple[str, int]]) -> bool:
    return all(count == 1 for count in rows.values())


@given(scripts, st.integers(0, 30))
@settings(max_examples=150, deadline=None)
def test_in_arrival_order_every_row_is_given_out_once(script: list[Act], tolerance: int) -> None:
    world = World(ARRIVAL, by_arrival(tolerance)).run(script).drain()
    assert once(world.arrived)
    assert set(world.arrived) == set(world.all_rows())


@given(scripts, QUERIES, st.integers(0, 30))
@settings(max_examples=250, deadline=None)
def test_in_time_order_every_row_is_released_once_or_used_late_or_lost_once(
    script: list[Act], query: Query, tolerance: int
) -> None:
    world = World(query, in_time(tolerance=tolerance)).run(script).drain()
    assert once(world.arrived)
    assert once(world.released)
    assert once(world.lost)
    assert set(world.arrived) == set(world.all_rows())
    assert set(world.released) | set(world.lost) | set(world.used_late) == set(world.all_rows())
    assert not set(world.released) & set(world.lost)
    assert not set(world.released) & set(world.used_late)
    assert not set(world.lost) & set(world.used_late)


@given(scripts, st.integers(0, 30))
@settings(max_examples=150, deadline=None)
def test_with_late_next_no_row_is_lost(script: list[Act], tolerance: int) -> None:
    world = World(TUMBLING, in_time(Late.NEXT, tolerance)).run(script).drain()
    assert once(world.released)
    assert set(world.released) == set(world.all_rows())


@given(scripts, QUERIES, st.integers(0, 30))
@settings(max_examples=150, deadline=None)
def test_nothing_goes_back(script: list[Act], query: Query, tolerance: int) -> None:
    world = World(query, in_time(tolerance=tolerance)).run(script)
    before_the_end = len(world.plans)
    world.drain()
    watermark: Known = UNKNOWN
    released: Known = UNKNOWN
    for i, (state, batch) in enumerate(zip(world.states, world.plans, strict=True)):
        for before, now in ((watermark, state.watermark), (released, state.released)):
            assert before is UNKNOWN or (now is not UNKNOWN and now >= before)
        watermark, released = state.watermark, state.released
        if batch.interval is not None and i < before_the_end:
            # Only the end of the input releases more than the watermark has completed.
            assert batch.watermark is not UNKNOWN
            assert batch.interval.b - 1 <= batch.watermark


@given(calm_scripts, QUERIES, st.integers(0, 30), st.booleans())
@settings(max_examples=250, deadline=None)
def test_the_watermark_is_what_one_who_sees_the_whole_log_would_say(
    script: list[Act], query: Query, tolerance: int, in_arrival: bool
) -> None:
    """A naive oracle: the minimum over partitions of the largest time read so far, less tolerance.

    Successors inherit the minimum of their predecessors, so a key's history counts as one.
    """
    policy = by_arrival(tolerance) if in_arrival else in_time(tolerance=tolerance)
    world = World(query, policy)
    claimed: Known = UNKNOWN
    inherited: dict[str, Known] = {}
    for act, *arguments in script:
        before = world.state.streams[STREAM].names
        getattr(world, act)(*arguments)
        if act != "plan":
            continue
        stream = world.state.streams[STREAM]
        rows = world.log.rows(STREAM)
        entered = [name for name in stream.names if name not in inherited]
        gone = [name for name in before if name not in stream.names]
        for name in entered:
            inherited[name] = _inherited(world, name, gone, inherited, tolerance)
        numbers = [
            _larger(_largest(rows[name][:position], tolerance), inherited[name])
            for name, position in stream.cut().items()
        ]
        if numbers and all(number is not UNKNOWN for number in numbers):
            low = min(number for number in numbers if number is not UNKNOWN) - 1
            claimed = low if claimed is UNKNOWN else max(claimed, low)
        assert world.state.watermark == claimed


def _largest(rows: list[int], tolerance: int) -> Known:
    return max(rows) - tolerance if rows else UNKNOWN


def _larger(one: Known, other: Known) -> Known:
    if one is UNKNOWN or other is UNKNOWN:
        return other if one is UNKNOWN else one
    return max(one, other)


def _inherited(
    world: World,
    name: str,
    gone: list[str],
    inherited: dict[str, Known],
    tolerance: int,
) -> Known:
    """The minimum over all that left in the step in which a partition came, and touch its keys.

    Groups that left together in a chain are followed through what each of them inherited.
    """
    partitions = world.log._streams[STREAM]
    before = [n for n, heirs in partitions.successors.items() if name in heirs]
    if not before:
        return UNKNOWN
    # All sealed partitions tied together by common successors leave in one step.
    group, todo = set(before), list(before)
    while todo:
        for heir in partitions.successors[todo.pop()]:
            for other, heirs in partitions.successors.items():
                if heir in heirs and other not in group:
                    group.add(other)
                    todo.append(other)
    numbers = []
    for other in group:
        if other not in inherited:
            inherited[other] = _inherited(world, other, gone, inherited, tolerance)
        own = _largest(partitions.partitions[other].rows, tolerance)
        numbers.append(_larger(own, inherited[other]))
    if any(number is UNKNOWN for number in numbers):
        return UNKNOWN
    return min(number for number in numbers if number is not UNKNOWN)


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=3), st.data())
@settings(max_examples=150, deadline=None)
def test_with_enough_tolerance_no_row_is_late_however_the_input_is_cut(
    jitter: list[list[int]], data: st.DataObject
) -> None:
    """Law 9: every row lies at most 9 behind the largest before it, in its partition."""
    world = World(
        data.draw(st.sampled_from([TUMBLING, HOPPING, ORDERED])),
        data.draw(st.sampled_from([by_arrival(9), in_time(tolerance=9)])),
        partitions=len(jitter),
    )
    rows = [[10 * i - back for i, back in enumerate(part)] for part in jitter]
    while any(rows):
        which = data.draw(st.sampled_from([i for i, part in enumerate(rows) if part]))
        count = data.draw(st.integers(1, len(rows[which])))
        world.append(which, rows[which][:count])
        rows[which] = rows[which][count:]
        if data.draw(st.booleans()):
            world.plan(data.draw(st.sampled_from([None, 1, 4])))
    world.drain()
    assert not world.late
    assert not world.lost


@given(scripts, st.integers(0, 30))
@settings(max_examples=200, deadline=None)
def test_slices_release_what_the_ordered_release_operator_releases(
    script: list[Act], tolerance: int
) -> None:
    world = World(ORDERED, in_time(tolerance=tolerance))
    release = OrderedRelease().build()
    expected: list[int] = []
    checked = 0

    def follow() -> None:
        nonlocal checked
        for batch in world.plans[checked:]:
            if not batch.moved:
                continue
            for name, (start, end) in sorted(batch.streams[STREAM].ranges().items()):
                release.push((time, None) for time in world.log.read(STREAM, name, start, end))
            if batch.interval is not None:
                expected.extend(row.time for row in release.advance(batch.interval.b - 1).rows)
        checked = len(world.plans)

    world.run(script)
    follow()
    world.drain()
    follow()
    assert [world.time(row) for row in _in_time_order(world)] == expected
    assert release.metrics.late_count == len(world.lost)


def _in_time_order(world: World) -> list[tuple[str, int]]:
    return sorted(world.order, key=world.time)


@given(scripts, QUERIES)
@settings(max_examples=100, deadline=None)
def test_a_run_that_restarts_after_every_plan_equals_a_straight_run(
    script: list[Act], query: Query
) -> None:
    straight = World(query, in_time(tolerance=3)).run(script).drain()
    broken = World(query, in_time(tolerance=3))
    for act in script:
        broken.run([act, ("crash", None), ("restart",)])
    broken.drain()
    assert broken.released == straight.released
    assert broken.lost == straight.lost
    assert broken.used_late == straight.used_late


@given(scripts, QUERIES, st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_allowed_lateness_waits_instead_of_losing(
    script: list[Act], query: Query, allowed: int
) -> None:
    patient = World(query, in_time(allowed_lateness=timedelta(microseconds=allowed)))
    patient.run(script).drain()
    hasty = World(query, in_time()).run(script).drain()
    assert set(patient.lost) <= set(hasty.lost)


@given(st.lists(acts, max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_plan_that_moves_nothing_returns_the_state_to_the_byte(script: list[Act]) -> None:
    world = World(TUMBLING, in_time(tolerance=3)).run(script)
    for _ in range(60):
        text = world.state.to_json()
        if not world.plan().moved:
            assert world.state.to_json() == text
            break
    else:
        pytest.fail("planning the same facts again and again never comes to rest")


@given(scripts)
@settings(max_examples=60, deadline=None)
def test_arrival_and_time_agree_on_what_is_lost_when_nothing_is_late(script: list[Act]) -> None:
    """With a tolerance larger than any disorder neither loses anything."""
    calm = [act for act in script if act[0] not in ("hide", "show", "add")]
    in_order = World(TUMBLING, in_time(tolerance=300)).run(calm).drain()
    as_it_comes = World(TUMBLING, by_arrival(300)).run(calm).drain()
    assert not in_order.lost
    assert not as_it_comes.lost
    assert set(in_order.released) == set(as_it_comes.arrived)
