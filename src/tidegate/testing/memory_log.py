"""A log in memory: rows that are only times, for tests of whatever reads a log.

It answers exactly what the contract of a log asks: partitions with their ends, spans with
statistics, lineage of sealed partitions, marks. Appending makes one span; compaction may join them
without changing any offset.

>>> log = MemoryLog()
>>> log.add_stream("orders", ["0", "1"])
>>> log.append("orders", "0", [10, 30, 20])
>>> log.read("orders", "0", 1, 3)
[30, 20]
>>> [batch.to_pydict() for batch in log.log("orders").read("0", 1, 3)]     # behind the protocol
[{'value': [1, 2]}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.eventtime.watermark import from_json as watermark_from_json
from tidegate.eventtime.watermark import to_json as watermark_to_json
from tidegate.logs.log import (
    EVENT_TIME,
    OFFSET,
    Description,
    Times,
    bad_schema,
    check_partition,
    check_range,
    instants,
    open_log,
    read_schema,
)
from tidegate.marks.mark import Mark
from tidegate.planning.facts import Facts, Offsets, Partitions, Spans, StreamFacts, WriterFact
from tidegate.planning.state import PlannerState


@dataclass
class _Partition:
    rows: list[Instant] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    first: int = 0
    sealed: bool = False
    ended: bool = False
    arrived_at: Instant | None = None
    key_range: tuple[float, float] = (0.0, 1.0)
    unreadable: str | None = None


@dataclass
class _Stream:
    partitions: dict[str, _Partition] = field(default_factory=dict)
    successors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    marks: list[Mark] = field(default_factory=list)
    writers: list[WriterFact] = field(default_factory=list)
    version: int = 0

    def related(self, names: Iterable[str], *, later: bool) -> set[str]:
        """All that come after the named ones, or before them."""
        links: dict[str, list[str]] = {}
        for name, successors in self.successors.items():
            for successor in successors:
                one, other = (name, successor) if later else (successor, name)
                links.setdefault(one, []).append(other)
        found: set[str] = set()
        todo = list(names)
        while todo:
            for name in links.get(todo.pop(), ()):
                if name not in found:
                    found.add(name)
                    todo.append(name)
        return found


class MemoryLog:
    """Streams of partitions of times; what is asked about the past never changes."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}

    # ---- writing ----

    def add_stream(
        self, stream: str, partitions: Sequence[str], *, arrived_at: Instant | None = None
    ) -> None:
        """Create a stream; its partitions share the key space evenly."""
        share = 1 / max(len(partitions), 1)
        self._streams[stream] = _Stream(
            {
                name: _Partition(key_range=(i * share, (i + 1) * share), arrived_at=arrived_at)
                for i, name in enumerate(partitions)
            }
        )

    def add_partition(
        self,
        stream: str,
        partition: str,
        key_range: tuple[float, float] = (0.0, 1.0),
        *,
        arrived_at: Instant | None = None,
    ) -> None:
        """Add a partition nobody preceded."""
        self._changing(stream).partitions[partition] = _Partition(
            key_range=key_range, arrived_at=arrived_at
        )

    def append(
        self,
        stream: str,
        partition: str,
        times: Sequence[Instant],
        *,
        arrived_at: Instant | None = None,
    ) -> None:
        """Append rows as one span."""
        part = self._changing(stream).partitions[partition]
        assert not part.sealed, "a sealed partition takes no rows"
        assert not part.ended, "an ended partition takes no rows"
        if times:
            part.spans.append((len(part.rows), len(part.rows) + len(times)))
            part.rows.extend(times)
        if arrived_at is not None:
            part.arrived_at = arrived_at

    def scale(
        self, stream: str, sealed: Sequence[str], opened: Mapping[str, tuple[float, float]]
    ) -> None:
        """Seal some partitions and open their successors, tied by overlapping key ranges."""
        there = self._changing(stream)
        for name, key_range in opened.items():
            there.partitions[name] = _Partition(key_range=key_range)
        for name in sealed:
            part = there.partitions[name]
            part.sealed = True
            there.successors[name] = tuple(
                heir
                for heir, (low, high) in opened.items()
                if low < part.key_range[1] and high > part.key_range[0]
            )

    def end(self, stream: str, partition: str) -> None:
        """Say that a bounded partition is over."""
        self._changing(stream).partitions[partition].ended = True

    def hide(self, stream: str, partition: str, *, hidden: bool = True) -> None:
        """Let a partition vanish, or return."""
        change = self._changing(stream).hidden
        change.add(partition) if hidden else change.discard(partition)

    def break_partition(self, stream: str, partition: str, reason: str | None) -> None:
        """Make a partition unreadable, or readable again with None."""
        self._changing(stream).partitions[partition].unreadable = reason

    def compact(self, stream: str, partition: str) -> None:
        """Join all spans of a partition into one."""
        part = self._changing(stream).partitions[partition]
        if part.spans:
            part.spans = [(part.spans[0][0], part.spans[-1][1])]

    def truncate(self, stream: str, partition: str, before: int) -> None:
        """Forget the rows before an offset."""
        self._changing(stream).partitions[partition].first = before

    def mark(self, stream: str, mark: Mark) -> None:
        """Append a mark."""
        self._changing(stream).marks.append(mark)

    def set_writers(self, stream: str, writers: Sequence[WriterFact]) -> None:
        """Say who is known to note time."""
        self._changing(stream).writers = list(writers)

    def _changing(self, stream: str) -> _Stream:
        """A stream that is about to change."""
        self._streams[stream].version += 1
        return self._streams[stream]

    # ---- what a planner asks ----

    def facts(self, state: PlannerState) -> Facts:
        """All streams of the query, after its cuts, in one consistent read."""
        return Facts(
            {name: self._snapshot(name, state.streams[name].cut()) for name in state.streams}, self
        )

    def overlapping(
        self, stream: str, a: Known, b: Instant, start: Offsets, below: Offsets
    ) -> Spans:
        """The spans between two cuts that can hold a time in [a, b)."""
        there = self._streams[stream]
        begun = there.related(start, later=False)
        complete = there.related(below, later=False)
        found = []
        for name, part in there.partitions.items():
            end = below.get(name, len(part.rows) if name in complete else 0)
            begin = start.get(name, end if name in begun else 0)
            for span in self._spans(name, part, begin, end):
                if span[3] < b and (a is UNKNOWN or span[4] >= a):
                    found.append(span)
        ranges = {name: part.key_range for name, part in there.partitions.items()}
        return Spans.of(found, names=list(there.partitions), key_ranges=ranges)

    def cut_at(self, stream: str, time: Instant) -> Offsets:
        """Per partition nobody preceded the start of the first span that reaches `time`."""
        there = self._streams[stream]
        heirs = {heir for heirs in there.successors.values() for heir in heirs}
        cut = {}
        for name, part in there.partitions.items():
            if name not in heirs:
                reaching = (lo for lo, hi in part.spans if max(part.rows[lo:hi]) >= time)
                cut[name] = next(reaching, len(part.rows))
        return cut

    def read(self, stream: str, partition: str, start: int, end: int) -> list[Instant]:
        """The rows of a range of offsets."""
        return self._streams[stream].partitions[partition].rows[start:end]

    def rows(self, stream: str) -> dict[str, list[Instant]]:
        """Everything that was ever appended, per partition."""
        return {n: list(p.rows) for n, p in self._streams[stream].partitions.items()}

    def log(self, stream: str) -> MemoryStream:
        """One stream behind the protocol that every log implements."""
        return MemoryStream(self, stream)

    def _snapshot(self, stream: str, after: Offsets) -> StreamFacts:
        there = self._streams[stream]
        shown = {n: p for n, p in there.partitions.items() if n not in there.hidden}
        past = there.related(after, later=False) - set(after)
        spans, disorder = [], []
        for name, part in shown.items():
            if name in past:
                continue
            for span in self._spans(name, part, after.get(name, 0), len(part.rows)):
                spans.append(span)
                disorder.append(_disorder(part.rows, span[1], span[2]))
        return StreamFacts(
            Partitions.of(
                {name: len(part.rows) for name, part in shown.items()},
                start={name: part.first for name, part in shown.items()},
                sealed=[name for name, part in shown.items() if part.sealed],
                ended=[name for name, part in shown.items() if part.ended],
                ranges={name: part.key_range for name, part in shown.items()},
                arrived_at={
                    name: part.arrived_at
                    for name, part in shown.items()
                    if part.arrived_at is not None
                },
                successors={n: s for n, s in there.successors.items() if n in shown},
                unreadable={n: p.unreadable for n, p in shown.items() if p.unreadable},
            ),
            Spans.of(spans, names=list(shown), disorder=disorder),
            marks=tuple(there.marks),
            writers=tuple(there.writers),
        )

    @staticmethod
    def _spans(
        name: str, part: _Partition, begin: int, end: int
    ) -> Iterable[tuple[str, int, int, Instant, Instant]]:
        for low, high in part.spans:
            first, last = max(low, begin), min(high, end)
            if first < last:
                # Statistics are those of the whole span, as they are of a whole chunk.
                times = part.rows[low:high]
                yield name, first, last, min(times), max(times)


