"""The span table: statistics of the runs of rows of every partition, growing at the end.

It answers a planner's questions for logs whose partitions have no successors: what lies behind a
cut, what can hold a time in [a, b), where a time begins. Spans of one partition follow each other
without a gap. The disorder of a span is the larger of its own and of the amount by which its first
time lies behind everything before it.

>>> table = SpanTable()
>>> table.append("0", Stretch.of([(10, 100, 190), (10, 150, 260)]))
>>> spans = table.spans(after={"0": 15})
>>> spans.start.tolist(), spans.end.tolist(), spans.disorder.tolist()
([15], [20], [40])
>>> len(table.spans(times=(200, 300))), table.cut_at(200)
(1, {'0': 10})
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.log import Times
from tidegate.marks.time_index import TimeIndex
from tidegate.planning.facts import Flags, Numbers, Offsets, Spans, flags, numbers

UNTOLD: Final = -1
"""A disorder that nobody has looked for yet."""

_BELOW_ALL: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some spans that follow each other; `inner` is the disorder of each taken by itself."""

    rows: Numbers
    bytes: Numbers
    min_time: Numbers
    max_time: Numbers
    timed: Flags
    inner: Numbers

    @staticmethod
    def of(spans: Iterable[tuple[int, int, int]], *, row_bytes: int = 100) -> Stretch:
        """From (rows, min time, max time), each in order: for tests and examples."""
        listed = list(spans)
        rows = numbers(span[0] for span in listed)
        return Stretch(
            rows=rows,
            bytes=rows * row_bytes,
            min_time=numbers(span[1] for span in listed),
            max_time=numbers(span[2] for span in listed),
            timed=flags(True for _ in listed),
            inner=np.zeros(len(listed), dtype=np.int64),
        )


class _Partition:
    """The spans of one partition; joined into columns when somebody asks."""

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self.rows = 0
        self._joined: Stretch | None = None
        self._ends: Numbers = numbers()
        self._before: Numbers = numbers()

    def append(self, stretch: Stretch) -> None:
        self.stretches.append(stretch)
        self.rows += int(stretch.rows.sum())
        self._joined = None

    def columns(self) -> tuple[Stretch, Numbers, Numbers]:
        """The spans, their ends, and the largest time before each (where there is one)."""
        if self._joined is None:
            joined = _join(self.stretches)
            reach = np.where(joined.timed, joined.max_time, _BELOW_ALL)
            running = np.maximum.accumulate(reach) if len(reach) else reach
            self._before = np.concatenate([numbers([_BELOW_ALL])[: len(reach)], running[:-1]])
            self._ends = np.cumsum(joined.rows)
            self._joined, self.stretches = joined, [joined]
        return self._joined, self._ends, self._before


class SpanTable:
    """Spans per partition. A question costs a few array operations per partition."""

    def __init__(self) -> None:
        self._partitions: dict[str, _Partition] = {}
        self._index = TimeIndex()

    def add(self, partition: str) -> None:
        """A partition, which may have no rows yet."""
        if partition not in self._partitions:
            self._partitions[partition] = _Partition()
            self._index.add(partition)

    def append(self, partition: str, stretch: Stretch) -> None:
        """The next spans of a partition."""
        self.add(partition)
        held = self._partitions[partition]
        start = held.rows
        held.append(stretch)
        for rows, reach, timed in zip(
            stretch.rows.tolist(), stretch.max_time.tolist(), stretch.timed.tolist(), strict=True
        ):
            self._index.append(partition, start, start + rows, reach if timed else UNKNOWN)
            start += rows

    def rows(self, partition: str) -> int:
        """How many rows a partition has: its latest offset."""
        return self._partitions[partition].rows

    def cut_at(self, time: int) -> Offsets:
        """Per partition the start of the first span whose running maximum is at or after `time`."""
        return dict(self._index.cut_at(time))

    def tell_disorder(self, partition: str, first: int, inner: Numbers) -> None:
        """Fill in the disorder of spans, from the span that starts at offset `first` on."""
        joined, ends, _ = self._partitions[partition].columns()
        place = int(np.searchsorted(ends, first, side="right"))
        joined.inner[place : place + len(inner)] = inner

    def spans(
        self,
        *,
        after: Offsets | None = None,
        below: Offsets | None = None,
        times: Times | None = None,
        names: Iterable[str] | None = None,
    ) -> Spans:
        """The spans between two cuts, if asked for only those that can hold a time in [a, b).

        A partition that `after` does not have begins at 0; one that `below` does not have is left
        out. A span that a cut goes through keeps the statistics of the whole.
        """
        chosen = tuple(self._partitions if names is None else names)
        pieces = [
            self._of_partition(place, name, (after or {}).get(name, 0), end, times)
            for place, name in enumerate(chosen)
            if (end := self.rows(name) if below is None else below.get(name, 0)) > 0
        ]
        if not pieces:
            return Spans.of([], names=chosen)
        columns = {
            f.name: np.concatenate([getattr(piece, f.name) for piece in pieces])
            for f in fields(Spans)
            if f.name not in ("names", "key_ranges")
        }
        return Spans(names=chosen, **columns)

    def _of_partition(
        self, place: int, name: str, begin: int, end: int, times: Times | None
    ) -> Spans:
        joined, ends, before = self._partitions[name].columns()
        first = int(np.searchsorted(ends, begin, side="right"))
        last = int(np.searchsorted(ends - joined.rows, end, side="left"))
        part = slice(first, max(last, first))
        timed, low, high = joined.timed[part], joined.min_time[part], joined.max_time[part]
        whole_start = (ends - joined.rows)[part]
        start, stop = np.maximum(whole_start, begin), np.minimum(ends[part], end)
        # Where nothing lies before, the difference must be none, not an overflow.
        behind = np.where(timed & (before[part] > low), before[part], low) - low
        found = Spans(
            names=(name,),
            partition=np.full(len(start), place, dtype=np.intp),
            start=start,
            end=stop,
            rows=stop - start,
            bytes=joined.bytes[part] * (stop - start) // np.maximum(joined.rows[part], 1),
            min_time=low,
            max_time=high,
            timed=timed,
            disorder=np.where(timed, np.maximum(joined.inner[part], behind), 0),
        )
        if times is None:
            return found
        a, b = times
        inside = timed & (low < b)
        return found.where(inside if a is UNKNOWN else inside & (high >= a))


def inner_disorder(times: Numbers) -> int:
    """The largest amount by which a row lies behind the running maximum of these rows."""
    return int((np.maximum.accumulate(times) - times).max()) if len(times) else 0


def _join(stretches: list[Stretch]) -> Stretch:
    if not stretches:
        return Stretch.of([])
    return Stretch(
        **{f.name: np.concatenate([getattr(s, f.name) for s in stretches]) for f in fields(Stretch)}
    )
