"""Trackers, lanes, collectors, alignment."""

from __future__ import annotations

from typing import Any

from tests.cases.conventions import duration, known, outcome, plain

from tidegate.eventtime.alignment import AlignmentGroup, AlignmentMode
from tidegate.eventtime.lanes import CoreWatermarkState, GlobalWatermarkCollector
from tidegate.eventtime.source_tracker import SourceWatermarkTracker
from tidegate.eventtime.tracker import PartitionedWatermarkTracker, PartitionId
from tidegate.testing import ManualClock


def partition(text: str) -> PartitionId:
    source, number = text.split(":")
    return PartitionId(int(source), int(number))


class Tracker:
    """Family `partition_tracker`."""

    def __init__(self, idle_timeout: int | None = None) -> None:
        self.clock = ManualClock()
        self.tracker = PartitionedWatermarkTracker(
            idle_timeout=None if idle_timeout is None else duration(idle_timeout),
            clock=self.clock.seconds,
        )

    def do_register(self, s: int, n: int) -> Any:
        return outcome(lambda: self.tracker.register_source(s, n))

    def do_update(self, p: str, wm: int) -> Any:
        return outcome(lambda: self.tracker.update_partition(partition(p), wm))

    def do_update_event(self, p: str, ts: int, late: int = 0) -> Any:
        return outcome(
            lambda: self.tracker.update_partition_from_event(partition(p), ts, duration(late))
        )

    def do_idle(self, p: str) -> Any:
        return outcome(lambda: self.tracker.mark_partition_idle(partition(p)))

    def do_active(self, p: str) -> Any:
        return outcome(lambda: self.tracker.mark_partition_active(partition(p)))

    def do_add(self, p: str) -> Any:
        return outcome(lambda: self.tracker.add_partition(partition(p))) or "ok"

    def do_remove(self, p: str) -> Any:
        removed = outcome(lambda: self.tracker.remove_partition(partition(p)))
        return removed if isinstance(removed, str) else plain(removed.watermark)

    def do_check_idle(self) -> Any:
        return self.tracker.check_idle_partitions()

    def do_sleep(self, ms: int) -> None:
        self.clock.advance(duration(ms))

    def do_assign_core(self, p: str, core: int) -> Any:
        return outcome(lambda: self.tracker.assign_partition_to_core(partition(p), core))

    def check_current(self) -> Any:
        return plain(self.tracker.current_watermark())

    def check_partition_wm(self, p: str) -> Any:
        return plain(outcome(lambda: self.tracker.partition_watermark(partition(p))))

    def check_source_wm(self, s: int) -> Any:
        return plain(outcome(lambda: self.tracker.source_watermark(s)))

    def check_is_idle(self, p: str) -> Any:
        return outcome(lambda: self.tracker.is_partition_idle(partition(p)))

    def check_core(self, p: str) -> Any:
        return outcome(lambda: self.tracker.partition_core(partition(p)))

    def check_partition_count(self, s: int) -> Any:
        return outcome(lambda: self.tracker.partition_count(s))

    def check_num_sources(self) -> int:
        return len(self.tracker.sources())

    def check_active(self, s: int | None = None) -> Any:
        return outcome(lambda: self.tracker.active_partition_count(s))

    def check_metrics(self) -> dict[str, int]:
        return vars(self.tracker.metrics())


class Lane:
    """Family `core_state`."""

    def __init__(self, core: int, parts: list[str]) -> None:
        self.lane = CoreWatermarkState(core, [partition(p) for p in parts])

    def do_assign(self, p: str) -> Any:
        return outcome(lambda: self.lane.assign(partition(p)))

    def do_update(self, p: str, wm: int) -> Any:
        return outcome(lambda: self.lane.update(partition(p), wm))

    def do_idle(self, p: str) -> Any:
        return outcome(lambda: self.lane.mark_idle(partition(p)))

    def do_remove(self, p: str) -> bool:
        return self.lane.remove(partition(p))

    def check_local(self) -> Any:
        return plain(self.lane.local_watermark())

    def check_count(self) -> int:
        return len(self.lane)

    def check_partition_wm(self, p: str) -> Any:
        return plain(outcome(lambda: self.lane.watermark(partition(p))))

    def check_is_idle(self, p: str) -> Any:
        return outcome(lambda: self.lane.is_idle(partition(p)))


class Collector:
    """Family `global_collector`."""

    def __init__(self, cores: int) -> None:
        self.collector = GlobalWatermarkCollector(cores)

    def do_update(self, core: int, wm: int) -> Any:
        return outcome(lambda: self.collector.update(core, known(wm)))

    def check_global(self) -> Any:
        return plain(self.collector.global_watermark)

    def check_core_wm(self, core: int) -> Any:
        return plain(outcome(lambda: self.collector.core_watermark(core)))


class KafkaTracker:
    """Family `kafka_tracker`: the same with event times and a bound."""

    def __init__(self, bound: int, idle_timeout: int | None = None) -> None:
        self.clock = ManualClock()
        self.tracker = SourceWatermarkTracker(
            max_lateness=duration(bound),
            idle_timeout=None if idle_timeout is None else duration(idle_timeout),
            clock=self.clock.seconds,
        )

    def do_register(self, n: int) -> Any:
        return outcome(lambda: self.tracker.register(n))

    def do_update(self, p: int, ts: int) -> Any:
        return outcome(lambda: self.tracker.update_from_event(p, ts))

    def do_idle(self, p: int) -> Any:
        return outcome(lambda: self.tracker.mark_idle(p))

    def do_active(self, p: int) -> Any:
        return outcome(lambda: self.tracker.mark_active(p))

    def do_add(self, p: int) -> Any:
        return outcome(lambda: self.tracker.add(p)) or "ok"

    def do_remove(self, p: int) -> Any:
        removed = outcome(lambda: self.tracker.remove(p))
        return removed if isinstance(removed, str) else plain(removed.watermark)

    def do_check_idle(self) -> Any:
        return self.tracker.check_idle()

    def do_sleep(self, ms: int) -> None:
        self.clock.advance(duration(ms))

    def check_current(self) -> Any:
        return plain(self.tracker.current_watermark())

    def check_partition_wm(self, p: int) -> Any:
        return plain(outcome(lambda: self.tracker.watermark(p)))

    def check_is_idle(self, p: int) -> Any:
        return outcome(lambda: self.tracker.is_idle(p))

    def check_active(self) -> int:
        return self.tracker.active_count()

    def check_idle(self) -> int:
        return self.tracker.metrics().idle

    def check_metrics(self) -> dict[str, int]:
        return vars(self.tracker.metrics())


class Alignment:
    """Family `alignment`."""

    def __init__(self, drift: int, mode: str) -> None:
        self.group = AlignmentGroup(duration(drift), AlignmentMode(mode))

    def do_register(self, s: int) -> None:
        self.group.register(s)

    def do_report(self, s: int, wm: int) -> Any:
        verdict = outcome(lambda: self.group.report(s, wm))
        return verdict if isinstance(verdict, str) else verdict.value

    def do_idle(self, s: int) -> Any:
        return outcome(lambda: self.group.mark_idle(s))

    def do_remove(self, s: int) -> Any:
        return outcome(lambda: self.group.remove(s))

    do_unregister = do_remove

    def check_should_resume(self, s: int) -> Any:
        return outcome(lambda: self.group.should_resume(s))

    def check_min(self) -> Any:
        return plain(self.group.slowest())
