"""What a full join remembers of rows that came too late: all that is read, and no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from tests.laws.test_replay_laws import check
from tests.laws.test_wide_planner_laws import AFTER, BEFORE, policies, strategies, wide
from tests.laws.wide_world import LEFT, RIGHT, Act, changing_scripts, micro

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.planning import Late, PlannerState, Policy, Query, Release, Spans, Strategy
from tidegate.planning.latecomers import parted, remember_latecomers
from tidegate.planning.state import Latecomer

FULL = Query.full_join(LEFT, RIGHT, before=micro(BEFORE), after=micro(AFTER))


@given(changing_scripts, policies, strategies)
@settings(max_examples=60, deadline=None)
def test_a_batch_of_a_full_join_made_again_reads_what_its_plan_read(
    script: list[Act], policy: Policy, ways: tuple[Strategy, Strategy]
) -> None:
    script = [act for act in script if act != ("lose", Late.NEXT)]
    world = wide(FULL, replace(policy, release=Release.TIME), ways).run(script)
    for step in world.steps:
        assert PlannerState.from_json(step.after.to_json()).same_as(step.after)
        if step.batch.moved:
            check(world, step)
        else:
            assert step.after.same_as(step.before)


def test_ranges_are_kept_while_they_can_be_read_and_neighbours_are_one() -> None:
    state = PlannerState.fresh("q", ["a", "b"])
    query = Query.full_join(
        "a", "b", before=timedelta(microseconds=4), after=timedelta(microseconds=3)
    )

    def then(
        state: PlannerState, closed: int, *spans: tuple[str, int, int, int, int]
    ) -> PlannerState:
        arrived = {"a": Spans.of(spans), "b": Spans.of([("p", 0, 1, closed + 3, closed + 3)])}
        return remember_latecomers(state, arrived, query, closed)

    state = then(state, 10, ("p", 0, 5, 10, 30))  # exactly at A: not late
    assert state.streams["a"].latecomers == ()
    state = then(state, 20, ("p", 5, 7, 19, 30), ("p", 7, 9, 0, 30), ("q", 3, 4, 20, 20))
    assert state.streams["a"].latecomers == (Latecomer("p", 5, 9, 20),)
    state = then(state, 26, ("p", 9, 10, 0, 30))
    assert [one.since for one in state.streams["a"].latecomers] == [20, 26]
    state = then(state, 27)  # A reads from 20 on, where nothing was lost
    assert [one.since for one in state.streams["a"].latecomers] == [26]
    # The second stream has met nobody who was given out, up to `after` above A.
    assert state.streams["b"].latecomers == ()
    arrived = {"a": Spans.of([]), "b": Spans.of([("p", 1, 2, 29, 40)])}
    state = remember_latecomers(state, arrived, query, 27)
    assert state.streams["b"].latecomers == (Latecomer("p", 1, 2, 27),)
    assert PlannerState.from_json(state.to_json()).same_as(state)


def test_spans_are_parted_by_offset_whatever_was_compacted() -> None:
    spans = Spans.of([("p", 0, 10, 0, 9), ("q", 0, 4, 0, 9), ("r", 2, 3, 0, 9)])
    came = [Latecomer("q", 0, 9, 7), Latecomer("p", 8, 12, 7), Latecomer("p", 2, 3, 5)]
    found = {
        since: [
            (part.names[place], start, end, rows)
            for place, start, end, rows in zip(
                part.partition.tolist(),
                part.start.tolist(),
                part.end.tolist(),
                part.rows.tolist(),
                strict=True,
            )
        ]
        for since, part in parted(spans, came).items()
    }
    assert found == {
        UNKNOWN: [("p", 0, 2, 2), ("p", 3, 8, 5), ("r", 2, 3, 1)],
        5: [("p", 2, 3, 1)],
        7: [("p", 8, 10, 2), ("q", 0, 4, 4)],
    }
