"""What a job counts and tells, held against one who looks at every row of the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.test_wide_planner_laws import (
    KEYED,
    ORDERED,
    TUMBLING,
    policies,
    queries,
    strategies,
    wide,
)
from tests.laws.wide_world import LEFT, RIGHT, Act, WideWorld, scripts

from tidegate.eventtime.lanes import GlobalWatermarkCollector
from tidegate.eventtime.watermark import UNKNOWN, Known, claim, from_json, later
from tidegate.planning import Late, PlannerState, Policy, Query, Release, Start, Strategy, plan
from tidegate.planning.behind import waits_for_next
from tidegate.planning.facts import Offsets
from tidegate.spark.plan_source import told
from tidegate.spark.totals import Counted, added, held_rows, told_number
from tidegate.testing import MemoryLog

starts: st.SearchStrategy[Any] = st.sampled_from([Start.EARLIEST, Start.LATEST, 35])


def by_row(script: list[Act]) -> list[Act]:
    """The same script with a span for every row: then nothing about times is an estimate."""
    found: list[Act] = []
    for act in script:
        if act[0] == "append":
            found += [(*act[:3], [time]) for time in act[3]]
        elif act[0] != "compact":
            found.append(act)
    return found


def waiting(world: WideWorld) -> int:
    """The rows between the start of the query and its cut that no release has given out."""
    a, count = world.state.released, 0
    for name, stream in world.state.streams.items():
        known = set(world.below(name, stream.cut())) - set(world.below(name, stream.start_cut))
        count += sum(a is UNKNOWN or row.time >= a for row in known)
        if a is not UNKNOWN and waits_for_next(stream, world.policy):
            came = set(world.below(name, stream.cut())) - set(
                world.below(name, since_a(world, name))
            )
            count += sum(later(world.state.origin, row.time) == row.time < a for row in came)
    return count


def since_a(world: WideWorld, name: str) -> Offsets:
    """What had been read of a stream when A was reached."""
    reached = [step for step in world.steps if step.after.released != step.before.released]
    return reached[-1].after.streams[name].cut()


@given(scripts, scripts, queries, policies, strategies, starts, st.booleans())
@settings(max_examples=80, deadline=None)
def test_held_rows_are_those_since_the_start_that_are_not_given_out(
    before: list[Act],
    script: list[Act],
    query: Query,
    policy: Policy,
    ways: tuple[Strategy, Strategy],
    start: Any,
    next_: bool,
) -> None:
    late = Late.NEXT if next_ and query in (TUMBLING, KEYED, ORDERED) else policy.late
    world = wide(query, replace(policy, release=Release.TIME, start=start, late=late), ways)
    there = [act for act in before if act[0] in ("append", "split", "merge")]
    world.run(by_row([*there, *script]))
    world.plan()
    logs = {name: world.log.log(name) for name in (LEFT, RIGHT)}
    assert held_rows(logs, world.state) == waiting(world)


def test_rows_that_were_truncated_before_the_start_are_not_held() -> None:
    log, state = MemoryLog(), PlannerState.fresh("q", ["orders"])
    log.add_stream("orders", ["0", "1"])
    for time in (10, 20, 30):
        log.append("orders", "0", [time])
    log.truncate("orders", "0", 2)
    query, policy = Query.ordered("orders"), Policy(release=Release.TIME)
    state, _ = plan(state, log.facts(state), query, policy, now=0)
    assert state.released is UNKNOWN  # the other partition has never had a row
    assert held_rows({"orders": log.log("orders")}, state) == 1


def test_a_partition_that_has_vanished_does_not_hold_the_number_of_its_source() -> None:
    log, state = MemoryLog(), PlannerState.fresh("q", ["orders"])
    log.add_stream("orders", ["0", "1"])
    log.append("orders", "0", [10])
    log.append("orders", "1", [30])
    query, policy = Query.ordered("orders"), Policy(release=Release.TIME)
    state, batch = plan(state, log.facts(state), query, policy, now=0)
    assert told_number(told(batch, cores=2), "orders") == 10
    log.hide("orders", "0")
    state, batch = plan(state, log.facts(state), query, policy, now=0)
    assert batch.watermark == 29
    assert told_number(told(batch, cores=2), "orders") == 30


def test_a_partition_that_has_ended_does_not_hold_the_number_of_its_source() -> None:
    log, state = MemoryLog(), PlannerState.fresh("q", ["orders"])
    log.add_stream("orders", ["0", "1"])
    log.append("orders", "0", [10])
    log.append("orders", "1", [30])
    log.end("orders", "0")
    query, policy = Query.ordered("orders"), Policy(release=Release.TIME)
    _, batch = plan(state, log.facts(state), query, policy, now=0)
    assert batch.watermark == 29
    assert told_number(told(batch, cores=2), "orders") == 30


def test_a_plan_that_told_no_number_leaves_it_unknown() -> None:
    assert told_number({}, "orders") is UNKNOWN


def collected(lanes: list[list[Any]]) -> Known:
    """What a collector makes of the lanes that a job tells."""
    collector = GlobalWatermarkCollector(len(lanes))
    for core, (_, watermark, maximum) in enumerate(lanes):
        known = from_json(maximum)
        collector.update(core, from_json(watermark), known if isinstance(known, int) else UNKNOWN)
    return collector.global_watermark


@given(scripts, queries, policies, strategies, st.integers(1, 6))
@settings(max_examples=80, deadline=None)
def test_what_the_lanes_report_is_together_what_the_planner_says(
    script: list[Act], query: Query, policy: Policy, ways: tuple[Strategy, Strategy], cores: int
) -> None:
    world = wide(query, replace(policy, release=Release.TIME), ways)
    begin: list[Act] = [("append", name, which, [0]) for name in (LEFT, RIGHT) for which in (0, 1)]
    world.run([*begin, ("plan",), *script]).come_to_rest()
    for step in (step for step in world.steps if step.batch.moved):
        lanes = told(step.batch, cores)["lanes"]
        assert len(lanes) == cores
        assert sum(many for many, *_ in lanes) == sum(
            len(stream.number) for stream in step.batch.streams.values()
        )
        assert step.after.watermark == later(step.before.watermark, claim(collected(lanes)))


counts = st.dictionaries(
    st.tuples(st.sampled_from(["orders", "payments"]), st.sampled_from(["0", "1"])),
    st.integers(0, 5),
).map(Counter)
batches = st.builds(
    Counted,
    told=st.fixed_dictionaries(
        {
            "rows": st.dictionaries(st.sampled_from(["orders", "payments"]), st.integers(0, 9)),
            "rebalanced": st.integers(0, 2),
            "advanced": st.booleans(),
        }
    ),
    rows_out=st.integers(0, 9),
    late=counts,
    lost=counts,
    bad=counts,
    seconds=st.sampled_from([0.0, 0.25, 1.5]),
    noted=st.booleans(),
)


@given(st.lists(batches, max_size=6))
def test_totals_are_the_sums_over_all_batches(made: list[Counted]) -> None:
    totals: dict[str, Any] = {}
    for batch in made:
        totals = added(totals, batch)
    by_partition: dict[str, dict[str, list[int]]] = {}
    for place in {place for batch in made for place in batch.late | batch.lost | batch.bad}:
        three = [sum(getattr(b, name)[place] for b in made) for name in ("late", "lost", "bad")]
        if any(three):
            by_partition.setdefault(place[0], {})[place[1]] = three
    assert not made or totals == {
        "batches": len(made),
        "rows_in": sum(sum(batch.told["rows"].values()) for batch in made),
        "rows_out": sum(batch.rows_out for batch in made),
        "late": sum(batch.late.total() for batch in made),
        "lost": sum(batch.lost.total() for batch in made),
        "bad": sum(batch.bad.total() for batch in made),
        "seconds": sum(batch.seconds for batch in made),
        "rebalances": sum(batch.told["rebalanced"] for batch in made),
        "watermarks": sum(batch.noted for batch in made),
        "advances": sum(batch.told["advanced"] for batch in made),
        "partitions": by_partition,
    }
