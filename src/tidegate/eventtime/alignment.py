"""Alignment: nobody runs further ahead of the slowest than the drift.

A group of members (partitions, sources) shares one horizon: the slowest active member plus the
allowed drift. Who is past it pauses, or is warned of; idle, unknown and removed members free the
group.

>>> group = AlignmentGroup(timedelta(seconds=60))
>>> group.register("a"); group.register("b")
>>> group.report("a", 0), group.report("b", 0)
(<Verdict.CONTINUE: 'continue'>, <Verdict.CONTINUE: 'continue'>)
>>> group.report("a", 70_000_000)
<Verdict.PAUSE: 'pause'>
>>> _ = group.report("b", 20_000_000)
>>> group.should_resume("a")
True
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from enum import Enum

import numpy as np

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.merge import Flags, Instants, Merge
from tidegate.eventtime.watermark import UNKNOWN, Known


class Verdict(Enum):
    """What a member is to do."""

    CONTINUE = "continue"
    PAUSE = "pause"
    WARN = "warn"


class AlignmentMode(Enum):
    """What happens to a member that is too far ahead."""

    PAUSE = "pause"
    WARN = "warn"


class AlignmentGroup:
    """Members and how far each is. O(log n) per report. Not thread safe.

    Unlike a watermark, the horizon may come back when a slow member joins: it says how far one may
    read, not what has been seen.
    """

    def __init__(self, drift: timedelta, mode: AlignmentMode = AlignmentMode.PAUSE) -> None:
        self.drift = drift
        self.mode = mode
        self._merge = Merge()
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []

    @classmethod
    def over(cls, drift: timedelta, positions: Instants, counts: Flags) -> AlignmentGroup:
        """A group of members 0 to n-1 given as columns: how far each is, and who of them counts.

        >>> everyone = np.array([1, 9]), np.array([True, False])
        >>> AlignmentGroup.over(timedelta(microseconds=5), *everyone).horizon()
        6
        """
        group = cls(drift)
        group._merge.load(positions, np.ones(len(positions), dtype=np.bool_), ~counts)
        group._slots = {member: member for member in range(len(positions))}
        return group

    def register(self, member: Hashable) -> None:
        """Add a member; it does not count before its first report."""
        if member in self._slots:
            return
        slot = self._free.pop() if self._free else len(self._merge)
        self._merge.add(slot)
        self._merge.idle(slot)
        self._slots[member] = slot

    def report(self, member: Hashable, watermark: Instant) -> Verdict:
        """A member is at `watermark`, or further if it has said so; say whether it may go on."""
        slot = self._slot(member)
        self._merge.update(slot, watermark)
        return self._verdict(self._merge.instant(slot))

    def mark_idle(self, member: Hashable) -> None:
        """The member has nothing to read: the others need not wait for it."""
        self._merge.idle(self._slot(member))

    def remove(self, member: Hashable) -> None:
        """The member is gone: the others need not wait for it."""
        slot = self._slot(member)
        del self._slots[member]
        self._merge.remove(slot)
        self._free.append(slot)

    def should_resume(self, member: Hashable) -> bool:
        """Whether a paused member may go on now."""
        return self._verdict(self._merge.instant(self._slot(member))) is not Verdict.PAUSE

    def slowest(self) -> Known:
        """How far the slowest active member is; UNKNOWN while nobody counts."""
        watermark, _ = self._merge.report
        return watermark if isinstance(watermark, int) else UNKNOWN

    def horizon(self) -> Known:
        """How far a member may read: the slowest plus the drift; UNKNOWN: as far as it likes."""
        slowest = self.slowest()
        return UNKNOWN if slowest is UNKNOWN else slowest + micros(self.drift)

    def _verdict(self, at: Known) -> Verdict:
        horizon = self.horizon()
        if at is UNKNOWN or horizon is UNKNOWN or at <= horizon:
            return Verdict.CONTINUE
        return Verdict.PAUSE if self.mode is AlignmentMode.PAUSE else Verdict.WARN

    def _slot(self, member: Hashable) -> int:
        try:
            return self._slots[member]
        except KeyError:
            raise errors.unknown_member(member, self._slots) from None
