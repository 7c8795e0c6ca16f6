"""The frontier: how far an output is complete.

A frontier is the number an output has been told: nothing before it is still to come there. It never
goes back, and it is UNKNOWN, not zero, until it is first told. The progress of several outputs, or
of several workers, is the minimum over them.

>>> fast, slow = CompletedFrontier(), CompletedFrontier()
>>> job = ProgressHandle.from_frontiers([fast, slow])
>>> fast.advance(5), fast.advance(3), job.frontier()       # nothing is known of the slow one
(True, False, UNKNOWN)
>>> slow.advance(3), job.frontier(), job.less_than(3), job.less_than(4), job.less_equal(3)
(True, 3, False, True, True)

When not to use it: to count rows. A frontier speaks of event time, however many rows there were.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import timedelta

from tidegate.eventtime.instants import checked
from tidegate.eventtime.merge import Report, combine
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known, Monotone
from tidegate.progress.messages import Ending, LogicalTime, combined_ending

MonotonicClock = Callable[[], float]
"""Gives seconds that never go back."""

Waiting = Callable[[timedelta], object]
"""Returns when something may have changed, at the latest after the given time: it sleeps, waits on
a condition, or pumps a graph. What it returns is not looked at."""


class Progress(ABC):
    """What can be asked of a frontier, of one output or of many."""

    @abstractmethod
    def frontier(self) -> Known:
        """The number up to which this is complete; UNKNOWN until there is one."""

    @property
    @abstractmethod
    def ending(self) -> Ending | None:
        """How it ended; None while it goes on."""

    def less_than(self, time: LogicalTime) -> bool:
        """Whether the frontier is still before `time`; true while it is UNKNOWN."""
        at = self.frontier()
        return at is UNKNOWN or at < time

    def less_equal(self, time: LogicalTime) -> bool:
        """Whether a row at `time` may still come; true while the frontier is UNKNOWN."""
        at = self.frontier()
        return at is UNKNOWN or at <= time

    def complete_before(self, time: LogicalTime) -> bool:
        """Whether nothing before `time` is still to come.

        The frontier says so, or a graceful end: it needs no number to mean that all has come.
        """
        return not self.less_than(time) or self.ending is Ending.GRACEFUL


class CompletedFrontier(Progress):
    """The frontier of one output; whoever feeds that output advances it. Not thread safe."""

    __slots__ = ("_ending", "_number")

    def __init__(self) -> None:
        self._number = Monotone()
        self._ending: Ending | None = None

    def frontier(self) -> Known:
        """The last number told."""
        return self._number.value

    @property
    def ending(self) -> Ending | None:
        """How the output ended; None while it goes on."""
        return self._ending

    def advance(self, to: LogicalTime) -> bool:
        """Nothing before `to` is still to come; return whether that is news."""
        return self._number.advance(checked(to))

    def end(self, ending: Ending) -> bool:
        """The output is over; the number stays where it is. Return whether that is news."""
        if self._ending is not None:
            return False
        self._ending = ending
        return True

    def __repr__(self) -> str:
        return f"CompletedFrontier({self._number.value!r})"


class ProgressHandle(Progress):
    """A view of the minimum over frontiers, or over the handles of workers; it keeps no state."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[Progress]) -> None:
        self._parts = tuple(parts)

    @classmethod
    def from_frontiers(cls, parts: Iterable[Progress]) -> ProgressHandle:
        """The handle over sinks (their frontiers) or over workers (their handles).

        An idle sink counts like any other: what nobody has told it, it has not completed.
        """
        return cls(parts)

    def frontier(self) -> Known:
        """The minimum over the parts; UNKNOWN while one of them is, or when there is none."""
        least = combine([Report(part.frontier()) for part in self._parts]).watermark
        return UNKNOWN if least is IDLE else least

    @property
    def ending(self) -> Ending | None:
        """How all of them ended; None while one goes on."""
        return combined_ending(part.ending for part in self._parts)

    def wait_for(
        self, time: LogicalTime, timeout: timedelta, *, wait: Waiting, clock: MonotonicClock
    ) -> bool:
        """Wait until nothing before `time` is still to come; return whether it came to that.

        It gives up after `timeout` by `clock`, and at once when what it waits for has ended.
        Waiting is the caller's: `wait` is handed the time that is left.

        >>> sink, now = CompletedFrontier(), [0.0]
        >>> def pump(left: timedelta) -> None:
        ...     now[0] += 1
        ...     sink.advance(int(now[0]) * 10)
        >>> handle = ProgressHandle([sink])
        >>> handle.wait_for(30, timedelta(seconds=5), wait=pump, clock=lambda: now[0]), now
        (True, [3.0])
        """
        began = clock()
        while not self.complete_before(time):
            left = timeout - timedelta(seconds=clock() - began)
            if left <= timedelta(0) or self.ending is not None:
                return False
            wait(left)
        return True

    def __repr__(self) -> str:
        return f"ProgressHandle({self.frontier()!r})"
