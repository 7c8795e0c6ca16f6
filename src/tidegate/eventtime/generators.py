"""Generators: from the events of one partition to its number.

The number N says that nothing before N is still to come. Configuration is a frozen value; it builds
the thing that runs, which only ever advances, has a `snapshot()` and can be restored from it.
Features stack by wrapping.

>>> generator = BoundedDisorder(timedelta(microseconds=100)).build()
>>> generator.on_event(1000), generator.on_event(800), generator.on_event(1200)
(900, None, 1100)
>>> generator.advance_to(5000)                      # a mark from outside
5000
>>> kept = generator.snapshot()
>>> BoundedDisorder(timedelta(microseconds=100)).build(kept).current()
5000
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked, micros
from tidegate.eventtime.lateness import Times
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known, Monotone, Watermark, later

WallClock = Callable[[], Instant]
"""Gives the current instant."""

Snapshot = dict[str, Any]
"""Plain JSON."""


class WatermarkGenerator(Protocol):
    """What runs. Each act returns the number if it moved it, otherwise None. Not thread safe."""

    def on_event(self, time: Instant) -> Instant | None:
        """An event was seen."""

    def advance_to(self, number: Instant) -> Instant | None:
        """Somebody who knows says that nothing before `number` is still to come."""

    def on_clock(self) -> Instant | None:
        """Time has passed."""

    def current(self) -> Watermark:
        """The number now; IDLE when nobody need wait for it."""

    def snapshot(self) -> Snapshot:
        """Everything needed to go on elsewhere."""


class GeneratorConfig(Protocol):
    """What is described: a frozen value that builds a generator, anew or from a snapshot."""

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""


class _Running:
    """The part all generators share: a number that cannot go back."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        kept = snapshot or {}
        self._number = Monotone(_known(kept.get("number")))

    def on_event(self, time: Instant) -> Instant | None:
        return None

    def on_clock(self) -> Instant | None:
        return None

    def advance_to(self, number: Instant) -> Instant | None:
        return number if self._number.advance(checked(number)) else None

    def current(self) -> Watermark:
        return self._number.value

    def snapshot(self) -> Snapshot:
        return {"number": _plain(self._number.value)}


def _known(value: Instant | None) -> Known:
    return UNKNOWN if value is None else value


def _plain(value: Known) -> Instant | None:
    return None if value is UNKNOWN else value


# ---- bounded disorder ----


@dataclass(frozen=True)
class BoundedDisorder:
    """No event is more than `tolerance` behind the largest seen before it."""

    tolerance: timedelta = timedelta(0)

    def number(self, max_seen: Times) -> Times:
        """N of a partition, or a column of them, whose largest event time is `max_seen`."""
        return max_seen - micros(self.tolerance)

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _FollowingEvents(self.number, snapshot)


def ascending() -> BoundedDisorder:
    """Events come in order: bounded disorder of zero."""
    return BoundedDisorder(timedelta(0))


class _FollowingEvents(_Running):
    def __init__(self, rule: Callable[[int], int], snapshot: Snapshot | None) -> None:
        super().__init__(snapshot)
        self._rule = rule

    def on_event(self, time: Instant) -> Instant | None:
        return self.advance_to(self._rule(time))


@dataclass(frozen=True)
class AutoDisorder:
    """`tolerance = auto`: the largest disorder seen so far is the tolerance.

    An estimate: a row further behind than any before it can still be late. What has been said is
    never lowered.

    >>> generator = AutoDisorder().build()
    >>> [generator.on_event(t) for t in (100, 90, 105, 120)]      # 10 behind: 120 - 10
    [100, None, None, 110]
    """

    @staticmethod
    def number(max_seen: Times, disorder: int) -> Times:
        """N where the largest disorder seen is `disorder`."""
        return max_seen - disorder

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _FollowingDisorder(snapshot)


class _FollowingDisorder(_Running):
    def __init__(self, snapshot: Snapshot | None) -> None:
        super().__init__(snapshot)
        kept = snapshot or {}
        self._max_seen = _known(kept.get("max_seen"))
        self._disorder: int = kept.get("disorder", 0)

    def on_event(self, time: Instant) -> Instant | None:
        checked(time)
        if self._max_seen is not UNKNOWN:
            self._disorder = max(self._disorder, self._max_seen - time)
        seen = later(self._max_seen, time)
        assert seen is not UNKNOWN
        self._max_seen = seen
        return self.advance_to(AutoDisorder.number(seen, self._disorder))

    def snapshot(self) -> Snapshot:
        return {
            **super().snapshot(),
            "max_seen": _plain(self._max_seen),
            "disorder": self._disorder,
        }


