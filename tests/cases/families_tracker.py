"""Families of partitions and their minimum: tracker, lanes, collector, Kafka, alignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from tests.cases.conventions import Asked, Either, LaneValue, duration
from tests.cases.family import Family

from tidegate.eventtime.alignment import AlignmentGroup, AlignmentMode, Verdict
from tidegate.eventtime.lanes import CoreWatermarkState, GlobalWatermarkCollector
from tidegate.eventtime.source_tracker import SourceWatermarkTracker
from tidegate.eventtime.tracker import (
    PartitionedWatermarkTracker,
    PartitionId,
    PartitionState,
    TrackerMetrics,
)
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known, Watermark
from tidegate.testing import ManualClock


def partition(name: str) -> PartitionId:
    """Read "source:partition"."""
    source, number = name.split(":")
    return PartitionId(int(source), int(number))


def metrics_of(metrics: TrackerMetrics) -> Asked:
    """The metrics by name."""
    return Asked(asdict(metrics))


def state_of(state: PartitionState) -> Asked:
    """A partition's state by name."""
    return Asked(
        wm=state.watermark, last_event=state.last_event_time, idle=state.idle, core=state.core
    )


class PartitionTracker(Family):
    """`PartitionedWatermarkTracker`."""

    def __init__(self, idle_timeout: int | None = None) -> None:
        self.clock = ManualClock()
        timeout = None if idle_timeout is None else duration(idle_timeout)
        self.tracker = PartitionedWatermarkTracker(idle_timeout=timeout, clock=self.clock.seconds)

    def do_register(self, s: int, n: int) -> None:
        self.tracker.register_source(s, n)

    def do_add(self, p: str) -> None:
        self.tracker.add_partition(partition(p))

    def do_remove(self, p: str) -> Known:
        return self.tracker.remove_partition(partition(p)).watermark

    def do_update(self, p: str, wm: int) -> Known | None:
        return self.tracker.update_partition(partition(p), wm)

    def do_update_event(self, p: str, ts: int, late: int = 0) -> Known | None:
        return self.tracker.update_partition_from_event(partition(p), ts, duration(late))

    def do_update_many(self, ps: list[str], wms: list[int]) -> Known | None:
        return self.tracker.update_many([partition(p) for p in ps], np.array(wms, dtype=np.int64))

    def do_idle(self, p: str) -> Known | None:
        return self.tracker.mark_partition_idle(partition(p))

    def do_active(self, p: str) -> None:
        self.tracker.mark_partition_active(partition(p))

    def do_check_idle(self) -> Known | None:
        return self.tracker.check_idle_partitions()

    def do_sleep(self, ms: int) -> None:
        self.clock.advance(duration(ms))

    def do_assign_core(self, p: str, core: int) -> None:
        self.tracker.assign_partition_to_core(partition(p), core)

    def check_current(self) -> Known:
        return self.tracker.current_watermark()

    def check_partition_wm(self, p: str) -> Known:
        return self.tracker.partition_watermark(partition(p))

    def check_source_wm(self, s: int) -> Known:
        return self.tracker.source_watermark(s)

    def check_state(self, p: str) -> Asked:
        return state_of(self.tracker.partition_state(partition(p)))

    def check_last_event(self, p: str) -> Known:
        return self.tracker.partition_state(partition(p)).last_event_time

    def check_is_idle(self, p: str) -> bool:
        return self.tracker.is_partition_idle(partition(p))

    def check_metrics(self) -> Asked:
        return metrics_of(self.tracker.metrics())

    def check_num_sources(self) -> int:
        return len(self.tracker.sources())

    def check_partition_count(self, s: int) -> int:
        return self.tracker.partition_count(s)

    def check_active(self, s: int | None = None) -> int:
        return self.tracker.active_partition_count(s)

    def check_idle(self) -> int:
        return self.tracker.metrics().idle

    def check_core(self, p: str) -> int | None:
        return self.tracker.partition_core(partition(p))


