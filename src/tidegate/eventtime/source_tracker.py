"""The source tracker: sources that have no partitions, with the same methods.

An adapter: every source is a partition of one source of the partition tracker, so there is one set
of rules. The method names are those of `PartitionedWatermarkTracker` without the word partition.

>>> tracker = SourceWatermarkTracker(2, max_lateness=timedelta(microseconds=1000))
>>> tracker.update_from_event(0, 5000)
>>> tracker.update_from_event(1, 3000)
2000
>>> tracker.mark_idle(1)
4000
"""

from __future__ import annotations

from datetime import timedelta

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.tracker import (
    Clock,
    PartitionedWatermarkTracker,
    PartitionId,
    PartitionState,
    TrackerMetrics,
    stopped_clock,
)
from tidegate.eventtime.watermark import Known


class SourceWatermarkTracker:
    """One watermark per source and their minimum. Costs and threading as the tracker below it."""

    def __init__(
        self,
        sources: int = 0,
        *,
        max_lateness: timedelta = timedelta(0),
        idle_timeout: timedelta | None = None,
        clock: Clock = stopped_clock,
    ) -> None:
        self._max_lateness = max_lateness
        self._tracker = PartitionedWatermarkTracker(idle_timeout=idle_timeout, clock=clock)
        self._tracker.register_source(0, sources)

    def register(self, sources: int) -> None:
        """Register sources 0 to n-1; registering again grows or shrinks: a rebalance."""
        self._tracker.register_source(0, sources)

    def add(self, source: int) -> None:
        """Add one source."""
        self._tracker.add_partition(PartitionId(0, source))

    def remove(self, source: int) -> PartitionState:
        """Remove one source and return the state it had."""
        return self._tracker.remove_partition(PartitionId(0, source))

    def update(self, source: int, watermark: Instant) -> Known | None:
        """The source is complete up to `watermark`."""
        return self._tracker.update_partition(PartitionId(0, source), watermark)

    def update_from_event(self, source: int, event_time: Instant) -> Known | None:
        """An event was seen; nothing more than `max_lateness` behind it is still to come."""
        return self._tracker.update_partition_from_event(
            PartitionId(0, source), event_time, self._max_lateness
        )

    def mark_idle(self, source: int) -> Known | None:
        """Nobody waits for the source until its next update."""
        return self._tracker.mark_partition_idle(PartitionId(0, source))

    def mark_active(self, source: int) -> None:
        """Wait for the source again."""
        self._tracker.mark_partition_active(PartitionId(0, source))

    def check_idle(self) -> Known | None:
        """Mark everyone idle who was silent for the idle time-out or longer."""
        return self._tracker.check_idle_partitions()

    def current_watermark(self) -> Known:
        """The minimum over active sources."""
        return self._tracker.current_watermark()

    def watermark(self, source: int) -> Known:
        """How far one source is."""
        return self._tracker.partition_watermark(PartitionId(0, source))

    def state(self, source: int) -> PartitionState:
        """Everything known of one source."""
        return self._tracker.partition_state(PartitionId(0, source))

    def is_idle(self, source: int) -> bool:
        """Whether nobody waits for the source."""
        return self._tracker.is_partition_idle(PartitionId(0, source))

    def active_count(self) -> int:
        """How many sources are waited for."""
        return self._tracker.active_partition_count(0)

    def metrics(self) -> TrackerMetrics:
        """Totals, computed when asked for."""
        return self._tracker.metrics()
