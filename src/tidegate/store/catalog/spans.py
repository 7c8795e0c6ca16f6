"""What a planner asks of a stream: its facts at one moment, and the spans that can hold a time.

`snapshot` is one consistent read. `overlapping` answers about the past, and the answer never
changes, whatever is appended, scaled or compacted meanwhile; where something was truncated that
could belong to it, there is no answer but an error. Spans are columns: no object per chunk. How the
chunks are found, among a million of them, is told in `span_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from sqlalchemy import Connection, select

from tidegate import errors
from tidegate.eventtime.instants import Instant, format_instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.lineage import Lineage
from tidegate.planning.facts import (
    Numbers,
    Offsets,
    Partitions,
    Spans,
    StreamFacts,
    WriterFact,
    flags,
    numbers,
)
from tidegate.store.catalog import streams
from tidegate.store.catalog.schema import writers
from tidegate.store.catalog.span_rows import Ranges, by_offsets, that_can_hold
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord
from tidegate.store.catalog.time_index import cut_at, first_readable, marks_after, noted, time_at

__all__ = ["between", "cut_at", "overlapping", "snapshot", "time_at"]


def snapshot(on: Connection, stream: str | StreamRecord, after: Offsets) -> StreamFacts:
    """A stream at one moment: partitions not wholly before a cut, and what lies behind it.

    The marks begin with the last one that the cut has passed. An empty cut has passed nothing.
    """
    found = streams.get(on, stream) if isinstance(stream, str) else stream
    records = streams.segment_records(on, found.id)
    lineage = Lineage(record.segment for record in records)
    past = lineage.ancestors_of(after) - set(after)
    shown = [record for record in records if record.name not in past]
    ranges = _filled(
        (record, max(after.get(record.name, 0), record.start), record.end) for record in shown
    )
    rows = by_offsets(on, found.id, ranges)
    known = on.execute(
        select(writers.c.name, writers.c.notes)
        .where(writers.c.stream_id == found.id, writers.c.notes_time)
        .order_by(writers.c.name)
    )
    return StreamFacts(
        _partitions(shown, lineage),
        _spans(rows, shown, ranges),
        marks=marks_after(on, found.id, after, lineage),
        writers=tuple(WriterFact(name, noted(notes)) for name, notes in known),
    )


def overlapping(
    on: Connection,
    stream: str | StreamRecord,
    a: Known,
    b: Instant,
    start: Offsets,
    below: Offsets,
) -> Spans:
    """The spans between two cuts that can hold a time in [a, b); UNKNOWN: from the beginning."""
    found = streams.get(on, stream) if isinstance(stream, str) else stream
    records = streams.segment_records(on, found.id)
    lineage = Lineage(record.segment for record in records)
    ranges = between(records, lineage, start, below)
    for record in records:
        if record.segment.id.number in ranges:
            begin = ranges[record.segment.id.number][0]
            if begin < record.start and _may_have_held(record, a, b):
                raise errors.rows_truncated(
                    found.name,
                    record.name,
                    f"times in [{_told(a)}, {format_instant(b)}) from offset {begin}",
                    record.start,
                    cut=first_readable(records, lineage),
                )
    spans = _spans(that_can_hold(on, found.id, ranges, a, b), records, ranges)
    held = spans.timed & (spans.min_time < b)
    return spans.where(held if a is UNKNOWN else held & (spans.max_time >= a))


def between(
    records: Iterable[SegmentRecord], lineage: Lineage, start: Offsets, below: Offsets
) -> Ranges:
    """The offsets of every segment between two cuts, where there are any.

    A segment that a cut leaves out lies wholly before it when one that follows is in it, and
    wholly behind it otherwise.
    """
    begun = lineage.ancestors_of(start)
    complete = lineage.ancestors_of(below)

    def bounds(record: SegmentRecord) -> tuple[SegmentRecord, int, int]:
        end = min(below.get(record.name, record.end if record.name in complete else 0), record.end)
        return record, start.get(record.name, end if record.name in begun else 0), end

    return _filled(map(bounds, records))


# ---- columns of facts ----


def _spans(rows: Numbers, records: Sequence[SegmentRecord], ranges: Ranges) -> Spans:
    """Rows as spans, inside their ranges, by segment in the order of `records` and by offset."""
    size = 1 + max((record.segment.id.number for record in records), default=0)
    place = np.full(size, -1, dtype=np.intp)
    begins, ends = np.zeros((2, size), dtype=np.int64)
    for at, record in enumerate(records):
        place[record.segment.id.number] = at
    for number, (begin, end) in ranges.items():
        begins[number], ends[number] = begin, end
    segment = rows[:, 0]
    start = np.maximum(rows[:, 1], begins[segment])
    stop = np.minimum(rows[:, 2], ends[segment])
    kept = np.flatnonzero((start < stop) & (place[segment] >= 0))
    kept = kept[np.lexsort((start[kept], place[segment[kept]]))]
    inside, whole = stop[kept] - start[kept], rows[kept, 2] - rows[kept, 1]
    return Spans(
        names=tuple(record.name for record in records),
        partition=place[segment[kept]],
        start=start[kept],
        end=stop[kept],
        rows=inside,
        bytes=(rows[kept, 3] * (inside / np.maximum(whole, 1))).astype(np.int64),
        min_time=rows[kept, 4],
        max_time=rows[kept, 5],
        timed=rows[kept, 4] <= rows[kept, 5],
        disorder=rows[kept, 6],
        key_ranges=np.array(
            [(float(r.segment.low), float(r.segment.high)) for r in records], dtype=np.float64
        ).reshape(-1, 2),
    )


def _partitions(records: Sequence[SegmentRecord], lineage: Lineage) -> Partitions:
    return Partitions(
        names=tuple(record.name for record in records),
        start=numbers(record.start for record in records),
        latest=numbers(record.end for record in records),
        sealed=flags(not record.segment.is_open for record in records),
        ended=np.zeros(len(records), dtype=np.bool_),
        low=np.array([float(record.segment.low) for record in records]),
        high=np.array([float(record.segment.high) for record in records]),
        arrived_at=numbers(record.last_commit_at for record in records),
        has_arrival=np.ones(len(records), dtype=np.bool_),
        successors={
            record.name: lineage.successors_of(record.name)
            for record in records
            if not record.segment.is_open
        },
    )


def _filled(bounds: Iterable[tuple[SegmentRecord, int, int]]) -> dict[int, tuple[int, int]]:
    return {record.segment.id.number: (begin, end) for record, begin, end in bounds if begin < end}


def _may_have_held(record: SegmentRecord, a: Known, b: Instant) -> bool:
    """Whether truncated rows of a segment can have had a time in [a, b)."""
    if record.truncated_time is None or record.min_time is None:
        return False
    return record.min_time < b and (a is UNKNOWN or record.truncated_time >= a)


def _told(a: Known) -> str:
    return "the beginning" if a is UNKNOWN else format_instant(a)