class CoreState(Family):
    """`CoreWatermarkState`: one lane."""

    def __init__(self, core: int = 0, parts: list[str] | None = None) -> None:
        self.lane = CoreWatermarkState(core, [partition(p) for p in parts or []])
        self.local = LaneValue()

    def _moved(self, now: Known | None) -> Known | Either | None:
        moved = self.local.moved(now)
        self.local.told(self.lane.local_watermark())
        return moved

    def do_update(self, p: str, wm: int) -> Known | Either | None:
        return self._moved(self.lane.update(partition(p), wm))

    def do_idle(self, p: str) -> Known | Either | None:
        return self._moved(self.lane.mark_idle(partition(p)))

    def do_assign(self, p: str, wm: int | None = None, idle: bool = False) -> None:
        self.lane.assign(partition(p), UNKNOWN if wm is None else wm, idle=idle)

    def do_remove(self, p: str) -> bool:
        return self.lane.remove(partition(p))

    def check_local(self) -> Known | Either:
        return self.local.told(self.lane.local_watermark())

    def check_partition_wm(self, p: str) -> Known:
        return self.lane.watermark(partition(p))

    def check_is_idle(self, p: str) -> bool:
        return self.lane.is_idle(partition(p))

    def check_all_idle(self) -> bool:
        return self.lane.report().watermark is IDLE

    def check_count(self) -> int:
        return len(self.lane)

    def check_core(self) -> int:
        return self.lane.core

    def check_global(self) -> Known:
        return self.lane.global_watermark


class GlobalCollector(Family):
    """`GlobalWatermarkCollector`: the minimum over lanes."""

    def __init__(self, cores: int) -> None:
        self.collector = GlobalWatermarkCollector(cores)

    def do_update(self, core: int, wm: int | str) -> Known | None:
        said: Watermark = IDLE if wm == "IDLE" else UNKNOWN if wm == "MIN" else int(wm)
        return self.collector.update(core, said)

    def do_idle(self, core: int, max: int | None = None) -> Known | None:
        return self.collector.update(core, IDLE, UNKNOWN if max is None else max)

    def check_global(self) -> Known:
        return self.collector.global_watermark

    def check_core_wm(self, core: int) -> Watermark:
        return self.collector.core_watermark(core)


class KafkaTracker(Family):
    """`SourceWatermarkTracker`: event times and a bound."""

    def __init__(self, bound: int = 0, idle_timeout: int | None = None) -> None:
        self.clock = ManualClock()
        self.bound = duration(bound)
        self.timeout = None if idle_timeout is None else duration(idle_timeout)
        self.registered: SourceWatermarkTracker | None = None

    @property
    def tracker(self) -> SourceWatermarkTracker:
        assert self.registered is not None, "the first step registers"
        return self.registered

    def do_register(self, n: int) -> None:
        if self.registered is not None:
            self.registered.register(n)
            return
        self.registered = SourceWatermarkTracker(
            n, max_lateness=self.bound, idle_timeout=self.timeout, clock=self.clock.seconds
        )

    def do_update(self, p: int, ts: int) -> Known | None:
        return self.tracker.update_from_event(p, ts)

    def do_advance(self, p: int, wm: int) -> Known | None:
        return self.tracker.update(p, wm)

    def do_idle(self, p: int) -> Known | None:
        return self.tracker.mark_idle(p)

    def do_active(self, p: int) -> None:
        self.tracker.mark_active(p)

    def do_add(self, p: int) -> None:
        self.tracker.add(p)

    def do_remove(self, p: int) -> Known:
        return self.tracker.remove(p).watermark

    def do_check_idle(self) -> Known | None:
        return self.tracker.check_idle()

    def do_sleep(self, ms: int) -> None:
        self.clock.advance(duration(ms))

    def check_current(self) -> Known:
        return self.tracker.current_watermark()

    def check_partition_wm(self, p: int) -> Known:
        return self.tracker.watermark(p)

    def check_is_idle(self, p: int) -> bool:
        return self.tracker.is_idle(p)

    def check_active(self) -> int:
        return self.tracker.active_count()

    def check_idle(self) -> int:
        return self.tracker.metrics().idle

    def check_partition_count(self) -> int:
        return self.tracker.metrics().total

    def check_metrics(self) -> Asked:
        return metrics_of(self.tracker.metrics())


class Alignment(Family):
    """`AlignmentGroup`."""

    def __init__(self, drift: int, mode: str = "pause") -> None:
        self.group = AlignmentGroup(duration(drift), AlignmentMode(mode))

    def do_register(self, s: int) -> None:
        self.group.register(s)

    def do_report(self, s: int, wm: int) -> Verdict:
        return self.group.report(s, wm)

    def do_idle(self, s: int) -> None:
        self.group.mark_idle(s)

    def do_remove(self, s: int) -> None:
        self.group.remove(s)

    do_unregister = do_remove

    def check_should_resume(self, s: int) -> bool:
        return self.group.should_resume(s)

    def check_slowest(self) -> Known:
        return self.group.slowest()

    check_min = check_slowest

    def check_horizon(self) -> Known:
        return self.group.horizon()


FAMILIES: Final[Mapping[str, type[Any]]] = {
    "partition_tracker": PartitionTracker,
    "core_state": CoreState,
    "global_collector": GlobalCollector,
    "kafka_tracker": KafkaTracker,
    "alignment": Alignment,
}
