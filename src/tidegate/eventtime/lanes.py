"""Lanes: the merge computed where the data is.

Partitions are assigned to lanes, one per core. Each lane keeps the minimum over its own, the
collector the minimum over lanes; together they give the same number as one tracker over all. A lane
whose partitions are all idle reports IDLE with their maximum, and when every lane is idle the
collector takes the largest of these.

>>> left = CoreWatermarkState(0, [PartitionId(0, 0)])
>>> right = CoreWatermarkState(1, [PartitionId(0, 1)])
>>> collector = GlobalWatermarkCollector(2)
>>> left.update(PartitionId(0, 0), 5000), right.update(PartitionId(0, 1), 3000)
(5000, 3000)
>>> collector.gather([left, right]), collector.global_watermark
(True, 3000)
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked
from tidegate.eventtime.merge import Merge, Report
from tidegate.eventtime.tracker import PartitionId
from tidegate.eventtime.watermark import UNKNOWN, Known, Watermark


class CoreWatermarkState:
    """The partitions of one lane. O(log n) per update. Not thread safe: a lane is one thread."""

    def __init__(self, core: int, partitions: Iterable[PartitionId] = ()) -> None:
        self.core = core
        self.global_watermark: Known = UNKNOWN
        self._merge = Merge()
        self._slots: dict[PartitionId, int] = {}
        self._free: list[int] = []
        for partition in partitions:
            self.assign(partition)

    def assign(
        self, partition: PartitionId, watermark: Known = UNKNOWN, *, idle: bool = False
    ) -> None:
        """Take over a partition, with what another lane knew of it."""
        if partition in self._slots:
            raise errors.partition_exists(*partition)
        slot = self._free.pop() if self._free else len(self._merge)
        self._merge.add(slot)
        self._slots[partition] = slot
        if watermark is not UNKNOWN:
            self._merge.update(slot, watermark)
        if idle:
            self._merge.idle(slot)

    def remove(self, partition: PartitionId) -> bool:
        """Give a partition away; return whether it was here."""
        slot = self._slots.pop(partition, None)
        if slot is None:
            return False
        self._merge.remove(slot)
        self._free.append(slot)
        return True

    def update(self, partition: PartitionId, watermark: Instant) -> Known | None:
        """The partition is complete up to `watermark`; return the local watermark if it moved."""
        before = self.local_watermark()
        self._merge.update(self._slot(partition), watermark)
        return self._if_moved(before)

    def mark_idle(self, partition: PartitionId) -> Known | None:
        """Nobody waits for the partition; return the local watermark if it moved."""
        before = self.local_watermark()
        self._merge.idle(self._slot(partition))
        return self._if_moved(before)

    def local_watermark(self) -> Known:
        """The minimum over this lane's active partitions, the maximum if all are idle.

        It is about the partitions that are here now: when a slower one moves in, it goes back.
        What never goes back is the collector's.
        """
        watermark, maximum = self._merge.report
        return watermark if isinstance(watermark, int) else maximum

    def report(self) -> Report:
        """What the lane says to the collector."""
        return self._merge.report

    def watermark(self, partition: PartitionId) -> Known:
        """How far one partition is."""
        return self._merge.instant(self._slot(partition))

    def is_idle(self, partition: PartitionId) -> bool:
        """Whether nobody waits for the partition."""
        return self._merge.is_idle(self._slot(partition))

    def partitions(self) -> list[PartitionId]:
        """What is assigned here."""
        return sorted(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def _slot(self, partition: PartitionId) -> int:
        try:
            return self._slots[partition]
        except KeyError:
            numbers = [p.partition for p in self._slots if p.source_id == partition.source_id]
            raise errors.unknown_partition(*partition, numbers) from None

    def _if_moved(self, before: Known) -> Known | None:
        now = self.local_watermark()
        return now if now != before and now is not UNKNOWN else None


class GlobalWatermarkCollector:
    """The minimum over lanes. It never goes back, whatever a lane reports."""

    def __init__(self, cores: int) -> None:
        self._merge = Merge(cores)
        self._reports: list[Report] = [Report(UNKNOWN)] * cores

    @property
    def global_watermark(self) -> Known:
        """The watermark over all lanes."""
        return self._merge.combined

    def update(self, core: int, watermark: Watermark, maximum: Known = UNKNOWN) -> Known | None:
        """One lane reports; return the global watermark if that moved it."""
        self._check(core)
        for instant in (watermark, maximum):
            if isinstance(instant, int):
                checked(instant)
        self._reports[core] = Report(watermark, maximum)
        moved = self._merge.put(core, self._reports[core])
        return self._merge.combined if moved else None

    def gather(self, lanes: Iterable[CoreWatermarkState]) -> bool:
        """Take the reports of several lanes in one step; return whether the global one moved.

        A partition that moves from lane to lane must not be missing from both for a moment: report
        both lanes in one call.
        """
        reports = {lane.core: lane.report() for lane in lanes}
        for core in reports:
            self._check(core)
        for core, report in reports.items():
            self._reports[core] = report
        return self._merge.put_many(reports)

    def broadcast(self, lanes: Iterable[CoreWatermarkState]) -> None:
        """Tell every lane the global watermark."""
        for lane in lanes:
            lane.global_watermark = self.global_watermark

    def core_watermark(self, core: int) -> Watermark:
        """What a lane reported last."""
        self._check(core)
        return self._reports[core].watermark

    def _check(self, core: int) -> None:
        if not 0 <= core < len(self._reports):
            raise errors.unknown_core(core, len(self._reports))
