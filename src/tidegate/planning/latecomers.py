"""Latecomers: rows that came when some of what they would have met had been given out.

A full join says of a row that nothing met it, and to know that it reads back below A. There the log
also holds rows that came after A had passed them: they were lost, and met nothing. So the state of
such a query keeps, as far back as is read, the ranges of offsets in which such rows can lie, and
what was closed when they came. A row of the first stream counts if its time is not before that; a
row of the second has met nothing before it. Where nothing comes late nothing is kept.

>>> spans = Spans.of([("p", 0, 10, 0, 9)])
>>> for since, part in parted(spans, [Latecomer("p", 4, 6, since=5)]).items():
...     print(since, part.start.tolist(), part.end.tolist())
UNKNOWN [0, 6] [4, 10]
5 [4] [6]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tidegate.eventtime.instants import micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Spans, numbers
from tidegate.planning.query import Query
from tidegate.planning.state import Latecomer, PlannerState


def remember_latecomers(
    draft: PlannerState, arrived: Mapping[str, Spans], query: Query, closed: Known
) -> PlannerState:
    """The state with the latecomers of a batch, without those that nothing reads any more."""
    if query.reach is None or closed is UNKNOWN:
        return draft
    # The batch itself begins at A, and reads this far back.
    horizon = closed - micros(query.reach)
    streams = {}
    for name, stream in draft.streams.items():
        spans = arrived[name]
        late = spans.timed & (spans.min_time < closed + micros(query.sides[name].after))
        new = _ranges(spans.where(late), closed)
        kept = [one for one in (*stream.latecomers, *new) if one.since > horizon]
        streams[name] = replace(stream, latecomers=tuple(_joined(kept)))
    return replace(draft, streams=streams)


def parted(spans: Spans, latecomers: Iterable[Latecomer]) -> dict[Known, Spans]:
    """Spans by what was closed when their rows came; UNKNOWN where it does not matter."""
    by_partition: dict[str, list[Latecomer]] = {}
    for one in sorted(latecomers, key=lambda one: one.start):
        by_partition.setdefault(one.partition, []).append(one)
    found: dict[Known, list[tuple[int, int, int]]] = {}
    columns = (spans.partition.tolist(), spans.start.tolist(), spans.end.tolist())
    for place, (partition, start, end) in enumerate(zip(*columns, strict=True)):
        for one in by_partition.get(spans.names[partition], ()):
            if one.end <= start or one.start >= end:
                continue
            if start < one.start:
                found.setdefault(UNKNOWN, []).append((place, start, one.start))
            start = max(start, one.start)
            found.setdefault(one.since, []).append((place, start, min(end, one.end)))
            start = min(end, one.end)
        if start < end:
            found.setdefault(UNKNOWN, []).append((place, start, end))
    return {since: _cut(spans, pieces) for since, pieces in found.items()}


def _cut(spans: Spans, pieces: Sequence[tuple[int, int, int]]) -> Spans:
    chosen = spans.where(np.array([place for place, _, _ in pieces], dtype=np.intp))
    start = numbers(start for _, start, _ in pieces)
    end = numbers(end for _, _, end in pieces)
    return replace(chosen, start=start, end=end, rows=np.minimum(chosen.rows, end - start))


def _ranges(spans: Spans, since: int) -> list[Latecomer]:
    columns = (spans.partition.tolist(), spans.start.tolist(), spans.end.tolist())
    return [
        Latecomer(spans.names[partition], start, end, since)
        for partition, start, end in zip(*columns, strict=True)
    ]


def _joined(ranges: Sequence[Latecomer]) -> list[Latecomer]:
    """Neighbours that came at the same A as one."""
    found: list[Latecomer] = []
    for one in sorted(ranges):
        last = found[-1] if found else None
        if last is not None and (last.partition, last.end, last.since) == (
            one.partition,
            one.start,
            one.since,
        ):
            found[-1] = last._replace(end=one.end)
        else:
            found.append(one)
    return found
