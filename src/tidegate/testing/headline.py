"""The headline: one backlog, delivered partition after partition, judged in two ways.

Trades of 50 traders in 100 symbols lie in a topic, one per second, counted in one-minute windows. A
consumer that catches up drains one partition after the other. One global watermark follows the
first partition to the end of time and calls nearly everything after it late; the planner waits for
every partition, so it keeps every row.

>>> headline = Headline()
>>> spark, delayed = OneGlobalWatermark(headline), OneGlobalWatermark(headline, TWO_HOURS)
>>> tidegate = Planned(headline)
>>> polls = list(deliver(headline, spark, delayed, tidegate))
>>> len(polls), spark.finish().kept, delayed.finish().kept, tidegate.finish().kept
(400, 319, 7303, 10000)

Every number follows from the arithmetic below: there is no chance in it and no clock. What a global
watermark keeps is the first partition, here three keys of a hundred, and what falls into the last
window. The size of a poll does not matter, for a partition in itself is in order.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

import numpy as np

from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.instants import Instant, floor_to, micros
from tidegate.eventtime.lateness import InWindows
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.batch import BatchPlan, StreamPlan
from tidegate.planning.plan import plan
from tidegate.planning.policy import Policy, Release
from tidegate.planning.query import Query
from tidegate.planning.slices import Slice
from tidegate.planning.state import PlannerState
from tidegate.testing.memory_log import MemoryLog

STREAM: Final = "trades"
TWO_HOURS: Final = timedelta(hours=2)

Key = tuple[int, int]
Results = Counter[tuple[Instant, Key]]
"""How many rows were counted, by the start of their window and their key."""


class Row(NamedTuple):
    """A trade: when, and (trader, symbol)."""

    time: Instant
    key: Key


class Chunk(NamedTuple):
    """What one poll brings: the next rows of one partition."""

    partition: str
    rows: list[Row]


@dataclass(frozen=True)
class Headline:
    """The workload: how many rows, of whom, over how many partitions, in windows of what size."""

    rows: int = 10_000
    traders: int = 50
    symbols: int = 100
    partitions: int = 24
    window: timedelta = timedelta(minutes=1)
    poll: int = 25

    def partition_names(self) -> list[str]:
        """The partitions, in the order in which they are delivered."""
        return [str(number) for number in range(self.partitions)]

    def partition_of(self, key: Key) -> str:
        """Where a key's rows go: a hash that is the same everywhere and always."""
        return str(zlib.crc32(b"%d,%d" % key) % self.partitions)

    def all_rows(self) -> Iterator[Row]:
        """The rows in the order in which they happened, one per second."""
        for i in range(self.rows):
            yield Row((1_000_000 + 1000 * i) * 1000, (i % self.traders, i % self.symbols))

    def chunks(self) -> list[Chunk]:
        """The rows as they are delivered: partition after partition, in polls."""
        log: dict[str, list[Row]] = {name: [] for name in self.partition_names()}
        for row in self.all_rows():
            log[self.partition_of(row.key)].append(row)
        return [
            Chunk(name, rows[first : first + self.poll])
            for name, rows in log.items()
            for first in range(0, len(rows), self.poll)
        ]

    def window_of(self, time: Instant) -> Instant:
        """The start of a row's window."""
        return floor_to(time, micros(self.window))

    def truth(self) -> Results:
        """What a count over all rows gives."""
        return Counter((self.window_of(row.time), row.key) for row in self.all_rows())


@dataclass(frozen=True)
class Outcome:
    """What one way of keeping time made of the workload, with what was open at the end flushed.

    `closed` counts the results that were given out before the end.
    """

    kept: int
    lost: int
    results: Results
    closed: int

    def windows_right(self, truth: Results) -> int:
        """How many windows have exactly the results that they should have."""
        return len(_windows(truth)) - len(_windows(truth - self.results, self.results - truth))


def _windows(*several: Results) -> set[Instant]:
    return {start for results in several for start, _ in results}


class Way(Protocol):
    """A way of keeping time: it takes what each poll brings, and tells at the end what it kept."""

    def take(self, chunk: Chunk) -> None:
        """A batch has come."""

    def finish(self) -> Outcome:
        """No more will come."""


