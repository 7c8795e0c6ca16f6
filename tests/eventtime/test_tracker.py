from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tidegate import errors
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.tracker import (
    PartitionedWatermarkTracker,
    PartitionId,
    PartitionState,
    TrackerMetrics,
)
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.testing import ManualClock

NO_TIME = timedelta(0)
SECOND = timedelta(seconds=1)


def p(number: int, source: int = 0) -> PartitionId:
    return PartitionId(source, number)


def tracker_of(*watermarks: int) -> PartitionedWatermarkTracker:
    """One source whose partitions stand at these times."""
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, len(watermarks))
    for number, watermark in enumerate(watermarks):
        tracker.update_partition(p(number), watermark)
    return tracker


def timed(clock: ManualClock, partitions: int) -> PartitionedWatermarkTracker:
    """A tracker whose partitions fall idle after a second."""
    tracker = PartitionedWatermarkTracker(idle_timeout=SECOND, clock=clock.seconds)
    tracker.register_source(0, partitions)
    return tracker


# ---- the combined watermark ----


def test_a_new_tracker_knows_nothing() -> None:
    tracker = PartitionedWatermarkTracker()
    assert tracker.current_watermark() is UNKNOWN
    assert tracker.sources() == []
    assert tracker.metrics() == TrackerMetrics(0, 0, 0, 0, 0)


def test_an_update_returns_the_combined_watermark_only_if_it_moved_it() -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 2)
    assert tracker.update_partition(p(0), 5000) is None
    assert tracker.update_partition(p(1), 3000) == 3000
    assert tracker.update_partition(p(0), 6000) is None
    assert tracker.update_partition(p(1), 3000) is None
    assert tracker.update_partition(p(1), 9000) == 6000
    assert tracker.current_watermark() == 6000


def test_a_partition_does_not_go_back() -> None:
    tracker = tracker_of(5000)
    assert tracker.update_partition(p(0), 3000) is None
    assert tracker.partition_watermark(p(0)) == 5000


def test_an_event_moves_its_partition_to_its_time_less_the_lateness() -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 1)
    assert tracker.update_partition_from_event(p(0), 5000, timedelta(microseconds=1000)) == 4000
    assert tracker.update_partition_from_event(p(0), 4500, timedelta(microseconds=1000)) is None
    assert tracker.update_partition_from_event(p(0), 4500, NO_TIME) == 4500
    assert tracker.partition_state(p(0)).last_event_time == 5000


def test_events_before_1970_are_times_like_any_other() -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 1)
    assert tracker.update_partition_from_event(p(0), -7, NO_TIME) == -7
    assert tracker.partition_state(p(0)).last_event_time == -7


def test_a_partition_that_never_had_an_event_holds_the_watermark_until_it_is_idle() -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 2)
    tracker.update_partition(p(0), 5000)
    assert tracker.current_watermark() is UNKNOWN
    assert tracker.mark_partition_idle(p(1)) == 5000


def test_when_all_are_idle_the_maximum_counts() -> None:
    tracker = tracker_of(5000, 3000)
    assert tracker.mark_partition_idle(p(0)) is None
    assert tracker.mark_partition_idle(p(1)) == 5000


def test_the_watermark_holds_when_a_returning_partition_is_behind() -> None:
    tracker = tracker_of(5000, 3000)
    tracker.mark_partition_idle(p(1))
    assert tracker.is_partition_idle(p(1))
    assert tracker.update_partition(p(1), 4000) is None
    assert not tracker.is_partition_idle(p(1))
    assert tracker.current_watermark() == 5000
    assert tracker.partition_watermark(p(1)) == 4000


def test_a_partition_marked_active_is_waited_for_again_without_any_news() -> None:
    tracker = tracker_of(5000, 3000)
    tracker.mark_partition_idle(p(1))
    tracker.mark_partition_active(p(1))
    assert not tracker.is_partition_idle(p(1))
    assert tracker.current_watermark() == 5000
    assert tracker.update_partition(p(0), 9000) is None
    assert tracker.update_partition(p(1), 8000) == 8000


# ---- partitions come and go ----


def test_an_added_partition_holds_the_watermark_but_cannot_turn_it_back() -> None:
    tracker = tracker_of(5000, 4000)
    tracker.add_partition(p(2))
    assert tracker.partition_count(0) == 3
    assert tracker.current_watermark() == 4000
    assert tracker.update_partition(p(1), 9000) is None
    assert tracker.update_partition(p(2), 3000) is None
    assert tracker.update_partition(p(2), 4500) == 4500


