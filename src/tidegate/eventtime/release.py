"""Ordered release: rows go in as they arrive and come out in the order of their times.

What comes out is sorted by (time, arrival), and never lies at or before a watermark that came out
earlier: rows first, then their watermark. Late rows, judged when their batch begins, are an output
or a count, never silent.

>>> release = OrderedRelease().build()
>>> release.push([(3, "c"), (1, "a"), (2, "b")])            # nothing is late yet
()
>>> release.advance(2)
Released(rows=(Row(time=1, arrival=1, value='a'), Row(time=2, arrival=2, value='b')), \
watermark=2, late=())
>>> release.push([(2, "too late")])                         # route: the caller gets it back
(Row(time=2, arrival=3, value='too late'),)
>>> release.end()                                           # no artificial maximum watermark
Released(rows=(Row(time=3, arrival=0, value='c'),), watermark=None, late=())

The operator is told the watermark. `ReleaseByGenerator` finds it itself, with a generator, batch by
batch. This is also the oracle for slices: those of `[A, B)` are what comes out when a release that
stands at A - 1 us advances to B - 1 us.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from tidegate import errors
from tidegate.eventtime.generators import GeneratorConfig, Snapshot
from tidegate.eventtime.instants import Instant, checked
from tidegate.eventtime.lateness import Late, is_late
from tidegate.eventtime.watermark import (
    IDLE,
    UNKNOWN,
    Known,
    Monotone,
    from_json,
    later,
    to_json,
)

V = TypeVar("V")


class Row(NamedTuple, Generic[V]):
    """A row: when it happened, its place among the arrivals, and what it is."""

    time: Instant
    arrival: int
    value: V


class Released(NamedTuple, Generic[V]):
    """What comes out in one step: rows in order, then the watermark if it moved.

    `late` are the rows to route; they keep their own times.
    """

    rows: tuple[Row[V], ...] = ()
    watermark: Instant | None = None
    late: tuple[Row[V], ...] = ()


@dataclass(frozen=True)
class ReleaseMetrics:
    """The four numbers to watch."""

    buffer_size: int
    late_count: int
    watermarks_emitted: int
    max_seen: Known


@dataclass(frozen=True)
class OrderedRelease:
    """Ordered release, described.

    `late`: `route` gives late rows back, `drop` only counts them, `next` lets them count as if
    their time were just after the watermark. `watermark` is where to begin.
    """

    late: Late = Late.ROUTE
    watermark: Known = UNKNOWN

    def __post_init__(self) -> None:
        if self.late is Late.UPDATE:
            raise errors.update_needs_windows()

    def build(self, snapshot: Snapshot | None = None) -> Releasing[Any]:
        """Make the thing that runs, anew or from a snapshot."""
        return Releasing(self, snapshot)


class Releasing(Generic[V]):
    """Ordered release, running: O(log n) per row in a buffer of n. Not thread safe."""

    def __init__(self, config: OrderedRelease, snapshot: Snapshot | None = None) -> None:
        kept = snapshot or {}
        self._late = config.late
        self._watermark = Monotone(_known(kept.get("watermark", to_json(config.watermark))))
        self._max_seen: Known = _known(kept.get("max_seen", to_json(UNKNOWN)))
        # Kept sorted in a snapshot, and what is sorted is a heap.
        self._buffer: list[Row[V]] = [Row(*row) for row in kept.get("rows", [])]
        self._arrivals: int = kept.get("arrivals", 0)
        self._late_count: int = kept.get("late_count", 0)
        self._emitted: int = kept.get("watermarks_emitted", 0)
        self._ended: bool = kept.get("ended", False)

    @property
    def watermark(self) -> Known:
        """The last watermark that came out, or where this began."""
        return self._watermark.value

    @property
    def metrics(self) -> ReleaseMetrics:
        """The four numbers, now."""
        return ReleaseMetrics(len(self._buffer), self._late_count, self._emitted, self._max_seen)

    def push(self, rows: Iterable[tuple[Instant, V]]) -> tuple[Row[V], ...]:
        """Take one batch of (time, value) as it arrived; return the late rows to route."""
        self._refuse_after_end()
        routed: list[Row[V]] = []
        for time, value in [(checked(time), value) for time, value in rows]:
            row = Row(time, self._arrivals, value)
            self._arrivals += 1
            if not is_late(time, self.watermark):
                self._max_seen = later(self._max_seen, time)
                heapq.heappush(self._buffer, row)
                continue
            self._late_count += 1
            if self._late is Late.ROUTE:
                routed.append(row)
            elif self._late is Late.NEXT:
                heapq.heappush(self._buffer, row._replace(time=self._next()))
        return tuple(routed)

    def advance(self, watermark: Known) -> Released[V]:
        """Everything at or before `watermark` has been seen: give it out."""
        self._refuse_after_end()
        if watermark is UNKNOWN or not self._watermark.advance(checked(watermark)):
            return Released()
        self._emitted += 1
        rows: list[Row[V]] = []
        while self._buffer and self._buffer[0].time <= watermark:
            rows.append(heapq.heappop(self._buffer))
        return Released(tuple(rows), watermark)

    def end(self) -> Released[V]:
        """The input is over: give out the rest, in order. No watermark says so; the end does."""
        self._refuse_after_end()
        self._ended = True
        rows = tuple(sorted(self._buffer, key=_place))
        self._buffer.clear()
        return Released(rows)

    def snapshot(self) -> Snapshot:
        """Everything needed to go on elsewhere; plain JSON if the values are."""
        return {
            "watermark": to_json(self.watermark),
            "max_seen": to_json(self._max_seen),
            "rows": [list(row) for row in sorted(self._buffer, key=_place)],
            "arrivals": self._arrivals,
            "late_count": self._late_count,
            "watermarks_emitted": self._emitted,
            "ended": self._ended,
        }

    def _next(self) -> Instant:
        assert self.watermark is not UNKNOWN, "nothing is late before the first watermark"
        return self.watermark + 1

    def _refuse_after_end(self) -> None:
        if self._ended:
            raise errors.after_the_end("the ordered release")


@dataclass(frozen=True)
class ReleaseByGenerator:
    """Ordered release that follows a generator: after each batch, to the generator's number.

    It is fed the number N itself, not the claim W = N - 1 us, and so a row exactly `tolerance`
    behind the maximum of an earlier batch is late, as in the document this follows.

    >>> from datetime import timedelta
    >>> from tidegate.eventtime.generators import BoundedDisorder
    >>> release = ReleaseByGenerator(BoundedDisorder(timedelta(microseconds=1))).build()
    >>> out = release.push([(3, "c"), (1, "a"), (2, "b")])
    >>> [row.value for row in out.rows], out.watermark
    (['a', 'b'], 2)
    """

    generator: GeneratorConfig
    release: OrderedRelease = OrderedRelease()

    def build(self, snapshot: Snapshot | None = None) -> ReleasingByGenerator[Any]:
        """Make the thing that runs, anew or from a snapshot."""
        return ReleasingByGenerator(self, snapshot)


class ReleasingByGenerator(Generic[V]):
    """Ordered release with its own generator, running. Not thread safe."""

    def __init__(self, config: ReleaseByGenerator, snapshot: Snapshot | None = None) -> None:
        kept = snapshot or {}
        self._generator = config.generator.build(kept.get("generator"))
        self._inner: Releasing[V] = config.release.build(kept.get("release"))

    @property
    def metrics(self) -> ReleaseMetrics:
        """The four numbers, now."""
        return self._inner.metrics

    def push(self, rows: Iterable[tuple[Instant, V]]) -> Released[V]:
        """Take one batch, judged by the watermark before it, and give out what it completes."""
        batch = list(rows)
        late = self._inner.push(batch)
        for time, _ in batch:
            self._generator.on_event(time)
        number = self._generator.current()
        return self._inner.advance(UNKNOWN if number is IDLE else number)._replace(late=late)

    def end(self) -> Released[V]:
        """The input is over: give out the rest, in order."""
        return self._inner.end()

    def snapshot(self) -> Snapshot:
        """Everything needed to go on elsewhere; plain JSON if the values are."""
        return {"generator": self._generator.snapshot(), "release": self._inner.snapshot()}


def _place(row: Row[Any]) -> tuple[Instant, int]:
    return row.time, row.arrival


def _known(value: int | str) -> Known:
    known = from_json(value)
    assert known is not IDLE, "a watermark that was emitted is an instant"
    return known
