"""Late and lost: one definition, judged once.

A row is *late* when its time is at or before the watermark with which its batch begins. It is
*lost* when nothing that is still open or to come can use it: when its last use lies at or before
`closed`, the time up to which everything has been given out (the start A of the next slice; W + 1
us in arrival order). So every lost row is late, and many a late row is not lost.

>>> use = InWindows(timedelta(seconds=10), slide=timedelta(seconds=5))
>>> use.last_use(12_000_000)               # its last window is [10 s, 20 s)
20000000
>>> is_late(12_000_000, 12_000_000), is_late(12_000_000, UNKNOWN)
(True, False)
>>> use.is_lost(12_000_000, closed=15_000_000), use.is_lost(12_000_000, closed=20_000_000)
(False, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known

Instants = npt.NDArray[np.int64]
Times = TypeVar("Times", int, Instants)
"""One instant or a column of them: the rules below are plain arithmetic and hold for both."""


class Late(Enum):
    """What becomes of lost rows."""

    ROUTE = "route"
    DROP = "drop"
    NEXT = "next"
    UPDATE = "update"


def is_late(time: Instant, watermark: Known) -> bool:
    """Whether a row with this time is late when its batch begins at `watermark`."""
    return watermark is not UNKNOWN and time <= watermark


def late_rows(times: Instants, watermark: Known) -> npt.NDArray[np.bool_]:
    """`is_late` for a column."""
    if watermark is UNKNOWN:
        return np.zeros(len(times), dtype=np.bool_)
    return times <= watermark


class LastUse(Protocol):
    """How one side of a query uses a row.

    The largest end of what the row can still contribute to.
    """

    def last_use(self, time: Instant) -> Instant | None:
        """The end of the last thing that can use a row at `time`; None: there is no such end."""

    def is_lost(self, time: Instant, closed: Known) -> bool:
        """Whether nothing open or to come can use it, when all before `closed` is given out."""

    def lost_rows(self, times: Instants, closed: Known) -> npt.NDArray[np.bool_]:
        """`is_lost` for a column."""


class _Bounded:
    """A use that ends.

    Subclasses say when, as arithmetic that holds for one time and for a column.
    """

    def _end(self, time: Times) -> Times:
        raise AssertionError("a subclass says when its use ends")

    def last_use(self, time: Instant) -> Instant | None:
        """The end of the last use."""
        return self._end(time)

    def is_lost(self, time: Instant, closed: Known) -> bool:
        """Whether that end has passed."""
        return closed is not UNKNOWN and self._end(time) <= closed

    def lost_rows(self, times: Instants, closed: Known) -> npt.NDArray[np.bool_]:
        """`is_lost` for a column."""
        if closed is UNKNOWN:
            return np.zeros(len(times), dtype=np.bool_)
        return self._end(times) <= closed


@dataclass(frozen=True)
class InWindows(_Bounded):
    """Tumbling windows of `size`, hopping ones when there is a `slide`; they align to the epoch.

    A row in a gap, where the slide is larger than the size, is done with at its own time.
    """

    size: timedelta
    slide: timedelta | None = None

    def _end(self, time: Times) -> Times:
        size = micros(self.size)
        slide = micros(self.slide) if self.slide is not None else size
        end = time // slide * slide + size
        return end if slide <= size else _larger(end, time + 1)


@dataclass(frozen=True)
class InSession(_Bounded):
    """Session windows: a row keeps its session open for `gap`."""

    gap: timedelta

    def _end(self, time: Times) -> Times:
        return time + micros(self.gap)


@dataclass(frozen=True)
class InJoin(_Bounded):
    """The other side of an interval join.

    Rows of the first stream up to `bound` later can still meet it.
    """

    bound: timedelta

    def _end(self, time: Times) -> Times:
        return time + (micros(self.bound) + 1)


@dataclass(frozen=True)
class Once(_Bounded):
    """Used at its own time and never again.

    Ordered release, deduplication, the first stream of a join.
    """

    def _end(self, time: Times) -> Times:
        return time + 1


@dataclass(frozen=True)
class Forever:
    """Stateless queries and running totals: a row is never too late to count."""

    def last_use(self, time: Instant) -> Instant | None:
        """There is no end."""
        return None

    def is_lost(self, time: Instant, closed: Known) -> bool:
        """Never."""
        return False

    def lost_rows(self, times: Instants, closed: Known) -> npt.NDArray[np.bool_]:
        """None of them."""
        return np.zeros(len(times), dtype=np.bool_)


@dataclass(frozen=True)
class InAny(_Bounded):
    """Several uses of one row: the last of them counts."""

    uses: tuple[_Bounded, ...]

    def _end(self, time: Times) -> Times:
        ends = [use._end(time) for use in self.uses]
        latest = ends[0]
        for end in ends[1:]:
            latest = _larger(latest, end)
        return latest


def _larger(left: Times, right: Times) -> Times:
    if isinstance(left, np.ndarray):
        return np.maximum(left, right)
    return max(left, right)