def test_a_removed_partition_returns_its_state_and_the_others_go_on() -> None:
    clock = ManualClock(at=2_500_000)
    tracker = timed(clock, 2)
    tracker.update_partition(p(0), 5000)
    tracker.update_partition_from_event(p(1), 2100, timedelta(microseconds=100))
    tracker.assign_partition_to_core(p(1), 3)
    removed = tracker.remove_partition(p(1))
    assert removed == PartitionState(2000, 2100, 2.5, idle=False, core=3)
    assert tracker.current_watermark() == 5000
    assert tracker.partition_count(0) == 1


def test_a_partition_added_again_knows_nothing_of_its_former_life() -> None:
    tracker = tracker_of(5000, 2000)
    tracker.update_partition_from_event(p(1), 2100, NO_TIME)
    tracker.assign_partition_to_core(p(1), 3)
    tracker.mark_partition_idle(p(1))
    tracker.remove_partition(p(1))
    tracker.add_partition(p(1))
    assert tracker.partition_state(p(1)) == PartitionState(UNKNOWN, UNKNOWN, 0.0, False, None)


def test_a_partition_may_be_added_beyond_the_end_and_those_between_are_not_there() -> None:
    tracker = tracker_of(5000)
    tracker.add_partition(p(3))
    assert tracker.partition_count(0) == 2
    with pytest.raises(errors.InputError, match="unknown partition"):
        tracker.update_partition(p(2), 1)
    with pytest.raises(errors.InputError, match="out of range"):
        tracker.update_partition(p(4), 1)


def test_removing_everybody_turns_nothing_back() -> None:
    tracker = tracker_of(5000, 3000)
    tracker.remove_partition(p(0))
    tracker.remove_partition(p(1))
    assert tracker.current_watermark() == 3000
    assert tracker.metrics().total == 0


def test_registering_again_grows_a_source_and_keeps_what_is_known() -> None:
    tracker = tracker_of(5000, 4000)
    tracker.register_source(0, 3)
    assert tracker.partition_count(0) == 3
    assert tracker.partition_watermark(p(0)) == 5000
    assert tracker.partition_watermark(p(2)) is UNKNOWN
    assert tracker.current_watermark() == 4000
    assert tracker.update_partition(p(1), 6000) is None, "the new one holds"


def test_registering_again_shrinks_a_source_and_the_rest_go_on() -> None:
    tracker = tracker_of(5000, 4000, 1000)
    tracker.register_source(0, 2)
    assert tracker.partition_count(0) == 2
    assert tracker.current_watermark() == 4000
    with pytest.raises(errors.InputError) as caught:
        tracker.partition_watermark(p(2))
    assert caught.value.code == "partition-out-of-range"
    tracker.register_source(0, 3)
    assert tracker.partition_watermark(p(2)) is UNKNOWN


def test_those_that_a_shrink_cuts_off_leave_in_one_step() -> None:
    tracker = tracker_of(3000, 1000, 9000)
    tracker.mark_partition_idle(p(0))
    tracker.mark_partition_idle(p(2))
    tracker.register_source(0, 1)
    assert tracker.source_watermark(0) == 3000, "the idle 9000 never was the last one left"
    assert tracker.current_watermark() == 3000


def test_registering_again_brings_removed_partitions_back() -> None:
    tracker = tracker_of(5000, 4000)
    tracker.remove_partition(p(0))
    tracker.register_source(0, 2)
    assert tracker.partition_count(0) == 2
    assert tracker.partition_watermark(p(0)) is UNKNOWN
    assert tracker.partition_watermark(p(1)) == 4000


def test_every_rebalance_is_counted() -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 2)
    tracker.register_source(1, 2)
    assert tracker.metrics().rebalances == 0
    tracker.register_source(0, 3)
    tracker.register_source(0, 1)
    tracker.register_source(0, 1)
    assert tracker.metrics().rebalances == 3
    tracker.add_partition(p(5))
    tracker.remove_partition(p(5))
    assert tracker.metrics().rebalances == 5


def test_metrics_count_partitions_and_advances() -> None:
    tracker = tracker_of(1000, 2000)
    tracker.register_source(1, 2)
    tracker.mark_partition_idle(p(0, source=1))
    assert tracker.metrics() == TrackerMetrics(total=4, active=3, idle=1, advances=1, rebalances=0)
    tracker.mark_partition_idle(p(1, source=1))
    tracker.update_partition(p(0), 1500)
    tracker.update_partition(p(1), 1600)
    assert tracker.metrics() == TrackerMetrics(total=4, active=2, idle=2, advances=2, rebalances=0)


