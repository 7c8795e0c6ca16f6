"""The same rules told naively: everything is looked at again, every time.

`scanned` is the rule of the merge over a list, `ScanningTracker` the partition tracker with one
dictionary and one scan per update. They are the oracle of the laws, and the rival in the benchmark:
nothing in them is made slow on purpose.

>>> tracker = ScanningTracker()
>>> tracker.register_source(0, 2)
>>> tracker.update_partition(PartitionId(0, 0), 5000)
>>> tracker.update_partition(PartitionId(0, 1), 3000)
3000
>>> tracker.mark_partition_idle(PartitionId(0, 1))
5000
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import numpy.typing as npt

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.merge import Instants, Report
from tidegate.eventtime.tracker import (
    Clock,
    PartitionId,
    PartitionState,
    TrackerMetrics,
    stopped_clock,
)
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Idle, Known


def scanned(reports: Iterable[Report]) -> Report:
    """The rule itself: the minimum over the active ones; all idle, the maximum over all.

    >>> scanned([Report(5), Report(IDLE, 9), Report(7)]), scanned([Report(5), Report(UNKNOWN)])
    (Report(watermark=5, maximum=UNKNOWN), Report(watermark=UNKNOWN, maximum=UNKNOWN))
    >>> scanned([Report(IDLE, 4), Report(IDLE, 9)])
    Report(watermark=IDLE, maximum=9)
    """
    active: list[Known] = []
    idle: list[Known] = []
    for watermark, maximum in reports:
        if isinstance(watermark, Idle):
            idle.append(maximum)
        else:
            active.append(watermark)
    return _rule(active, idle)


def _rule(active: Collection[Known], idle: Iterable[Known]) -> Report:
    if active:
        known = [instant for instant in active if instant is not UNKNOWN]
        return Report(min(known) if len(known) == len(active) else UNKNOWN)
    return Report(IDLE, max((at for at in idle if at is not UNKNOWN), default=UNKNOWN))


def instant_of(report: Report) -> Known:
    """The watermark of a report, its maximum when it is wholly idle."""
    return report.maximum if isinstance(report.watermark, Idle) else report.watermark


def latest(left: Known, right: Known) -> Known:
    """Whichever is later: what a watermark that never goes back moves to."""
    if left is UNKNOWN or right is UNKNOWN:
        return left if right is UNKNOWN else right
    return max(left, right)


@dataclass
class _Partition:
    last_activity: float
    watermark: Known = UNKNOWN
    last_event_time: Known = UNKNOWN
    idle: bool = False
    core: int | None = None


@dataclass
class _Source:
    partitions: dict[int, _Partition] = field(default_factory=dict)
    range: int = 0
    report: Report = field(default_factory=lambda: Report(IDLE))
    combined: Known = UNKNOWN

    def scan(self) -> None:
        everyone = self.partitions.values()
        active = [partition.watermark for partition in everyone if not partition.idle]
        self.report = _rule(active, (partition.watermark for partition in everyone))
        self.combined = latest(self.combined, instant_of(self.report))


class ScanningTracker:
    """`PartitionedWatermarkTracker` without an idea: O(n) per update and per idle check."""

    def __init__(
        self, *, idle_timeout: timedelta | None = None, clock: Clock = stopped_clock
    ) -> None:
        self._idle_timeout = idle_timeout
        self._clock = clock
        self._sources: dict[int, _Source] = {}
        self._combined: Known = UNKNOWN
        self._advances = 0
        self._rebalances = 0

    # ---- sources and partitions ----

    def register_source(self, source_id: int, partitions: int) -> None:
        """Register partitions 0 to n-1; registering again grows or shrinks: a rebalance."""
        if partitions < 0:
            raise errors.partition_out_of_range(source_id, partitions, 0)
        known = self._sources.get(source_id)
        if known is not None:
            self._rebalances += 1
        source = known or _Source()
        source.partitions = {
            number: source.partitions.get(number) or _Partition(self._clock())
            for number in range(partitions)
        }
        source.range = partitions
        self._sources[source_id] = source
        self._scan(source)

    def add_partition(self, partition: PartitionId) -> None:
        """Add one partition."""
        source_id, number = partition
        source = self._source(source_id)
        if number < 0:
            raise errors.partition_out_of_range(source_id, number, source.range)
        if number in source.partitions:
            raise errors.partition_exists(source_id, number)
        source.partitions[number] = _Partition(self._clock())
        source.range = max(source.range, number + 1)
        self._rebalances += 1
        self._scan(source)

    def remove_partition(self, partition: PartitionId) -> PartitionState:
        """Remove one partition and return the state it had."""
        state = self.partition_state(partition)
        source = self._sources[partition.source_id]
        del source.partitions[partition.partition]
        self._rebalances += 1
        self._scan(source)
        return state

    # ---- time ----

    def update_partition(self, partition: PartitionId, watermark: Instant) -> Known | None:
        """The partition is complete up to `watermark`; it is active."""
        self._move(self._find(partition), watermark)
        return self._scan(self._sources[partition.source_id])

    def update_partition_from_event(
        self, partition: PartitionId, event_time: Instant, max_lateness: timedelta
    ) -> Known | None:
        """An event was seen; nothing more than `max_lateness` behind it is still to come."""
        found = self._find(partition)
        found.last_event_time = latest(found.last_event_time, event_time)
        self._move(found, event_time - micros(max_lateness))
        return self._scan(self._sources[partition.source_id])

    def update_many(
        self,
        partitions: Sequence[PartitionId] | npt.NDArray[np.integer],
        times: Instants,
        *,
        max_lateness: timedelta | None = None,
    ) -> Known | None:
        """Update a whole batch, one after the other, and look at the watermark after all of it."""
        pairs = [PartitionId(int(source), int(number)) for source, number in partitions]
        found = [self._find(pair) for pair in pairs]
        for partition, time in zip(found, times.tolist(), strict=True):
            if max_lateness is not None:
                partition.last_event_time = latest(partition.last_event_time, time)
            self._move(partition, time - micros(max_lateness or timedelta(0)))
        return self._scan(*self._sources.values())

    # ---- idleness ----

    def mark_partition_idle(self, partition: PartitionId) -> Known | None:
        """Nobody waits for the partition until its next update."""
        self._find(partition).idle = True
        return self._scan(self._sources[partition.source_id])

    def mark_many_idle(self, source_id: int, numbers: Iterable[int]) -> Known | None:
        """`mark_partition_idle` for several partitions of one source, in one step."""
        for found in [self._find(PartitionId(source_id, int(number))) for number in numbers]:
            found.idle = True
        return self._scan(self._source(source_id))

    def mark_partition_active(self, partition: PartitionId) -> None:
        """Wait for the partition again."""
        found = self._find(partition)
        found.idle = False
        found.last_activity = self._clock()
        self._scan(self._sources[partition.source_id])

    def check_idle_partitions(self) -> Known | None:
        """Mark everyone idle who was silent for `idle_timeout` or longer."""
        if self._idle_timeout is None:
            return None
        now = self._clock()
        for partition in self._all():
            silent = timedelta(seconds=now - partition.last_activity)
            partition.idle = partition.idle or silent >= self._idle_timeout
        return self._scan(*self._sources.values())

    # ---- reading ----

    def current_watermark(self) -> Known:
        """The combined watermark."""
        return self._combined

    def source_watermark(self, source_id: int) -> Known:
        """The same for one source."""
        return self._source(source_id).combined

    def partition_watermark(self, partition: PartitionId) -> Known:
        """How far one partition is."""
        return self._find(partition).watermark

    def partition_state(self, partition: PartitionId) -> PartitionState:
        """Everything known of one partition."""
        found = self._find(partition)
        return PartitionState(
            found.watermark, found.last_event_time, found.last_activity, found.idle, found.core
        )

    def is_partition_idle(self, partition: PartitionId) -> bool:
        """Whether nobody waits for the partition."""
        return self._find(partition).idle

    def sources(self) -> list[int]:
        """The registered sources."""
        return sorted(self._sources)

    def partition_count(self, source_id: int) -> int:
        """How many partitions a source has."""
        return len(self._source(source_id).partitions)

    def active_partition_count(self, source_id: int | None = None) -> int:
        """How many partitions are waited for, in one source or in all."""
        chosen = self._all() if source_id is None else self._source(source_id).partitions.values()
        return sum(not partition.idle for partition in chosen)

    def metrics(self) -> TrackerMetrics:
        """Totals, computed when asked for."""
        total, active = len(self._all()), self.active_partition_count()
        return TrackerMetrics(total, active, total - active, self._advances, self._rebalances)

    # ---- lanes ----

    def assign_partition_to_core(self, partition: PartitionId, core: int) -> None:
        """Note which lane works on the partition."""
        self._find(partition).core = core

    def partition_core(self, partition: PartitionId) -> int | None:
        """The lane that works on the partition."""
        return self._find(partition).core

    # ---- inside ----

    def _all(self) -> list[_Partition]:
        return [p for source in self._sources.values() for p in source.partitions.values()]

    def _source(self, source_id: int) -> _Source:
        if source_id not in self._sources:
            raise errors.unknown_source(source_id, self._sources)
        return self._sources[source_id]

    def _find(self, partition: PartitionId) -> _Partition:
        source_id, number = partition
        source = self._source(source_id)
        if number in source.partitions:
            return source.partitions[number]
        if 0 <= number < source.range:
            raise errors.unknown_partition(source_id, number, source.partitions)
        raise errors.partition_out_of_range(source_id, number, source.range)

    def _move(self, partition: _Partition, watermark: Instant) -> None:
        partition.watermark = latest(partition.watermark, watermark)
        partition.idle = False
        partition.last_activity = self._clock()

    def _scan(self, *changed: _Source) -> Known | None:
        for source in changed:
            source.scan()
        now = scanned(source.report for source in self._sources.values())
        moved = latest(self._combined, instant_of(now))
        if moved == self._combined:
            return None
        self._combined = moved
        self._advances += 1
        return moved
