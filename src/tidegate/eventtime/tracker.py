"""The partition tracker: a watermark per partition, per source, and combined.

Each partition advances on its own; the combined watermark is the merge of them all and never goes
back, whether partitions are updated, fall idle, return, are added or are removed. An update that
moves the combined watermark returns it, any other returns None.

>>> tracker = PartitionedWatermarkTracker()
>>> tracker.register_source(0, 2)
>>> tracker.update_partition(PartitionId(0, 0), 5000)      # partition 1 has said nothing yet
>>> tracker.update_partition(PartitionId(0, 1), 3000)
3000
>>> tracker.mark_partition_idle(PartitionId(0, 1))
5000
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate import errors
from tidegate.eventtime.columns import Column
from tidegate.eventtime.instants import Instant, checked, micros
from tidegate.eventtime.merge import Flags, Instants, Merge, Slots
from tidegate.eventtime.watermark import UNKNOWN, Known

Clock = Callable[[], float]
"""Gives monotonic seconds."""

_NO_EVENT: Final = np.iinfo(np.int64).min  # inside the column only; outside it is UNKNOWN
_NO_CORE: Final = -1
# In binary fractions 0.3 - 0.1 is a little less than 0.2: with this, "at least" holds exactly.
_HALF_A_MICROSECOND: Final = 5e-7


class PartitionId(NamedTuple):
    """A partition of a source."""

    source_id: int
    partition: int


class PartitionState(NamedTuple):
    """What the tracker knows of one partition."""

    watermark: Known
    last_event_time: Known
    last_activity: float
    idle: bool
    core: int | None


@dataclass(frozen=True)
class TrackerMetrics:
    """How many partitions there are, and how often something happened."""

    total: int
    active: int
    idle: int
    advances: int
    rebalances: int


class _Source:
    """The columns of one source; a partition's number is its slot."""

    __slots__ = ("core", "last_activity", "last_event", "merge", "present", "range", "slot")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.merge = Merge()
        self.present = 0
        self.range = 0  # numbers from here on were never added, or were cut off by a shrink
        self.last_event: Column[int] = Column("q", _NO_EVENT)
        self.last_activity: Column[float] = Column("d", 0.0)
        self.core: Column[int] = Column("i", _NO_CORE)

    def resize(self, size: int) -> None:
        self.last_event.resize(size)
        self.last_activity.resize(size)
        self.core.resize(size)

    def registered(self) -> list[int]:
        return [n for n in range(self.range) if self.merge.present(n)]


def stopped_clock() -> float:
    """The clock of those who need none."""
    return 0.0


