"""A batch made again from the two states around it reads what its plan read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.test_wide_planner_laws import HOPPING, JOIN, policies, queries, strategies, wide
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

from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning import BatchPlan, Late, Policy, Query, Release, Spans, Strategy
from tidegate.planning.replay import replay


def again(world: WideWorld, step: Step) -> BatchPlan:
    return replay(
        step.before,
        step.after,
        # Asked when all is over: nothing that came later, and no compaction, may change it.
        world.log.facts(step.after).ask,
        world.query,
        replace(world.policy, late=step.late),
        cores=3,
    )


def rows(world: WideWorld, reads: Mapping[str, Spans], low: int, high: int) -> set[Row]:
    found = {row for name, spans in reads.items() for row in world.rows_of(name, spans)}
    return {row for row in found if low <= row.time < high}


def check(world: WideWorld, step: Step) -> None:
    made, plan = again(world, step), step.batch
    assert (made.batch, made.lineage, made.finished) == (plan.batch, plan.lineage, plan.finished)
    assert made.interval == plan.interval
    assert (made.frontier, made.emitted) == (plan.frontier, plan.emitted)
    assert made.correction == plan.correction
    for name, stream in plan.streams.items():
        mine = made.streams[name]
        assert (mine.before, mine.cut, mine.start_cut) == (
            stream.before,
            stream.cut,
            stream.start_cut,
        )
        assert (mine.closed, mine.origin) == (stream.closed, stream.origin)
        w = step.before.watermark
        if w is not UNKNOWN:
            assert rows(world, {name: mine.late}, -(10**6), w + 1) == rows(
                world, {name: stream.late}, -(10**6), w + 1
            )
    if plan.slice is None or made.slice is None:
        assert plan.slice is None
        assert made.slice is None
        return

    # Tasks may be cut elsewhere after a compaction; together they read the same rows.
    def read(batch: BatchPlan, behind: bool) -> set[Row]:
        assert batch.slice is not None
        a, b = batch.slice.interval.a, batch.slice.interval.b
        found: set[Row] = set()
        for task in batch.slice.tasks:
            low = -(10**6) if a is UNKNOWN or behind else a
            high = b if not behind else (a if a is not UNKNOWN else b)
            found |= rows(world, task.behind if behind else task.reads, low, high)
        return found

    assert read(made, False) == read(plan, False)
    assert read(made, True) == read(plan, True)


@given(changing_scripts, queries, policies, strategies)
@settings(max_examples=120, deadline=None)
def test_a_batch_made_again_reads_what_its_plan_read(
    script: list[Act], query: Query, policy: Policy, ways: tuple[Strategy, Strategy]
) -> None:
    if query in (HOPPING, JOIN):
        script = [act for act in script if act != ("lose", Late.NEXT)]
    world = wide(query, replace(policy, release=Release.TIME), ways).run(script)
    for step in world.steps:
        if step.batch.moved:
            check(world, step)


@given(scripts, queries, st.sampled_from([Late.ROUTE, Late.UPDATE]), st.sampled_from([0, 10, 13]))
@settings(max_examples=100, deadline=None)
def test_a_frontier_is_emitted_when_it_is_another_than_the_last_one(
    script: list[Act], query: Query, late: Late, allowed: int
) -> None:
    policy = Policy(release=Release.TIME, late=late, allowed_lateness=micro(allowed))
    begin: list[Act] = [("append", name, which, [0]) for name in (LEFT, RIGHT) for which in (0, 1)]
    world = WideWorld(query, policy).run([*begin, ("plan",), *script]).come_to_rest()
    last: Known = UNKNOWN
    for step in (step for step in world.steps if step.batch.moved):
        assert step.batch.emitted == again(world, step).emitted == (step.batch.frontier != last)
        last = step.batch.frontier
