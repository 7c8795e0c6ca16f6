from __future__ import annotations

from datetime import timedelta

import pytest

from tidegate import errors
from tidegate.eventtime.source_tracker import SourceWatermarkTracker
from tidegate.eventtime.tracker import PartitionedWatermarkTracker, PartitionState, TrackerMetrics
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.testing import ManualClock

BOUND = timedelta(microseconds=1000)
SECOND = timedelta(seconds=1)

# What is called the same there, with the word partition in it.
SAME = {
    "register": "register_source",
    "add": "add_partition",
    "remove": "remove_partition",
    "update": "update_partition",
    "update_from_event": "update_partition_from_event",
    "mark_idle": "mark_partition_idle",
    "mark_active": "mark_partition_active",
    "check_idle": "check_idle_partitions",
    "current_watermark": "current_watermark",
    "watermark": "partition_watermark",
    "state": "partition_state",
    "is_idle": "is_partition_idle",
    "active_count": "active_partition_count",
    "metrics": "metrics",
}


def test_its_methods_are_those_of_the_partition_tracker_without_the_partition() -> None:
    public = {name for name in vars(SourceWatermarkTracker) if not name.startswith("_")}
    assert public == SAME.keys()
    assert set(SAME.values()) <= vars(PartitionedWatermarkTracker).keys()


def test_the_watermark_is_the_minimum_over_sources_less_the_lateness() -> None:
    tracker = SourceWatermarkTracker(2, max_lateness=BOUND)
    assert tracker.update_from_event(0, 5000) is None
    assert tracker.update_from_event(1, 3000) == 2000
    assert tracker.watermark(0) == 4000
    assert tracker.current_watermark() == 2000


def test_a_source_can_say_its_watermark_itself() -> None:
    tracker = SourceWatermarkTracker(1, max_lateness=BOUND)
    assert tracker.update(0, 5000) == 5000
    assert tracker.state(0).last_event_time is UNKNOWN


def test_an_idle_source_is_not_waited_for_until_it_is_active_again() -> None:
    tracker = SourceWatermarkTracker(2)
    tracker.update(0, 5000)
    tracker.update(1, 3000)
    assert tracker.mark_idle(1) == 5000
    assert tracker.is_idle(1)
    assert (tracker.active_count(), tracker.metrics().idle) == (1, 1)
    tracker.mark_active(1)
    assert not tracker.is_idle(1)
    assert tracker.update(0, 6000) is None


def test_sources_fall_idle_exactly_at_the_timeout() -> None:
    clock = ManualClock()
    tracker = SourceWatermarkTracker(2, idle_timeout=SECOND, clock=clock.seconds)
    tracker.update(0, 5000)
    clock.advance(SECOND - timedelta(microseconds=1))
    assert tracker.check_idle() is None
    tracker.update(0, 6000)
    clock.advance(timedelta(microseconds=1))
    assert tracker.check_idle() == 6000
    assert tracker.is_idle(1)


def test_sources_come_and_go_and_nothing_goes_back() -> None:
    tracker = SourceWatermarkTracker(2)
    tracker.update(0, 5000)
    tracker.update(1, 3000)
    removed = tracker.remove(1)
    assert removed == PartitionState(3000, UNKNOWN, 0.0, idle=False, core=None)
    assert tracker.current_watermark() == 5000
    tracker.add(1)
    assert tracker.watermark(1) is UNKNOWN
    assert tracker.current_watermark() == 5000
    tracker.register(1)
    assert tracker.metrics() == TrackerMetrics(total=1, active=1, idle=0, advances=2, rebalances=3)


def test_what_is_not_registered_raises() -> None:
    tracker = SourceWatermarkTracker(2)
    tracker.remove(0)
    with pytest.raises(errors.InputError, match="unknown partition"):
        tracker.update(0, 1)
    with pytest.raises(errors.InputError, match="out of range"):
        tracker.mark_idle(2)
    with pytest.raises(errors.InputError, match="exists"):
        tracker.add(1)