# ---- several sources ----


def two_sources() -> PartitionedWatermarkTracker:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 2)
    tracker.register_source(7, 2)
    for partition, time in [(p(0), 50), (p(1), 30), (p(0, 7), 40), (p(1, 7), 60)]:
        tracker.update_partition(partition, time)
    return tracker


def test_each_source_has_its_own_watermark_and_the_combined_one_is_over_all() -> None:
    tracker = two_sources()
    assert tracker.sources() == [0, 7]
    assert tracker.source_watermark(0) == 30
    assert tracker.source_watermark(7) == 40
    assert tracker.current_watermark() == 30


def test_a_source_that_is_wholly_idle_holds_nobody_and_shows_its_maximum() -> None:
    tracker = two_sources()
    assert tracker.mark_many_idle(0, np.array([0, 1])) == 40
    assert tracker.source_watermark(0) == 50
    assert tracker.active_partition_count() == 2
    assert tracker.active_partition_count(0) == 0
    assert tracker.active_partition_count(7) == 2


def test_when_all_sources_are_idle_the_largest_of_all_counts() -> None:
    tracker = two_sources()
    tracker.mark_many_idle(0, np.array([0, 1]))
    assert tracker.mark_partition_idle(p(0, 7)) == 60
    assert tracker.mark_partition_idle(p(1, 7)) is None
    assert tracker.current_watermark() == 60


def test_a_new_source_holds_the_combined_watermark_unless_it_has_no_partitions() -> None:
    tracker = tracker_of(50)
    tracker.register_source(1, 0)
    assert tracker.update_partition(p(0), 60) == 60
    tracker.register_source(2, 1)
    assert tracker.update_partition(p(0), 70) is None
    assert tracker.source_watermark(2) is UNKNOWN
    assert tracker.current_watermark() == 60


# ---- idleness ----


def test_idle_is_exactly_at_the_timeout_and_not_before() -> None:
    clock = ManualClock()
    tracker = timed(clock, 2)
    tracker.update_partition(p(0), 5000)
    tracker.update_partition(p(1), 3000)
    clock.advance(timedelta(microseconds=999_999))
    tracker.update_partition(p(0), 6000)
    assert tracker.check_idle_partitions() is None
    assert not tracker.is_partition_idle(p(1))
    clock.advance(timedelta(microseconds=1))
    assert tracker.check_idle_partitions() == 6000
    assert tracker.is_partition_idle(p(1))
    assert not tracker.is_partition_idle(p(0))


@pytest.mark.parametrize("began", [0.1, 0.7, 1234.1, 99_999.9])
def test_the_timeout_is_exact_although_clocks_count_in_binary_fractions(began: float) -> None:
    now = [began]
    tracker = PartitionedWatermarkTracker(
        idle_timeout=timedelta(milliseconds=200), clock=lambda: now[0]
    )
    tracker.register_source(0, 1)
    now[0] = round(began + 0.199999, 6)
    tracker.check_idle_partitions()
    assert not tracker.is_partition_idle(p(0))
    now[0] = round(began + 0.2, 6)
    tracker.check_idle_partitions()
    assert tracker.is_partition_idle(p(0))


def test_the_registration_counts_as_activity() -> None:
    clock = ManualClock()
    tracker = timed(clock, 1)
    clock.advance(timedelta(milliseconds=600))
    tracker.register_source(0, 2)
    tracker.add_partition(p(5))
    clock.advance(timedelta(milliseconds=400))
    tracker.check_idle_partitions()
    assert [tracker.is_partition_idle(p(n)) for n in (0, 1, 5)] == [True, False, False]
    clock.advance(timedelta(milliseconds=600))
    tracker.check_idle_partitions()
    assert [tracker.is_partition_idle(p(n)) for n in (0, 1, 5)] == [True, True, True]