class OneGlobalWatermark:
    """What stock Spark does: one watermark for the query, the largest time seen minus a delay.

    It advances after each batch. Rows of the next one whose window has ended at or before it are
    dropped. (Spark 4 begins to drop yet one batch later; with polls this small the counts are the
    same.)
    """

    def __init__(self, headline: Headline, delay: timedelta = timedelta(0)) -> None:
        self._headline = headline
        self._use = InWindows(headline.window)
        self._watermark = BoundedDisorder(delay).build()
        self._results: Results = Counter()
        self._lost = 0
        self.history: list[Known] = []
        """The watermark after each batch."""

    def current(self) -> Known:
        """The watermark now."""
        now = self._watermark.current()
        return now if isinstance(now, int) else UNKNOWN

    def take(self, chunk: Chunk) -> None:
        """Judge a batch by the watermark before it, then let it move the watermark."""
        judged_by = self.current()
        for row in chunk.rows:
            if self._use.is_lost(row.time, judged_by):
                self._lost += 1
            else:
                self._results[self._headline.window_of(row.time), row.key] += 1
        for row in chunk.rows:
            self._watermark.on_event(row.time)
        self.history.append(self.current())

    def finish(self) -> Outcome:
        """Flush what is open."""
        closed = [start for start, _ in self._results if self._use.is_lost(start, self.current())]
        return Outcome(self._results.total(), self._lost, self._results, len(closed))


class Moment(NamedTuple):
    """Where the planner stands after a batch: the number of each partition, and W."""

    numbers: list[Known]
    watermark: Known


class Planned:
    """What Tidegate does: the planner over a log, one plan per poll, windows when complete."""

    def __init__(self, headline: Headline) -> None:
        self._headline = headline
        self._query = Query.windows([STREAM], headline.window, keyed=True)
        self._policy = Policy(release=Release.TIME)
        self._state = PlannerState.fresh("headline", [STREAM])
        self._log = MemoryLog()
        self._log.add_stream(STREAM, headline.partition_names())
        self._rows: dict[str, list[Row]] = {name: [] for name in headline.partition_names()}
        self._results: Results = Counter()
        self._lost = 0
        self.history: list[Moment] = []
        """The watermarks after each batch."""

    def take(self, chunk: Chunk) -> None:
        """Append a batch to the log and run what can be planned then."""
        self._log.append(STREAM, chunk.partition, [row.time for row in chunk.rows])
        self._rows[chunk.partition].extend(chunk.rows)
        stream = self._run().streams[STREAM]
        numbers = zip(stream.number.tolist(), stream.known.tolist(), strict=True)
        self.history.append(
            Moment([n if known else UNKNOWN for n, known in numbers], self._state.watermark)
        )

    def finish(self) -> Outcome:
        """Say that every partition has ended, and run what is left."""
        closed = len(self._results)
        for name in self._headline.partition_names():
            self._log.end(STREAM, name)
        while not self._state.finished:
            self._run()
        return Outcome(self._results.total(), self._lost, self._results, closed)

    def _run(self) -> BatchPlan:
        facts = self._log.facts(self._state)
        self._state, batch = plan(self._state, facts, self._query, self._policy, now=0)
        for stream in batch.streams.values():
            self._judge(stream)
        if batch.slice is not None:
            self._release(batch.slice)
        return batch

    def _judge(self, stream: StreamPlan) -> None:
        for name, (start, end) in stream.ranges().items():
            times = np.array([row.time for row in self._rows[name][start:end]], dtype=np.int64)
            self._lost += int(stream.judge(times).lost.sum())

    def _release(self, piece: Slice) -> None:
        for task in piece.tasks:
            a, b = task.interval.a, task.interval.b
            spans = task.reads[STREAM]
            places = zip(spans.partition, spans.start, spans.end, strict=True)
            for partition, start, end in places:
                for row in self._rows[spans.names[partition]][start:end]:
                    if row.time < b and (a is UNKNOWN or row.time >= a):
                        self._results[self._headline.window_of(row.time), row.key] += 1


def deliver(headline: Headline, *ways: Way) -> Iterator[Chunk]:
    """Hand every poll to all ways; yield it when they have taken it."""
    for chunk in headline.chunks():
        for way in ways:
            way.take(chunk)
        yield chunk
