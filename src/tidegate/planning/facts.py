"""Facts: what a log tells the planner, in one consistent read.

Facts are columns, one row per partition or per span, because a plan over ten thousand partitions
must not touch ten thousand objects. They say what is there; the planner decides what becomes of it.

>>> spans = Spans.of([("0", 0, 10, 100, 190), ("0", 10, 20, 150, 260), ("1", 0, 5, 90, 130)])
>>> spans.names, spans.rows.tolist(), len(spans)
(('0', '1'), [10, 10, 5], 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.mark import Mark

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]
Ranges = npt.NDArray[np.float64]
Offsets = Mapping[str, int]
"""A cut as a plain mapping: an offset per partition."""


def numbers(values: Iterable[int] = ()) -> Numbers:
    """A column of integers."""
    return np.array(list(values), dtype=np.int64)


def flags(values: Iterable[bool] = ()) -> Flags:
    """A column of truths."""
    return np.array(list(values), dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Spans:
    """Runs of rows with their statistics, ordered by partition and offset.

    `partition` points into `names`. Times speak of good rows only (rows with an event time that is
    not from the future); a span without any is not `timed`. `disorder` is the largest amount by
    which a row lies behind the running maximum of its partition. `key_ranges` has the [low, high)
    of every name; without it each may hold any key.
    """

    names: tuple[str, ...]
    partition: Positions
    start: Numbers
    end: Numbers
    rows: Numbers
    bytes: Numbers
    min_time: Numbers
    max_time: Numbers
    timed: Flags
    disorder: Numbers
    key_ranges: Ranges | None = None

    @staticmethod
    def of(
        spans: Iterable[tuple[str, int, int, int, int]],
        *,
        names: Sequence[str] | None = None,
        disorder: Sequence[int] | None = None,
        key_ranges: Mapping[str, tuple[float, float]] | None = None,
        row_bytes: int = 100,
    ) -> Spans:
        """Spans from (partition, start, end, min time, max time): for small logs and for tests."""
        listed = list(spans)
        known = tuple(names) if names is not None else tuple(dict.fromkeys(s[0] for s in listed))
        place = {name: i for i, name in enumerate(known)}
        order = sorted(range(len(listed)), key=lambda i: (place[listed[i][0]], listed[i][1]))
        rows = [listed[i] for i in order]
        count = numbers(end - start for _, start, end, _, _ in rows)
        return Spans(
            names=known,
            partition=np.array([place[name] for name, *_ in rows], dtype=np.intp),
            start=numbers(row[1] for row in rows),
            end=numbers(row[2] for row in rows),
            rows=count,
            bytes=count * row_bytes,
            min_time=numbers(row[3] for row in rows),
            max_time=numbers(row[4] for row in rows),
            timed=flags(row[3] <= row[4] for row in rows),
            disorder=numbers(disorder[i] for i in order)
            if disorder is not None
            else np.zeros(len(rows), dtype=np.int64),
            key_ranges=None
            if key_ranges is None
            else np.array([key_ranges[name] for name in known], dtype=np.float64).reshape(-1, 2),
        )

    def __len__(self) -> int:
        return len(self.partition)

    def ranges(self) -> Ranges:
        """[low, high) of the keys of every name."""
        if self.key_ranges is not None:
            return self.key_ranges
        return np.tile(np.array([0.0, 1.0]), (len(self.names), 1))

    def where(self, chosen: Flags | Positions) -> Spans:
        """Some of them, in the same order."""
        return replace(
            self,
            partition=self.partition[chosen],
            start=self.start[chosen],
            end=self.end[chosen],
            rows=self.rows[chosen],
            bytes=self.bytes[chosen],
            min_time=self.min_time[chosen],
            max_time=self.max_time[chosen],
            timed=self.timed[chosen],
            disorder=self.disorder[chosen],
        )


@dataclass(frozen=True, eq=False)
class Partitions:
    """The partitions of a stream: where they begin and end, and what became of them.

    `low` and `high` are the key range in [0, 1). `arrived_at` is the last arrival (or the
    registration) by the log's own clock, where `has_arrival` says that the log has one. A sealed
    partition gets no more rows and names its successors; an ended one gets no more rows and has
    none. `unreadable` gives the reason for those that cannot be read now.
    """

    names: tuple[str, ...]
    start: Numbers
    latest: Numbers
    sealed: Flags
    ended: Flags
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    arrived_at: Numbers
    has_arrival: Flags
    successors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        latest: Mapping[str, int],
        *,
        start: Mapping[str, int] | None = None,
        sealed: Iterable[str] = (),
        ended: Iterable[str] = (),
        ranges: Mapping[str, tuple[float, float]] | None = None,
        arrived_at: Mapping[str, Instant] | None = None,
        successors: Mapping[str, tuple[str, ...]] | None = None,
        unreadable: Mapping[str, str] | None = None,
    ) -> Partitions:
        """Partitions from plain mappings: for small logs and for tests."""
        names = tuple(latest)
        begins, arrivals, keys = start or {}, arrived_at or {}, ranges or {}
        closed, over = set(sealed), set(ended)
        return Partitions(
            names=names,
            start=numbers(begins.get(name, 0) for name in names),
            latest=numbers(latest.values()),
            sealed=flags(name in closed for name in names),
            ended=flags(name in over for name in names),
            low=np.array([keys.get(name, (0.0, 1.0))[0] for name in names], dtype=np.float64),
            high=np.array([keys.get(name, (0.0, 1.0))[1] for name in names], dtype=np.float64),
            arrived_at=numbers(arrivals.get(name, 0) for name in names),
            has_arrival=flags(name in arrivals for name in names),
            successors=successors or {},
            unreadable=unreadable or {},
        )

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class WriterFact:
    """A known writer of a stream that is read by marks: its last note, UNKNOWN before the first."""

    name: str
    noted: Known = UNKNOWN


@dataclass(frozen=True, eq=False)
class StreamFacts:
    """One stream at one moment: its partitions, and the spans and marks behind a cut."""

    partitions: Partitions
    spans: Spans
    marks: tuple[Mark, ...] = ()
    writers: tuple[WriterFact, ...] = ()
    quiet_for: Numbers | None = None
    """How long each partition was seen unchanged at its end, by the timers of this run."""
    empty_for: int = 0
    """How long the stream was seen without any partition, by the timers of this run."""


class Questions(Protocol):
    """What a planner may ask about rows that lie before the cut: they never change."""

    def overlapping(
        self, stream: str, a: Known, b: Instant, start: Offsets, below: Offsets
    ) -> Spans:
        """The spans between two cuts that can hold a time in [a, b); UNKNOWN: from the beginning.

        Raises when some of them are truncated.
        """

    def cut_at(self, stream: str, time: Instant) -> Offsets:
        """Per partition an offset that has every row at or after `time` behind it."""


@dataclass(frozen=True, eq=False)
class Facts:
    """All streams of a query at one moment, and whom to ask about the past."""

    streams: Mapping[str, StreamFacts]
    ask: Questions