@pytest.mark.parametrize(
    "touch",
    [
        lambda tracker: tracker.update_partition(p(0), 5),
        lambda tracker: tracker.update_partition_from_event(p(0), 5, NO_TIME),
        lambda tracker: tracker.update_many(np.array([0]), np.array([5])),
        lambda tracker: tracker.mark_partition_active(p(0)),
    ],
)
def test_every_update_counts_as_activity_also_one_that_moves_nothing(
    touch: Callable[[PartitionedWatermarkTracker], object],
) -> None:
    clock = ManualClock()
    tracker = timed(clock, 2)
    tracker.update_partition(p(0), 9)
    clock.advance(timedelta(milliseconds=600))
    touch(tracker)
    assert tracker.partition_state(p(0)).last_activity == 0.6
    clock.advance(timedelta(milliseconds=600))
    tracker.check_idle_partitions()
    assert [tracker.is_partition_idle(p(n)) for n in (0, 1)] == [False, True]
    clock.advance(timedelta(milliseconds=400))
    tracker.check_idle_partitions()
    assert tracker.is_partition_idle(p(0))


@pytest.mark.parametrize(
    "wake",
    [
        lambda tracker: tracker.update_partition(p(0), 5),
        lambda tracker: tracker.update_many(np.array([0]), np.array([5])),
        lambda tracker: tracker.mark_partition_active(p(0)),
    ],
)
def test_a_partition_that_returned_falls_idle_again(
    wake: Callable[[PartitionedWatermarkTracker], object],
) -> None:
    clock = ManualClock()
    tracker = timed(clock, 1)
    clock.advance(SECOND)
    tracker.check_idle_partitions()
    assert tracker.is_partition_idle(p(0))
    wake(tracker)
    assert not tracker.is_partition_idle(p(0))
    clock.advance(SECOND)
    tracker.check_idle_partitions()
    assert tracker.is_partition_idle(p(0))


def test_all_can_fall_idle_at_once() -> None:
    clock = ManualClock()
    tracker = timed(clock, 3)
    tracker.update_partition(p(0), 5)
    tracker.update_partition(p(1), 9)
    clock.advance(SECOND)
    assert tracker.check_idle_partitions() == 9
    assert tracker.metrics().idle == 3
    assert tracker.check_idle_partitions() is None


def test_the_idle_check_looks_at_all_sources() -> None:
    clock = ManualClock()
    tracker = timed(clock, 1)
    tracker.register_source(1, 1)
    tracker.update_partition(p(0, 1), 7)
    clock.advance(SECOND)
    tracker.update_partition(p(0, 1), 8)
    assert tracker.check_idle_partitions() == 8
    assert tracker.is_partition_idle(p(0))


def test_without_a_timeout_nobody_falls_idle_by_itself() -> None:
    clock = ManualClock()
    tracker = PartitionedWatermarkTracker(clock=clock.seconds)
    tracker.register_source(0, 1)
    clock.advance(timedelta(days=1000))
    assert tracker.check_idle_partitions() is None
    assert not tracker.is_partition_idle(p(0))


# ---- whole batches ----


def test_a_batch_is_one_step() -> None:
    tracker = tracker_of(10, 20, 30)
    assert tracker.update_many([p(0), p(1), p(0)], np.array([15, 25, 18])) == 18
    assert [tracker.partition_watermark(p(n)) for n in range(3)] == [18, 25, 30]
    assert tracker.metrics().advances == 2


def test_a_batch_may_be_pairs_of_numbers_or_plain_numbers_of_the_only_source() -> None:
    one, two, three = tracker_of(10, 20), tracker_of(10, 20), tracker_of(10, 20)
    one.update_many([p(0), p(1)], np.array([40, 30]))
    two.update_many(np.array([[0, 0], [0, 1]]), np.array([40, 30]))
    three.update_many(np.array([0, 1]), np.array([40, 30]))
    assert one.current_watermark() == two.current_watermark() == three.current_watermark() == 30


def test_a_batch_may_touch_several_sources() -> None:
    tracker = two_sources()
    assert tracker.update_many([p(1), p(0, 7), p(1)], np.array([45, 44, 46])) == 44
    assert tracker.source_watermark(0) == 46
    assert tracker.source_watermark(7) == 44


def test_a_batch_of_event_times_takes_the_lateness_off() -> None:
    tracker = tracker_of(10, 10)
    moved = tracker.update_many(
        np.array([0, 1, 1]), np.array([30, 40, 35]), max_lateness=timedelta(microseconds=5)
    )
    assert moved == 25
    assert tracker.partition_state(p(0))[:2] == (25, 30)
    assert tracker.partition_state(p(1))[:2] == (35, 40)


