"""Ordered release: what comes out, when, and what becomes of late rows."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tidegate import errors
from tidegate.eventtime.generators import AutoDisorder, BoundedDisorder, FedByMarks, WithIdleness
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.lateness import Late
from tidegate.eventtime.release import (
    OrderedRelease,
    ReleaseByGenerator,
    Released,
    ReleaseMetrics,
    Releasing,
    ReleasingByGenerator,
    Row,
)
from tidegate.eventtime.watermark import UNKNOWN


def rows(*times: int) -> list[tuple[int, int]]:
    """Rows whose value is their time."""
    return [(time, time) for time in times]


def values(out: Released[Any]) -> list[Any]:
    return [row.value for row in out.rows]


# ---- fed the watermark ----


def test_rows_come_out_in_the_order_of_their_times() -> None:
    release = OrderedRelease().build()
    release.push(rows(5, 3, -4, 4))
    assert values(release.advance(4)) == [-4, 3, 4]
    assert values(release.advance(5)) == [5]


def test_rows_of_one_time_come_out_in_the_order_of_their_arrival() -> None:
    release = OrderedRelease().build()
    release.push([(3, "a"), (1, "b")])
    release.push([(3, "c"), (1, "d")])
    assert values(release.advance(3)) == ["b", "d", "a", "c"]


def test_values_need_no_order_of_their_own() -> None:
    release = OrderedRelease().build()
    release.push([(1, {"a": 1}), (1, {"b": 2})])
    assert values(release.advance(1)) == [{"a": 1}, {"b": 2}]


def test_nothing_comes_out_before_the_first_watermark() -> None:
    release = OrderedRelease().build()
    release.push(rows(1))
    assert release.advance(UNKNOWN) == Released()
    assert release.watermark is UNKNOWN


def test_the_watermark_never_goes_back() -> None:
    release = OrderedRelease().build()
    assert release.advance(5) == Released((), 5)
    release.push(rows(6))
    assert release.advance(5) == Released()
    assert release.advance(4) == Released()
    assert release.watermark == 5
    assert values(release.advance(6)) == [6]


def test_a_row_at_the_watermark_is_late_and_one_after_it_is_not() -> None:
    release = OrderedRelease().build()
    release.advance(5)
    assert release.push(rows(5, 6, 4)) == (Row(5, 0, 5), Row(4, 2, 4))
    assert values(release.advance(6)) == [6]
    assert release.metrics.late_count == 2


def test_slices_are_what_comes_out_when_driven_with_their_ends() -> None:
    release = OrderedRelease().build()
    release.push(rows(9, 10, 19, 20))
    assert values(release.advance(10 - 1)) == [9]
    assert values(release.advance(20 - 1)) == [10, 19], "the slice [10, 20)"


def test_it_can_begin_at_a_watermark() -> None:
    release = OrderedRelease(watermark=10).build()
    assert [row.time for row in release.push(rows(10, 11))] == [10]
    assert release.advance(10) == Released()
    assert release.metrics.watermarks_emitted == 0


# ---- late rows by policy ----


def test_routed_rows_are_an_output_and_counted() -> None:
    release = OrderedRelease(Late.ROUTE).build()
    release.advance(5)
    assert release.push([(3, "late")]) == (Row(3, 0, "late"),)
    assert release.metrics.late_count == 1
    assert release.end() == Released()


def test_dropped_rows_are_counted() -> None:
    release = OrderedRelease(Late.DROP).build()
    release.advance(5)
    assert release.push([(3, "late")]) == ()
    assert release.metrics.late_count == 1
    assert release.end() == Released()


def test_with_next_a_late_row_counts_as_if_it_came_just_after_the_watermark() -> None:
    release = OrderedRelease(Late.NEXT).build()
    release.advance(5)
    assert release.push([(7, "a"), (6, "b"), (3, "late"), (6, "c")]) == ()
    out = release.advance(7)
    assert out.rows == (Row(6, 1, "b"), Row(6, 2, "late"), Row(6, 3, "c"), Row(7, 0, "a"))
    assert release.metrics == ReleaseMetrics(0, 1, 2, 7)


def test_a_row_moved_by_next_is_not_the_largest_time_seen() -> None:
    release = OrderedRelease(Late.NEXT).build()
    release.advance(5)
    release.push(rows(3))
    assert release.metrics.max_seen is UNKNOWN


def test_update_is_refused_because_there_is_no_window_to_correct() -> None:
    with pytest.raises(errors.InputError) as caught:
        OrderedRelease(Late.UPDATE)
    assert caught.value.code == "update-needs-windows"


# ---- the end ----


def test_the_end_gives_out_the_rest_in_order_and_no_watermark() -> None:
    release = OrderedRelease().build()
    release.advance(2)
    release.push(rows(9, 4, 7))
    assert release.end() == Released((Row(4, 1, 4), Row(7, 2, 7), Row(9, 0, 9)), None)
    assert release.watermark == 2
    assert release.metrics == ReleaseMetrics(0, 0, 1, 9)


def test_nothing_follows_the_end() -> None:
    release = OrderedRelease().build()
    release.end()
    restored = OrderedRelease().build(release.snapshot())
    for ended in (release, restored):
        with pytest.raises(errors.InputError, match="nothing can follow the end"):
            ended.push(rows(1))
        with pytest.raises(errors.InputError, match="nothing can follow the end"):
            ended.advance(1)
        with pytest.raises(errors.InputError, match="nothing can follow the end"):
            ended.end()


# ---- metrics, snapshots ----


def test_the_four_metrics() -> None:
    release = OrderedRelease().build()
    assert release.metrics == ReleaseMetrics(0, 0, 0, UNKNOWN)
    release.push(rows(5, 3))
    assert release.metrics == ReleaseMetrics(2, 0, 0, 5)
    release.advance(3)
    release.advance(3)
    release.push(rows(1))
    assert release.metrics == ReleaseMetrics(1, 1, 1, 5)


def test_a_snapshot_is_plain_json_and_goes_on_where_it_was_taken() -> None:
    release = OrderedRelease(Late.NEXT).build()
    release.push([(9, "a"), (4, "b"), (6, "c")])
    release.advance(4)
    release.push([(6, "d"), (2, "late")])
    kept = json.loads(json.dumps(release.snapshot()))
    restored: Releasing[str] = OrderedRelease(Late.NEXT).build(kept)
    assert restored.metrics == release.metrics
    assert restored.watermark == 4
    for one in (release, restored):
        one.push([(6, "e")])
    assert restored.advance(6) == release.advance(6)
    assert restored.end() == release.end()


def test_a_row_out_of_range_is_refused_and_leaves_nothing_behind() -> None:
    release = OrderedRelease().build()
    with pytest.raises(errors.InputError, match="instant is out of range"):
        release.push(rows(1, LIMIT))
    assert release.metrics == ReleaseMetrics(0, 0, 0, UNKNOWN)
    with pytest.raises(errors.InputError, match="instant is out of range"):
        release.advance(LIMIT)
    assert release.watermark is UNKNOWN


# ---- following a generator ----


def following(tolerance: int, late: Late = Late.ROUTE) -> ReleasingByGenerator[Any]:
    """As in the document this follows: time begins at 0, not at UNKNOWN."""
    generator = BoundedDisorder(timedelta(microseconds=tolerance))
    return ReleaseByGenerator(generator, OrderedRelease(late, watermark=0)).build()


NOTHING: tuple[list[int], None] = ([], None)

VELOFLUX: dict[str, tuple[int, list[tuple[list[int] | None, tuple[list[int], int | None]]]]] = {
    "VF-01": (1, [([3, 1, 2], ([1, 2], 2)), ([4], ([3], 3))]),
    "VF-02": (0, [([2], ([2], 2)), ([2, 1], NOTHING)]),
    "VF-03": (0, [([5, 1], ([1, 5], 5))]),
    "VF-04": (0, [([5], ([5], 5)), ([1], NOTHING)]),
    "VF-05": (7, [([17], ([], 10)), ([10], NOTHING), ([11], NOTHING), (None, ([11, 17], None))]),
    "VF-07": (5, [([3, 1, 2], NOTHING), (None, ([1, 2, 3], None))]),
}


@pytest.mark.parametrize("case", VELOFLUX)
def test_the_cases_of_ordered_release(case: str) -> None:
    tolerance, steps = VELOFLUX[case]
    release = following(tolerance)
    for batch, expected in steps:
        out = release.end() if batch is None else release.push(rows(*batch))
        assert (values(out), out.watermark) == expected


def test_the_case_of_ordered_release_with_equal_times() -> None:
    out = following(0).push([(3, "a"), (3, "b"), (1, "c")])  # VF-06
    assert (values(out), out.watermark) == (["c", "a", "b"], 3)


def test_a_window_over_ordered_release_closes_when_the_watermark_reaches_its_end() -> None:
    release = following(7_000)  # VP-01, in milliseconds
    window: list[int] = []
    for value, time in [(7, 7000), (1, 1000), (4, 4000)]:
        out = release.push([(time, value)])
        window += values(out)
        assert out.watermark is None or out.watermark < 10_000, "no output yet"
    out = release.push([(17_000, 17)])
    window += values(out)
    assert out.watermark == 10_000
    assert sum(window) == 12


def test_late_rows_come_out_beside_the_released_ones() -> None:
    release = following(0)
    release.push(rows(5))
    out = release.push(rows(9, 2))
    assert (values(out), out.watermark) == ([9], 9)
    assert [row.value for row in out.late] == [2]
    assert release.metrics == ReleaseMetrics(0, 1, 2, 9)


def test_an_empty_batch_moves_nothing() -> None:
    assert following(0).push([]) == Released()


def test_it_follows_whatever_generator_it_is_given() -> None:
    auto: ReleasingByGenerator[int] = ReleaseByGenerator(AutoDisorder()).build()
    assert auto.push(rows(10, 6)).watermark == 10
    assert auto.push(rows(16)).watermark == 12, "rows have been 4 behind"
    marks: ReleasingByGenerator[int] = ReleaseByGenerator(FedByMarks()).build()
    assert marks.push(rows(10, 6)) == Released()


def test_an_idle_generator_claims_nothing() -> None:
    now = 0
    generator = WithIdleness(BoundedDisorder(), timedelta(microseconds=5), lambda: now)
    release: ReleasingByGenerator[int] = ReleaseByGenerator(generator).build()
    assert release.push(rows(3)).watermark == 3
    now = 100
    assert release.push([]) == Released()


def test_its_snapshot_holds_the_generator_too() -> None:
    config = ReleaseByGenerator(BoundedDisorder(timedelta(microseconds=2)))
    release: ReleasingByGenerator[int] = config.build()
    release.push(rows(9, 8, 3))
    kept = json.loads(json.dumps(release.snapshot()))
    restored: ReleasingByGenerator[int] = config.build(kept)
    assert restored.metrics == release.metrics
    assert restored.push(rows(10, 7)) == release.push(rows(10, 7))
    assert restored.end() == release.end()