class PartitionedWatermarkTracker:
    """Watermarks of the partitions of any number of sources.

    O(log n) per update, O(1) to read the combined one, O(1) for an idle check that finds nothing.
    Without `idle_timeout` no partition falls idle by itself. Not thread safe.
    """

    def __init__(
        self, *, idle_timeout: timedelta | None = None, clock: Clock = stopped_clock
    ) -> None:
        self._idle_seconds = float("inf")
        if idle_timeout is not None:
            self._idle_seconds = idle_timeout.total_seconds() - _HALF_A_MICROSECOND
        self._clock = clock
        self._sources: dict[int, _Source] = {}
        self._over_sources = Merge()
        self._advances = 0
        self._rebalances = 0
        # No active partition was last seen before this: while it is recent, nobody can be idle.
        self._quietest = float("inf")

    # ---- sources and partitions ----

    def register_source(self, source_id: int, partitions: int) -> None:
        """Register partitions 0 to n-1; registering again grows or shrinks: a rebalance."""
        if partitions < 0:
            raise errors.partition_out_of_range(source_id, partitions, 0)
        source = self._open_source(source_id)
        for number in range(min(partitions, len(source.merge))):
            if not source.merge.present(number):
                self._enter(source, number)
        if (new := partitions - len(source.merge)) > 0:
            source.merge.grow(new)
            source.present += new
            self._make_room(source)
        # Those that leave go last and together: the watermark is looked at once, after all of it.
        leaving = np.array([n for n in source.registered() if n >= partitions], dtype=np.intp)
        source.merge.remove_many(leaving)
        source.present -= len(leaving)
        source.range = partitions
        self._follow(source)

    def add_partition(self, partition: PartitionId) -> None:
        """Add one partition; it holds the watermark until its first update, or until it is idle."""
        source = self._source(partition.source_id)
        number = partition.partition
        if number < 0:
            raise errors.partition_out_of_range(partition.source_id, number, source.range)
        if source.merge.present(number):
            raise errors.partition_exists(partition.source_id, number)
        self._enter(source, number)
        self._rebalances += 1
        self._follow(source)

    def remove_partition(self, partition: PartitionId) -> PartitionState:
        """Remove one partition and return the state it had; the others go on without it."""
        state = self.partition_state(partition)
        source = self._sources[partition.source_id]
        source.merge.remove(partition.partition)
        source.present -= 1
        self._rebalances += 1
        self._follow(source)
        return state

    # ---- time ----

    def update_partition(self, partition: PartitionId, watermark: Instant) -> Known | None:
        """The partition is complete up to `watermark`; it is active."""
        source, number = self._find(partition)
        source.merge.update(number, watermark)
        self._touch(source, number)
        return self._follow(source)

    def update_partition_from_event(
        self, partition: PartitionId, event_time: Instant, max_lateness: timedelta
    ) -> Known | None:
        """An event was seen; nothing more than `max_lateness` behind it is still to come."""
        source, number = self._find(partition)
        source.merge.update(number, checked(event_time) - micros(max_lateness))
        source.last_event[number] = max(source.last_event[number], event_time)
        self._touch(source, number)
        return self._follow(source)

    def update_many(
        self,
        partitions: Sequence[PartitionId] | npt.NDArray[np.integer],
        times: Instants,
        *,
        max_lateness: timedelta | None = None,
    ) -> Known | None:
        """Update a whole batch in one step.

        `partitions` is a list of `PartitionId`, an array of (source, partition) rows, or a plain
        array of partition numbers where there is one source. `times` are watermarks, or event times
        when `max_lateness` is given. Nothing is changed when one of the partitions is not there, or
        a time is out of range. The result is that of single updates, with everybody awake first.
        """
        pairs = np.asarray(partitions)
        times = np.asarray(times, dtype=np.int64)
        behind = 0 if max_lateness is None else micros(max_lateness)
        if len(times):
            checked(int(times.max()))
            checked(int(times.min()) - behind)
        if pairs.ndim == 1 and len(pairs):
            if len(self._sources) != 1:
                raise errors.unknown_source("of a plain partition number", self._sources)
            batches = [(next(iter(self._sources)), pairs, times)]
        else:
            pairs = pairs.reshape(-1, 2)
            batches = [
                (int(s), pairs[chosen, 1], times[chosen])
                for s in np.unique(pairs[:, 0])
                for chosen in [pairs[:, 0] == s]
            ]
        for source_id, numbers, _ in batches:
            self._check_numbers(source_id, numbers)
        now = self._clock()
        for source_id, numbers, values in batches:
            source = self._sources[source_id]
            slots = numbers.astype(np.intp, copy=False)
            source.last_activity.view[slots] = now
            if max_lateness is not None:
                np.maximum.at(source.last_event.view, slots, values)
            source.merge.update_many(slots, values - behind if behind else values)
        self._quietest = min(self._quietest, now)
        return self._follow(*(self._sources[source_id] for source_id, _, _ in batches))

    def load_source(self, source_id: int, watermarks: Instants, known: Flags, idle: Flags) -> None:
        """Register a source whose partitions stand as these columns say, as after a restart.

        The time in which nobody looked is no evidence of silence: all were active just now.
        """
        source = self._open_source(source_id)
        source.merge.load(watermarks, known, idle)
        source.present = source.range = len(watermarks)
        source.resize(0)
        self._make_room(source)
        self._follow(source)

    def source_columns(self, source_id: int) -> tuple[Instants, Flags, Flags, Flags]:
        """(watermarks, known, idle, present) of a source's partitions, as columns."""
        return self._source(source_id).merge.columns()

    # ---- idleness ----

    def mark_partition_idle(self, partition: PartitionId) -> Known | None:
        """Nobody waits for the partition until its next update."""
        source, number = self._find(partition)
        source.merge.idle(number)
        return self._follow(source)

    def mark_many_idle(self, source_id: int, numbers: Slots) -> Known | None:
        """`mark_partition_idle` for several partitions of one source, in one step."""
        self._check_numbers(source_id, numbers)
        source = self._sources[source_id]
        source.merge.idle_many(numbers)
        return self._follow(source)

    def mark_partition_active(self, partition: PartitionId) -> None:
        """Wait for the partition again. The watermark stays where it is."""
        source, number = self._find(partition)
        self._touch(source, number)
        source.merge.active(number)
        self._follow(source)

    def check_idle_partitions(self) -> Known | None:
        """Mark everyone idle who was silent for `idle_timeout` or longer."""
        now = self._clock()
        if now - self._quietest < self._idle_seconds:
            return None
        quietest = float("inf")
        for source in self._sources.values():
            _, _, idle, present = source.merge.columns()
            active = present & ~idle
            seen = source.last_activity.view
            silent = active & (now - seen >= self._idle_seconds)
            if silent.any():
                source.merge.idle_many(np.flatnonzero(silent))
            awake = seen[active & ~silent]
            if len(awake):
                quietest = min(quietest, float(awake.min()))
        self._quietest = quietest
        return self._follow(*self._sources.values())

    # ---- reading ----

    def current_watermark(self) -> Known:
        """The combined watermark: the minimum over active partitions of all sources."""
        return self._over_sources.combined

    def source_watermark(self, source_id: int) -> Known:
        """The same for one source."""
        return self._source(source_id).merge.combined

    def partition_watermark(self, partition: PartitionId) -> Known:
        """How far one partition is."""
        source, number = self._find(partition)
        return source.merge.instant(number)

    def partition_state(self, partition: PartitionId) -> PartitionState:
        """Everything known of one partition."""
        source, number = self._find(partition)
        seen = source.last_event[number]
        core = source.core[number]
        return PartitionState(
            watermark=source.merge.instant(number),
            last_event_time=UNKNOWN if seen == _NO_EVENT else seen,
            last_activity=source.last_activity[number],
            idle=source.merge.is_idle(number),
            core=None if core == _NO_CORE else core,
        )

    def is_partition_idle(self, partition: PartitionId) -> bool:
        """Whether nobody waits for the partition."""
        source, number = self._find(partition)
        return source.merge.is_idle(number)

    def sources(self) -> list[int]:
        """The registered sources."""
        return sorted(self._sources)

    def partition_count(self, source_id: int) -> int:
        """How many partitions a source has."""
        return self._source(source_id).present

    def active_partition_count(self, source_id: int | None = None) -> int:
        """How many partitions are waited for, in one source or in all."""
        chosen = self._sources.values() if source_id is None else [self._source(source_id)]
        count = 0
        for source in chosen:
            _, _, idle, present = source.merge.columns()
            count += int(np.count_nonzero(present & ~idle))
        return count

    def metrics(self) -> TrackerMetrics:
        """Totals, computed when asked for."""
        total = sum(source.present for source in self._sources.values())
        active = self.active_partition_count()
        return TrackerMetrics(total, active, total - active, self._advances, self._rebalances)

    @property
    def bytes_held(self) -> int:
        """The memory of all columns."""
        return sum(
            source.merge.bytes_held
            + source.last_event.bytes_held
            + source.last_activity.bytes_held
            + source.core.bytes_held
            for source in self._sources.values()
        )

    # ---- lanes ----

    def assign_partition_to_core(self, partition: PartitionId, core: int) -> None:
        """Note which lane works on the partition."""
        source, number = self._find(partition)
        source.core[number] = core

    def partition_core(self, partition: PartitionId) -> int | None:
        """The lane that works on the partition."""
        return self.partition_state(partition).core

    # ---- inside ----

    def _open_source(self, source_id: int) -> _Source:
        """The source, new or registered again."""
        source = self._sources.get(source_id)
        if source is None:
            source = self._sources[source_id] = _Source(len(self._over_sources))
            self._over_sources.grow(1)
        else:
            self._rebalances += 1
        return source

    def _source(self, source_id: int) -> _Source:
        try:
            return self._sources[source_id]
        except KeyError:
            raise errors.unknown_source(source_id, self._sources) from None

    def _find(self, partition: PartitionId) -> tuple[_Source, int]:
        source_id, number = partition
        source = self._sources.get(source_id)
        if source is None or not source.merge.present(number):
            self._complain(source_id, number)
        assert source is not None
        return source, number

    def _complain(self, source_id: int, number: int) -> None:
        source = self._source(source_id)
        if not 0 <= number < source.range:
            raise errors.partition_out_of_range(source_id, number, source.range)
        raise errors.unknown_partition(source_id, number, source.registered())

    def _check_numbers(self, source_id: int, numbers: npt.NDArray[np.integer]) -> None:
        source = self._source(source_id)
        if len(numbers) == 0:
            return
        for extreme in (int(numbers.min()), int(numbers.max())):
            if not 0 <= extreme < source.range:
                self._complain(source_id, extreme)
        if source.present < source.range:
            for number in np.unique(numbers):
                if not source.merge.present(int(number)):
                    self._complain(source_id, int(number))

    def _enter(self, source: _Source, number: int) -> None:
        source.merge.add(number)
        source.present += 1
        source.range = max(source.range, number + 1)
        self._make_room(source)
        source.last_event[number] = _NO_EVENT
        source.core[number] = _NO_CORE
        self._touch(source, number)

    def _make_room(self, source: _Source) -> None:
        first, size, now = len(source.last_activity), len(source.merge), self._clock()
        if size > first:
            source.resize(size)
            source.last_activity.view[first:] = now
            self._quietest = min(self._quietest, now)

    def _touch(self, source: _Source, number: int) -> None:
        now = self._clock()
        source.last_activity[number] = now
        if now < self._quietest:
            self._quietest = now

    def _follow(self, *changed: _Source) -> Known | None:
        """Let the merge over sources follow those that changed, in one step."""
        if self._over_sources.follow((source.slot, source.merge) for source in changed):
            self._advances += 1
            return self._over_sources.combined
        return None