def test_an_empty_batch_moves_nothing() -> None:
    assert tracker_of(10).update_many([], np.array([], dtype=np.int64)) is None


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (p(1, 7), "unknown-partition"),
        (p(2), "partition-out-of-range"),
        (p(-1), "partition-out-of-range"),
        (p(0, 9), "unknown-source"),
    ],
)
def test_a_batch_with_one_unknown_partition_changes_nothing(bad: PartitionId, code: str) -> None:
    clock = ManualClock()
    tracker = PartitionedWatermarkTracker(clock=clock.seconds)
    tracker.register_source(0, 2)
    tracker.register_source(7, 3)
    tracker.remove_partition(p(1, 7))
    everybody = [p(0), p(1), p(0, 7), p(2, 7)]
    before = [tracker.partition_state(partition) for partition in everybody]
    clock.advance(SECOND)
    with pytest.raises(errors.InputError) as caught:
        tracker.update_many([*everybody, bad], np.array([5, 6, 7, 8, 9]))
    assert caught.value.code == code
    assert [tracker.partition_state(partition) for partition in everybody] == before
    assert tracker.current_watermark() is UNKNOWN


def test_plain_numbers_are_refused_where_there_is_more_than_one_source() -> None:
    with pytest.raises(errors.InputError, match="unknown source"):
        two_sources().update_many(np.array([0, 1]), np.array([99, 99]))


@pytest.mark.parametrize("beyond", [LIMIT, -LIMIT])
def test_a_time_out_of_range_is_refused_and_changes_nothing(beyond: int) -> None:
    clock = ManualClock()
    tracker = timed(clock, 2)
    before = [tracker.partition_state(p(n)) for n in range(2)]
    clock.advance(SECOND)
    acts: list[Callable[[], object]] = [
        lambda: tracker.update_partition(p(0), beyond),
        lambda: tracker.update_partition_from_event(p(0), beyond, NO_TIME),
        lambda: tracker.update_many(np.array([0, 1]), np.array([5, beyond])),
        lambda: tracker.update_many(np.array([0, 1]), np.array([5, beyond]), max_lateness=SECOND),
    ]
    for act in acts:
        with pytest.raises(errors.InputError, match="out of range"):
            act()
    assert [tracker.partition_state(p(n)) for n in range(2)] == before


# ---- restart ----


def test_a_source_can_be_loaded_from_columns_and_told_as_columns() -> None:
    tracker = PartitionedWatermarkTracker()
    times, known, idle = np.array([50, 30, 0]), np.array([1, 1, 0]) > 0, np.array([0, 1, 1]) > 0
    tracker.load_source(3, times, known, idle)
    assert tracker.current_watermark() == 50
    assert tracker.partition_count(3) == 3
    assert tracker.metrics().rebalances == 0
    told = [column.tolist() for column in tracker.source_columns(3)]
    assert told == [[50, 30, 0], [True, True, False], [False, True, True], [True, True, True]]


def test_loading_over_a_larger_source_leaves_nothing_of_it() -> None:
    clock = ManualClock()
    tracker = timed(clock, 5)
    tracker.update_partition_from_event(p(1), 99, NO_TIME)
    tracker.assign_partition_to_core(p(1), 2)
    clock.advance(timedelta(milliseconds=600))
    times, everybody = np.array([50, 30]), np.array([True, True])
    tracker.load_source(0, times, everybody, ~everybody)
    assert tracker.partition_count(0) == 2
    assert tracker.partition_state(p(1)) == PartitionState(30, UNKNOWN, 0.6, False, None)
    with pytest.raises(errors.InputError, match="out of range"):
        tracker.partition_state(p(2))
    clock.advance(timedelta(milliseconds=400))
    assert tracker.check_idle_partitions() is None
    assert not tracker.is_partition_idle(p(1)), "loading counts as activity"
    clock.advance(timedelta(milliseconds=600))
    assert tracker.check_idle_partitions() == 50
    tracker.register_source(0, 4)
    assert tracker.partition_state(p(3)) == PartitionState(UNKNOWN, UNKNOWN, 1.6, False, None)


# ---- lanes ----


def test_a_partition_remembers_its_core() -> None:
    tracker = tracker_of(10, 20)
    assert tracker.partition_core(p(0)) is None
    tracker.assign_partition_to_core(p(0), 0)
    tracker.assign_partition_to_core(p(1), 5)
    assert tracker.partition_core(p(0)) == 0
    assert tracker.partition_core(p(1)) == 5
    assert tracker.partition_state(p(1)).core == 5


# ---- errors ----

