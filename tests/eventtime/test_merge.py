from __future__ import annotations

import numpy as np
import pytest

from tidegate import errors
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.merge import Merge, Report, combine
from tidegate.eventtime.watermark import IDLE, UNKNOWN


def slots(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(numbers, dtype=np.intp)


def times(*instants: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(instants, dtype=np.int64)


def merged(*instants: int) -> Merge:
    merge = Merge(len(instants))
    for slot, instant in enumerate(instants):
        merge.update(slot, instant)
    return merge


def test_a_merge_of_nobody_knows_nothing_and_waits_for_nobody() -> None:
    assert Merge().combined is UNKNOWN
    assert Merge().report == Report(IDLE, UNKNOWN)


def test_a_partition_without_any_event_holds_the_merge() -> None:
    merge = Merge(2)
    assert not merge.update(0, 5)
    assert merge.combined is UNKNOWN


def test_the_combined_watermark_is_the_minimum_over_active_partitions() -> None:
    merge = merged(5, 3, 4)
    assert merge.combined == 3
    assert merge.update(1, 9)
    assert merge.combined == 4
    assert not merge.update(0, 6)


def test_a_partition_never_goes_back() -> None:
    merge = merged(5)
    assert not merge.update(0, 3)
    assert merge.instant(0) == 5


def test_an_idle_partition_is_not_waited_for() -> None:
    merge = merged(5, 3)
    assert merge.idle(1)
    assert merge.combined == 5
    assert merge.is_idle(1)
    assert not merge.is_idle(0)


def test_when_all_are_idle_the_maximum_counts() -> None:
    merge = merged(5, 3)
    assert not merge.idle(0)
    assert merge.combined == 3
    assert merge.idle(1)
    assert merge.combined == 5
    assert merge.report == Report(IDLE, 5)


def test_when_all_are_idle_and_nothing_was_ever_seen_nothing_is_known() -> None:
    merge = Merge(2)
    assert not merge.idle(0)
    assert not merge.idle(1)
    assert merge.combined is UNKNOWN
    assert merge.report == Report(IDLE, UNKNOWN)


def test_an_idle_partition_that_saw_nothing_does_not_lower_the_maximum() -> None:
    merge = Merge(2)
    merge.update(0, -5)
    merge.idle(1)
    merge.idle(0)
    assert merge.combined == -5


def test_a_returning_partition_is_active_at_once_and_the_watermark_stays() -> None:
    merge = merged(5, 3)
    merge.idle(1)
    assert not merge.update(1, 4)
    assert not merge.is_idle(1)
    assert merge.combined == 5
    assert merge.report == Report(4)
    assert not merge.update(0, 9)
    assert merge.update(1, 8)
    assert merge.combined == 8


def test_waiting_again_moves_nothing_and_forgets_nothing() -> None:
    merge = merged(5, 3)
    merge.idle(1)
    merge.active(1)
    assert merge.combined == 5
    assert merge.instant(1) == 3
    assert not merge.update(0, 9)


def test_new_partitions_hold_the_merge_but_cannot_turn_it_back() -> None:
    merge = merged(5, 4)
    merge.grow(1)
    assert merge.combined == 4
    assert not merge.update(0, 9)
    assert not merge.update(1, 9)
    assert merge.report == Report(UNKNOWN)
    assert not merge.update(2, 3)
    assert merge.update(2, 6)
    assert merge.combined == 6


def test_a_partition_far_beyond_the_end_leaves_the_slots_between_absent() -> None:
    merge = merged(5)
    merge.add(7)
    assert len(merge) == 8
    assert [merge.present(slot) for slot in (-1, 0, 1, 6, 7, 8)] == [
        *(False, True, False),
        *(False, True, False),
    ]
    merge.update(7, 3)
    assert merge.report == Report(3)


def test_removing_the_slowest_lets_the_others_go_on() -> None:
    merge = merged(5, 2, 4)
    assert merge.remove(1)
    assert merge.combined == 4
    assert not merge.present(1)


def test_removing_the_fastest_idle_one_or_everybody_turns_nothing_back() -> None:
    merge = merged(5, 3)
    merge.idle(0)
    merge.idle(1)
    assert not merge.remove(0)
    assert not merge.remove(1)
    assert merge.combined == 5
    assert merge.report == Report(IDLE, UNKNOWN)


def test_a_removed_slot_can_be_taken_by_somebody_who_knows_nothing() -> None:
    merge = merged(5, 2)
    merge.remove(1)
    merge.add(1)
    assert merge.instant(1) is UNKNOWN
    assert merge.report == Report(UNKNOWN)
    assert merge.combined == 5


def test_a_part_may_report_less_than_before_and_the_whole_stays() -> None:
    merge = Merge(2)
    merge.put(0, Report(5))
    assert merge.put(1, Report(7))
    assert not merge.put(0, Report(3))
    assert merge.combined == 5
    assert merge.report == Report(3)


def test_a_wholly_idle_part_counts_with_its_maximum_only_when_all_are_idle() -> None:
    merge = Merge(2)
    merge.put(0, Report(IDLE, 9))
    assert merge.put(1, Report(5))
    assert merge.combined == 5
    assert merge.put(1, Report(IDLE, 6))
    assert merge.combined == 9


def test_parts_reported_in_one_step_are_looked_at_once() -> None:
    apart, together = Merge(2), Merge(2)
    for merge in (apart, together):
        merge.put_many({0: Report(1), 1: Report(5)})
    # The slow partition moves from part 0 to part 1.
    apart.put(0, Report(9))
    apart.put(1, Report(1))
    assert apart.combined == 5, "one after the other it was out of both for a moment"
    assert not together.put_many({0: Report(9), 1: Report(1)})
    assert together.combined == 1


def test_a_batch_may_name_a_partition_several_times_in_any_order() -> None:
    merge = Merge(2)
    assert merge.update_many(slots(0, 1, 0, 1), times(5, 7, 9, 3))
    assert (merge.instant(0), merge.instant(1), merge.combined) == (9, 7, 7)


def test_a_batch_wakes_everybody_in_it_before_the_watermark_is_looked_at() -> None:
    merge = merged(5, 3)
    merge.idle(1)
    assert not merge.update_many(slots(0, 1), times(10, 4))
    assert merge.combined == 5
    assert not merge.is_idle(1)


def test_a_batch_wakes_one_that_fell_idle_without_any_event() -> None:
    merge = Merge(1)
    merge.idle(0)
    assert merge.update_many(slots(0), times(-3))
    assert (merge.instant(0), merge.is_idle(0), merge.combined) == (-3, False, -3)


def test_an_empty_batch_moves_nothing() -> None:
    merge = merged(5)
    assert not merge.update_many(slots(), times())
    assert not merge.idle_many(slots())
    assert not merge.remove_many(slots())
    assert not merge.put_many({})


def test_many_can_fall_idle_or_leave_at_once() -> None:
    merge = merged(5, 3, 4, 1)
    assert merge.idle_many(slots(1, 3, 3))
    assert merge.combined == 4
    assert merge.remove_many(slots(2, 3))
    assert merge.combined == 5


@pytest.mark.parametrize("beyond", [LIMIT, -LIMIT])
def test_an_instant_out_of_range_is_refused_and_changes_nothing(beyond: int) -> None:
    merge = Merge(2)
    with pytest.raises(errors.InputError, match="out of range"):
        merge.update(0, beyond)
    with pytest.raises(errors.InputError, match="out of range"):
        merge.update_many(slots(0, 1), times(1, beyond))
    assert merge.instant(0) is UNKNOWN
    assert merge.instant(1) is UNKNOWN


@pytest.mark.parametrize("edge", [LIMIT - 1, 1 - LIMIT])
def test_the_outermost_instants_keep_their_place_among_the_words(edge: int) -> None:
    merge = merged(edge)
    assert merge.combined == edge
    merge.idle(0)
    assert (merge.instant(0), merge.is_idle(0)) == (edge, True)
    assert merge.report == Report(IDLE, edge)
    merge.grow(1)
    assert merge.report == Report(UNKNOWN)


def test_columns_tell_every_slot_and_load_takes_them_back() -> None:
    merge = merged(5, 3, 4)
    merge.grow(2)
    merge.idle(1)
    merge.idle(4)
    merge.remove(2)
    instants, known, idle, present = merge.columns()
    assert instants.tolist() == [5, 3, 0, 0, 0]
    assert known.tolist() == [True, True, False, False, False]
    assert idle.tolist() == [False, True, False, False, True]
    assert present.tolist() == [True, True, False, True, True]
    other = Merge(9)
    other.load(instants, known, idle)
    assert len(other) == 5
    assert [other.instant(slot) for slot in range(5)] == [5, 3, UNKNOWN, UNKNOWN, UNKNOWN]
    assert [other.is_idle(slot) for slot in range(5)] == [False, True, False, False, True]
    assert other.report == Report(UNKNOWN)


def test_loading_lets_the_combined_watermark_follow_but_not_go_back() -> None:
    merge = merged(5)
    merge.load(times(3, 4), np.array([True, True]), np.array([False, False]))
    assert merge.combined == 5
    merge.load(times(8, 7), np.array([True, True]), np.array([False, False]))
    assert merge.combined == 7


def test_combining_a_handful_is_the_same_rule() -> None:
    assert combine([]) == Report(IDLE, UNKNOWN)
    assert combine([Report(5), Report(7)]) == Report(5)
    assert combine([Report(5), Report(UNKNOWN)]) == Report(UNKNOWN)
    assert combine([Report(5), Report(IDLE, 9)]) == Report(5)
    assert combine([Report(IDLE, 4), Report(IDLE, 9), Report(IDLE)]) == Report(IDLE, 9)


def test_a_slot_costs_sixteen_bytes_where_the_tree_is_full() -> None:
    assert Merge(1024).bytes_held == 1024 * 16