class MemoryStream:
    """One stream of a log in memory, as a `Log`: its only column, `value`, is the offset.

    Its description holds all its rows: opened elsewhere it is a copy, as of that moment.
    """

    schema: pa.Schema = pa.schema([pa.field("value", pa.int64())])

    def __init__(self, log: MemoryLog, name: str) -> None:
        self._log = log
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (self.describe(),)

    @property
    def bounded(self) -> bool:
        """Whether every open partition has ended."""
        parts = self._there.partitions.values()
        return all(part.ended or part.sealed for part in parts)

    def snapshot(self, after: Offsets) -> StreamFacts:
        """The partitions, and the spans and marks behind a cut."""
        return self._log._snapshot(self.name, after)

    def overlapping(self, a: Known, b: Instant, start: Offsets, below: Offsets) -> Spans:
        """The spans between two cuts that can hold a time in [a, b)."""
        found = self._log.overlapping(self.name, a, b, start, below)
        for place, begin, end in zip(found.partition, found.start, found.end, strict=True):
            name = found.names[place]
            first = self._there.partitions[name].first
            check_range(self.name, name, int(begin), int(end), first=first, latest=int(end))
        return found

    def cut_at(self, time: Instant) -> Offsets:
        """Per partition an offset that has every row at or after `time` behind it."""
        return self._log.cut_at(self.name, time)

    def read(
        self,
        partition: str,
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
        times: Times | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows with offsets in [start, end), those in [a, b) of event time if asked for."""
        schema = read_schema(self.name, self.schema, columns)
        check_partition(self.name, partition, list(self._there.partitions))
        part = self._there.partitions[partition]
        check_range(self.name, partition, start, end, first=part.first, latest=len(part.rows))
        moments = np.array(part.rows[start:end], dtype=np.int64)
        offsets = np.arange(start, end, dtype=np.int64)
        if times is not None:
            a, b = times
            inside = (moments < b) & (True if a is UNKNOWN else moments >= a)
            moments, offsets = moments[inside], offsets[inside]
        if len(offsets):
            given = {"value": pa.array(offsets), OFFSET: pa.array(offsets)}
            given[EVENT_TIME] = instants(moments)
            yield pa.RecordBatch.from_arrays([given[n] for n in schema.names], schema=schema)

    def bad_rows(self, partition: str, start: int, end: int) -> pa.Table:
        """None: every row here is only its time."""
        return bad_schema(self.schema).empty_table()

    def version(self) -> int:
        """How often the stream was changed."""
        return self._there.version

    def describe(self) -> Description:
        """All of it: there is nowhere else to open it from."""
        there = self._there
        return {
            "kind": "memory",
            "name": self.name,
            "partitions": {name: asdict(part) for name, part in there.partitions.items()},
            "successors": {name: list(heirs) for name, heirs in there.successors.items()},
            "hidden": sorted(there.hidden),
            "marks": [mark.to_json() for mark in there.marks],
            "writers": [[w.name, watermark_to_json(w.noted)] for w in there.writers],
            "version": there.version,
        }

    @staticmethod
    def opened(description: Mapping[str, Any]) -> MemoryStream:
        """A copy of the stream that was described."""
        log = MemoryLog()
        stream = log._streams[description["name"]] = _Stream(
            partitions={n: _partition(p) for n, p in description["partitions"].items()},
            successors={n: tuple(heirs) for n, heirs in description["successors"].items()},
            hidden=set(description["hidden"]),
            marks=[Mark.from_json(mark) for mark in description["marks"]],
            version=description["version"],
        )
        for name, noted in description["writers"]:
            number = watermark_from_json(noted)
            known = number if isinstance(number, int) else UNKNOWN
            stream.writers.append(WriterFact(name, known))
        return MemoryStream(log, description["name"])

    @property
    def _there(self) -> _Stream:
        return self._log._streams[self.name]


def _partition(described: Mapping[str, Any]) -> _Partition:
    low, high = described["key_range"]
    spans = [(start, end) for start, end in described["spans"]]
    return _Partition(**{**described, "key_range": (low, high), "spans": spans})


def _disorder(rows: Sequence[Instant], start: int, end: int) -> int:
    """The largest amount by which a row of the range lies behind what came before it."""
    highest = max(rows[:start], default=None)
    worst = 0
    for time in rows[start:end]:
        if highest is not None:
            worst = max(worst, highest - time)
        highest = time if highest is None else max(highest, time)
    return worst
