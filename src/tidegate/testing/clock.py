"""A clock that stands still until it is told to move.

>>> clock = ManualClock(at=100)
>>> clock.advance(timedelta(seconds=1)); clock.now(), clock.seconds()
(1000100, 1.0001)
"""

from __future__ import annotations

from datetime import timedelta

from tidegate.eventtime.instants import Instant, micros


class ManualClock:
    """Gives instants by `now()` and monotonic seconds by `seconds()`."""

    def __init__(self, at: Instant = 0) -> None:
        self.at = at

    def now(self) -> Instant:
        """The current instant."""
        return self.at

    def seconds(self) -> float:
        """The same as seconds, for those who want a monotonic clock."""
        return self.at / 1_000_000

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.at += micros(by)