# ---- punctuation, marks, the clock ----


@dataclass(frozen=True)
class Punctuated:
    """Some events carry the number: `reads` gives it, or None for an ordinary event."""

    reads: Callable[[Instant], Instant | None]

    @staticmethod
    def every(duration: timedelta) -> Punctuated:
        """Events whose time is a multiple of `duration` are the punctuation."""
        step = micros(duration)
        if step <= 0:
            raise errors.not_a_positive_duration("every", duration)
        return Punctuated(lambda time: time if time % step == 0 else None)

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _FollowingPunctuation(self.reads, snapshot)


class _FollowingPunctuation(_Running):
    def __init__(
        self, reads: Callable[[Instant], Instant | None], snapshot: Snapshot | None
    ) -> None:
        super().__init__(snapshot)
        self._reads = reads

    def on_event(self, time: Instant) -> Instant | None:
        number = self._reads(time)
        return None if number is None else self.advance_to(number)


@dataclass(frozen=True)
class FedByMarks:
    """Events say nothing; the number comes from marks, through `advance_to`."""

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _Running(snapshot)


@dataclass(frozen=True)
class ProcessingTime:
    """A row's time is the moment it arrives: the number is the clock."""

    clock: WallClock

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _FollowingClock(self.clock, snapshot)


class _FollowingClock(_Running):
    def __init__(self, clock: WallClock, snapshot: Snapshot | None) -> None:
        super().__init__(snapshot)
        self._clock = clock

    def on_event(self, time: Instant) -> Instant | None:
        return self.on_clock()

    def on_clock(self) -> Instant | None:
        return self.advance_to(self._clock())


# ---- wrappers ----


@dataclass(frozen=True)
class WithIdleness:
    """IDLE when nothing came for `timeout`; active again at the next event or mark."""

    inner: GeneratorConfig
    timeout: timedelta
    clock: WallClock

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _Idling(self, snapshot)


def with_idleness(inner: GeneratorConfig, timeout: timedelta, clock: WallClock) -> WithIdleness:
    """Wrap a configuration so that a quiet partition is IDLE after `timeout`."""
    return WithIdleness(inner, timeout, clock)


class _Idling:
    def __init__(self, config: WithIdleness, snapshot: Snapshot | None) -> None:
        kept = snapshot or {}
        self._inner = config.inner.build(kept.get("inner"))
        self._timeout = micros(config.timeout)
        self._clock = config.clock
        # A timer does not survive a restart: time in which nobody looked is no evidence of silence.
        self._last_activity = self._clock()
        self._idle: bool = kept.get("idle", False)

    def on_event(self, time: Instant) -> Instant | None:
        self._touch()
        return self._inner.on_event(time)

    def advance_to(self, number: Instant) -> Instant | None:
        self._touch()
        return self._inner.advance_to(number)

    def on_clock(self) -> Instant | None:
        if self._clock() - self._last_activity >= self._timeout:
            self._idle = True
        return self._inner.on_clock()

    def current(self) -> Watermark:
        return IDLE if self._idle else self._inner.current()

    def snapshot(self) -> Snapshot:
        return {"inner": self._inner.snapshot(), "idle": self._idle}

    def _touch(self) -> None:
        self._last_activity = self._clock()
        self._idle = False


@dataclass(frozen=True)
class WithFutureGuard:
    """An event dated more than `max_future` past the clock moves nothing."""

    inner: GeneratorConfig
    max_future: timedelta
    clock: WallClock

    def build(self, snapshot: Snapshot | None = None) -> WatermarkGenerator:
        """Make the thing that runs."""
        return _Guarded(self, snapshot)


def with_future_guard(
    inner: GeneratorConfig, max_future: timedelta, clock: WallClock
) -> WithFutureGuard:
    """Wrap a configuration so that rows from the future move nothing."""
    return WithFutureGuard(inner, max_future, clock)


class _Guarded:
    def __init__(self, config: WithFutureGuard, snapshot: Snapshot | None) -> None:
        self._inner = config.inner.build((snapshot or {}).get("inner"))
        self._limit = micros(config.max_future)
        self._clock = config.clock

    def on_event(self, time: Instant) -> Instant | None:
        if time > self._clock() + self._limit:
            return None
        return self._inner.on_event(time)

    def advance_to(self, number: Instant) -> Instant | None:
        return self._inner.advance_to(number)

    def on_clock(self) -> Instant | None:
        return self._inner.on_clock()

    def current(self) -> Watermark:
        return self._inner.current()

    def snapshot(self) -> Snapshot:
        return {"inner": self._inner.snapshot()}
