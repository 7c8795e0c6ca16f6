"""Laws of ordered release: sorted, complete, blind to batches and to restarts."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.lateness import Late
from tidegate.eventtime.release import (
    OrderedRelease,
    ReleaseByGenerator,
    Released,
    Releasing,
    ReleasingByGenerator,
)
from tidegate.eventtime.watermark import UNKNOWN

law = settings(deadline=None, max_examples=150)

times = st.integers(-20, 20)
batches = st.lists(times, max_size=6)
steps = st.lists(batches | times, max_size=12)
"""A list is a batch of rows, a number a watermark."""
policies = st.sampled_from([Late.ROUTE, Late.DROP, Late.NEXT])

Placed = tuple[int, int]
"""A row: (time, arrival)."""


def run(release: Releasing[int], steps: list[list[int] | int]) -> list[Released[int]]:
    """What comes out step by step, and at the end."""
    out: list[Released[int]] = []
    for step in steps:
        if isinstance(step, list):
            out.append(Released(late=release.push((time, time) for time in step)))
        else:
            out.append(release.advance(step))
    return [*out, release.end()]


def naive(steps: list[list[int] | int], late: Late) -> tuple[list[Placed], list[Placed]]:
    """(released, late) rows: judge every row by the largest watermark so far, sort the rest."""
    kept: list[Placed] = []
    lost: list[Placed] = []
    watermarks: list[int] = []
    arrival = 0
    for step in steps:
        if not isinstance(step, list):
            watermarks.append(step)
            continue
        for time in step:
            if watermarks and time <= max(watermarks):
                lost.append((time, arrival))
                if late is Late.NEXT:
                    kept.append((max(watermarks) + 1, arrival))
            else:
                kept.append((time, arrival))
            arrival += 1
    return sorted(kept), lost


@law
@given(steps, policies)
def test_everything_that_is_not_late_comes_out_once_and_in_order(
    steps: list[list[int] | int], late: Late
) -> None:
    release: Releasing[int] = OrderedRelease(late).build()
    out = run(release, steps)
    released = [(row.time, row.arrival) for step in out for row in step.rows]
    kept, lost = naive(steps, late)
    assert released == kept
    assert release.metrics.late_count == len(lost)
    routed = [(row.time, row.arrival) for step in out for row in step.late]
    assert routed == (lost if late is Late.ROUTE else [])


@law
@given(steps, policies)
def test_rows_come_before_their_watermark_and_never_after_it(
    steps: list[list[int] | int], late: Late
) -> None:
    reached: list[int] = []
    release: Releasing[int] = OrderedRelease(late).build()
    for step in run(release, steps):
        assert all(not reached or row.time > reached[-1] for row in step.rows)
        if step.watermark is not None:
            assert not reached or step.watermark > reached[-1], "watermarks only advance"
            assert all(row.time <= step.watermark for row in step.rows)
            reached.append(step.watermark)
    assert release.metrics.watermarks_emitted == len(reached)
    assert release.metrics.buffer_size == 0
    assert (release.watermark is UNKNOWN) == (reached == [])


@law
@given(steps, policies, st.integers(0, 12))
def test_a_restart_in_the_middle_changes_nothing(
    steps: list[list[int] | int], late: Late, cut: int
) -> None:
    config = OrderedRelease(late)
    straight = run(config.build(), steps)
    before: Releasing[int] = config.build()
    first = run_without_end(before, steps[:cut])
    after: Releasing[int] = config.build(json.loads(json.dumps(before.snapshot())))
    assert after.metrics == before.metrics
    assert first + run(after, steps[cut:]) == straight


def run_without_end(release: Releasing[int], steps: list[list[int] | int]) -> list[Released[int]]:
    return [
        Released(late=release.push((time, time) for time in step))
        if isinstance(step, list)
        else release.advance(step)
        for step in steps
    ]


def disorder(arrived: list[int]) -> int:
    """The largest amount by which a row lies behind an earlier one."""
    return max(
        (earlier - time for at, time in enumerate(arrived) for earlier in arrived[:at]), default=0
    )


def cut_up(arrived: list[int], cuts: list[int]) -> list[list[int]]:
    edges = [0, *sorted(min(cut, len(arrived)) for cut in cuts), len(arrived)]
    return [arrived[a:b] for a, b in pairwise(edges)]


@law
@given(st.lists(times, max_size=20), st.lists(st.integers(0, 20), max_size=6), st.integers(0, 5))
def test_with_tolerance_for_the_disorder_batching_does_not_matter(
    arrived: list[int], cuts: list[int], spare: int
) -> None:
    rule = BoundedDisorder(timedelta(microseconds=max(disorder(arrived), 0) + spare))
    release: Releasing[int] = OrderedRelease().build()
    released: list[int] = []
    seen: list[int] = []
    for batch in cut_up(arrived, cuts):
        assert release.push((time, time) for time in batch) == (), "no row is late"
        seen += batch
        if seen:  # the claim W = N - 1 us
            released += [row.value for row in release.advance(rule.number(max(seen)) - 1).rows]
    released += [row.value for row in release.end().rows]
    assert released == sorted(arrived)


@law
@given(st.lists(times, max_size=20), st.lists(st.integers(0, 20), max_size=6), st.integers(1, 5))
def test_fed_the_number_itself_the_tolerance_must_exceed_the_disorder(
    arrived: list[int], cuts: list[int], spare: int
) -> None:
    rule = BoundedDisorder(timedelta(microseconds=max(disorder(arrived), 0) + spare))
    release: ReleasingByGenerator[int] = ReleaseByGenerator(rule).build()
    out = [release.push((time, time) for time in batch) for batch in cut_up(arrived, cuts)]
    out.append(release.end())
    assert [row.value for step in out for row in step.rows] == sorted(arrived)
    assert release.metrics.late_count == 0
