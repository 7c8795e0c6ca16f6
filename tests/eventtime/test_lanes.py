from __future__ import annotations

import pytest

from tidegate import errors
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.lanes import CoreWatermarkState, GlobalWatermarkCollector
from tidegate.eventtime.merge import Report
from tidegate.eventtime.tracker import PartitionId
from tidegate.eventtime.watermark import IDLE, UNKNOWN

A, B, C = PartitionId(0, 0), PartitionId(0, 1), PartitionId(1, 0)


def lane(core: int, **watermarks: int) -> CoreWatermarkState:
    """A lane with partitions a, b, c at these times."""
    named = {"a": A, "b": B, "c": C}
    state = CoreWatermarkState(core, [named[name] for name in watermarks])
    for name, watermark in watermarks.items():
        state.update(named[name], watermark)
    return state


# ---- one lane ----


def test_an_empty_lane_knows_nothing_and_waits_for_nobody() -> None:
    state = CoreWatermarkState(0)
    assert state.local_watermark() is UNKNOWN
    assert state.report() == Report(IDLE, UNKNOWN)
    assert (len(state), state.partitions()) == (0, [])


def test_a_lane_keeps_the_minimum_over_its_own() -> None:
    state = CoreWatermarkState(0, [A, B])
    assert state.update(A, 5000) is None
    assert state.local_watermark() is UNKNOWN
    assert state.update(B, 3000) == 3000
    assert state.update(A, 6000) is None
    assert state.update(B, 4000) == 4000
    assert state.report() == Report(4000)


def test_a_lane_does_not_wait_for_an_idle_partition() -> None:
    state = lane(0, a=5000, b=2000)
    assert state.mark_idle(B) == 5000
    assert state.is_idle(B)
    assert not state.is_idle(A)


def test_a_wholly_idle_lane_reports_idle_with_its_maximum() -> None:
    state = lane(0, a=5000, b=2000)
    state.mark_idle(A)
    state.mark_idle(B)
    assert state.report() == Report(IDLE, 5000)
    assert state.local_watermark() == 5000


def test_a_partition_moves_in_with_what_another_lane_knew_of_it() -> None:
    state = lane(0, a=5000)
    state.assign(B, 3000)
    state.assign(C, 1000, idle=True)
    assert state.partitions() == [A, B, C]
    assert (state.watermark(B), state.watermark(C)) == (3000, 1000)
    assert state.is_idle(C)
    assert state.local_watermark() == 3000


def test_a_lane_goes_back_when_a_slower_partition_moves_in_or_returns() -> None:
    state = lane(0, a=5000)
    state.assign(B, 3000, idle=True)
    assert state.local_watermark() == 5000
    assert state.update(B, 4000) == 4000, "the collector has to hear of it"
    state.assign(C)
    assert state.local_watermark() is UNKNOWN


def test_a_partition_given_away_no_longer_holds_the_lane() -> None:
    state = lane(0, a=5000, b=3000)
    assert state.remove(B)
    assert not state.remove(B)
    assert len(state) == 1
    assert state.local_watermark() == 5000


def test_the_place_of_one_given_away_is_taken_by_the_next() -> None:
    state = lane(0, a=5000, b=3000)
    state.remove(B)
    state.assign(C)
    assert state.watermark(C) is UNKNOWN
    assert not state.is_idle(C)


def test_a_lane_has_a_partition_once_and_answers_only_for_its_own() -> None:
    state = lane(0, a=5000)
    with pytest.raises(errors.InputError, match="exists"):
        state.assign(A)
    for act in (state.mark_idle, state.watermark, state.is_idle):
        with pytest.raises(errors.InputError, match="unknown partition"):
            act(B)
    with pytest.raises(errors.InputError, match="it has: 0"):
        state.update(B, 1)


# ---- the collector ----


def test_the_collector_waits_for_every_lane() -> None:
    collector = GlobalWatermarkCollector(3)
    assert collector.global_watermark is UNKNOWN
    assert collector.update(0, 5000) is None
    assert collector.update(1, 3000) is None
    assert collector.update(2, 4000) == 3000
    assert collector.update(1, 4500) == 4000
    assert collector.core_watermark(1) == 4500


def test_the_global_watermark_stays_when_a_lane_goes_back() -> None:
    collector = GlobalWatermarkCollector(2)
    collector.update(0, 5000)
    collector.update(1, 4000)
    assert collector.update(1, 3000) is None
    assert collector.core_watermark(1) == 3000
    assert collector.global_watermark == 4000
    assert collector.update(1, 4500) == 4500


def test_an_idle_lane_holds_nobody_and_when_all_are_the_largest_maximum_counts() -> None:
    collector = GlobalWatermarkCollector(2)
    collector.update(0, 5000)
    assert collector.update(1, IDLE, 9000) == 5000
    assert collector.core_watermark(1) is IDLE
    assert collector.update(0, IDLE, 6000) == 9000


def test_lanes_are_gathered_in_one_step() -> None:
    left, right = lane(0, a=5000), lane(1, b=3000)
    collector = GlobalWatermarkCollector(2)
    assert collector.gather([left, right])
    assert collector.global_watermark == 3000
    assert not collector.gather([left, right])


def test_a_partition_that_moves_is_never_missing_from_both_lanes() -> None:
    left, right = lane(0, a=5000, b=1000), lane(1, c=7000)
    collector = GlobalWatermarkCollector(2)
    collector.gather([left, right])
    right.assign(B, left.watermark(B), idle=left.is_idle(B))
    left.remove(B)
    assert not collector.gather([left, right])
    assert collector.global_watermark == 1000


def test_the_global_watermark_is_broadcast_to_every_lane() -> None:
    left, right = lane(0, a=5000), lane(1, b=3000)
    collector = GlobalWatermarkCollector(2)
    assert left.global_watermark is UNKNOWN
    collector.gather([left, right])
    collector.broadcast([left, right])
    assert [lane.global_watermark for lane in (left, right)] == [3000, 3000]


@pytest.mark.parametrize("core", [-1, 2])
def test_an_unknown_core_is_an_error_and_changes_nothing(core: int) -> None:
    collector = GlobalWatermarkCollector(2)
    for act in (lambda: collector.update(core, 1), lambda: collector.core_watermark(core)):
        with pytest.raises(errors.InputError, match="unknown core"):
            act()
    with pytest.raises(errors.InputError, match="unknown core"):
        collector.gather([lane(0, a=5000), lane(core, b=3000)])
    assert collector.core_watermark(0) is UNKNOWN


def test_a_watermark_out_of_range_is_refused_not_taken_for_a_word() -> None:
    collector = GlobalWatermarkCollector(1)
    with pytest.raises(errors.InputError, match="out of range"):
        collector.update(0, LIMIT)
    with pytest.raises(errors.InputError, match="out of range"):
        collector.update(0, IDLE, -LIMIT)
    assert collector.core_watermark(0) is UNKNOWN