Call = Callable[[PartitionedWatermarkTracker, PartitionId], Any]

ON_A_PARTITION: dict[str, Call] = {
    "remove_partition": lambda tracker, it: tracker.remove_partition(it),
    "update_partition": lambda tracker, it: tracker.update_partition(it, 1),
    "update_partition_from_event": lambda tracker, it: tracker.update_partition_from_event(
        it, 1, NO_TIME
    ),
    "update_many": lambda tracker, it: tracker.update_many([it], np.array([1])),
    "mark_partition_idle": lambda tracker, it: tracker.mark_partition_idle(it),
    "mark_many_idle": lambda tracker, it: tracker.mark_many_idle(
        it.source_id, np.array([it.partition])
    ),
    "mark_partition_active": lambda tracker, it: tracker.mark_partition_active(it),
    "partition_watermark": lambda tracker, it: tracker.partition_watermark(it),
    "partition_state": lambda tracker, it: tracker.partition_state(it),
    "is_partition_idle": lambda tracker, it: tracker.is_partition_idle(it),
    "assign_partition_to_core": lambda tracker, it: tracker.assign_partition_to_core(it, 1),
    "partition_core": lambda tracker, it: tracker.partition_core(it),
}
ON_A_SOURCE: dict[str, Call] = {
    "add_partition": lambda tracker, it: tracker.add_partition(it),
    "source_watermark": lambda tracker, it: tracker.source_watermark(it.source_id),
    "partition_count": lambda tracker, it: tracker.partition_count(it.source_id),
    "active_partition_count": lambda tracker, it: tracker.active_partition_count(it.source_id),
    "source_columns": lambda tracker, it: tracker.source_columns(it.source_id),
}
ON_NOBODY = {
    "bytes_held",
    "check_idle_partitions",
    "current_watermark",
    "load_source",
    "metrics",
    "register_source",
    "sources",
}


def test_every_call_on_a_partition_or_a_source_is_in_the_tables_below() -> None:
    public = {name for name in vars(PartitionedWatermarkTracker) if not name.startswith("_")}
    assert public == ON_A_PARTITION.keys() | ON_A_SOURCE.keys() | ON_NOBODY


@pytest.mark.parametrize("name", ON_A_PARTITION)
@pytest.mark.parametrize(
    ("it", "code"),
    [
        (p(1), "unknown-partition"),
        (p(3), "partition-out-of-range"),
        (p(-1), "partition-out-of-range"),
        (p(0, source=9), "unknown-source"),
    ],
)
def test_every_call_on_what_is_not_registered_raises_its_error(
    name: str, it: PartitionId, code: str
) -> None:
    tracker = tracker_of(10, 20, 30)
    tracker.remove_partition(p(1))
    before = [tracker.metrics(), tracker.partition_state(p(0)), tracker.partition_state(p(2))]
    with pytest.raises(errors.InputError) as caught:
        ON_A_PARTITION[name](tracker, it)
    assert caught.value.code == code
    after = [tracker.metrics(), tracker.partition_state(p(0)), tracker.partition_state(p(2))]
    assert after == before


@pytest.mark.parametrize("name", ON_A_SOURCE)
def test_every_call_on_an_unknown_source_raises(name: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        ON_A_SOURCE[name](tracker_of(10), p(0, source=9))
    assert caught.value.code == "unknown-source"


def test_a_partition_that_is_there_cannot_be_added() -> None:
    with pytest.raises(errors.InputError) as caught:
        tracker_of(10, 20).add_partition(p(1))
    assert caught.value.code == "partition-exists"


def test_a_partition_below_zero_cannot_be_added_nor_a_source_have_fewer_than_none() -> None:
    with pytest.raises(errors.InputError, match="out of range"):
        tracker_of(10).add_partition(p(-1))
    with pytest.raises(errors.InputError, match="out of range"):
        tracker_of(10).register_source(1, -1)


# ---- cost ----


def test_ten_thousand_partitions_hold_at_most_64_bytes_each() -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, 10_000)
    tracker.update_many(np.arange(10_000), np.arange(10_000))
    assert 0 < tracker.bytes_held <= 64 * 10_000


@pytest.mark.parametrize("registered", [1_000, 4_090, 8_190, 9_900])
def test_partitions_added_one_by_one_hold_no_more(registered: int) -> None:
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, registered)
    for number in range(registered, registered + 100):
        tracker.add_partition(p(number))
        assert tracker.bytes_held <= 64 * (number + 1)
