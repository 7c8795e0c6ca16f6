"""From a time to a cut, and from a cut to a time, in the catalog.

`cut_at(t)` is per segment the start of the first chunk whose running maximum is at or after t: one
step in an index for each. `time_at(cut)` is the number of the last mark the cut has passed: a
binary search that loads only the marks it looks at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, overload

from sqlalchemy import Connection, Row, func, select

from tidegate import errors
from tidegate.eventtime.instants import Instant, format_instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks import time_index
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.marks.mark import Mark
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.planning.facts import Offsets
from tidegate.store.catalog import streams
from tidegate.store.catalog.schema import chunks, marks, segments
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord


def cut_at(on: Connection, stream: str | StreamRecord, time: Instant) -> Cut:
    """The whole cut that has every row at or after `time` behind it.

    An error when such rows may have been truncated.
    """
    found = streams.get(on, stream) if isinstance(stream, str) else stream
    records = streams.segment_records(on, found.id)
    lineage = Lineage(record.segment for record in records)
    for record in records:
        if record.truncated_time is not None and record.truncated_time >= time:
            asked = f"all rows at or after {format_instant(time)}"
            raise errors.rows_truncated(
                found.name,
                record.name,
                asked,
                record.start,
                cut=first_readable(records, lineage),
            )
    offsets = reaching(on, found.id, records, time)
    ends = {record.name: record.end for record in records}
    return Cut(
        (name, offsets[name]) for name in lineage.frontier(lambda name: offsets[name] == ends[name])
    )


def reaching(
    on: Connection, stream_id: int, records: Iterable[SegmentRecord], time: Instant
) -> dict[str, int]:
    """Of every segment the start of the first chunk that reaches a time, or the segment's end."""
    first = (
        select(chunks.c.start_offset)
        .where(
            chunks.c.stream_id == segments.c.stream_id,
            chunks.c.segment == segments.c.number,
            chunks.c.running_max >= time,
        )
        .order_by(chunks.c.running_max, chunks.c.start_offset)
        .limit(1)
        .scalar_subquery()
    )
    question = select(segments.c.number, first).where(segments.c.stream_id == stream_id)
    starts: dict[int, int | None] = {number: start for number, start in on.execute(question)}

    def offset(record: SegmentRecord) -> int:
        start = starts.get(record.segment.id.number)
        # Of a chunk that is truncated in part the first readable row is the start.
        return record.end if start is None else max(start, record.start)

    return {record.name: offset(record) for record in records}


def time_at(on: Connection, stream: str | StreamRecord, cut: Offsets) -> Known:
    """The lower number of the last mark whose cut lies at or before this one."""
    found = streams.get(on, stream) if isinstance(stream, str) else stream
    lineage = streams.lineage(on, found.id)
    return time_index.time_at(Cut(cut), _Marks(on, found.id), lineage)


def marks_after(on: Connection, stream_id: int, cut: Offsets, lineage: Lineage) -> tuple[Mark, ...]:
    """The last mark that the cut has passed, and all that follow."""
    kept = _Marks(on, stream_id)
    done = time_index.passed(Cut(cut), kept, lineage) if cut else 0
    return tuple(kept[max(done - 1, 0) :])


def first_readable(records: Iterable[SegmentRecord], lineage: Lineage) -> Cut:
    """The whole cut before which everything is truncated."""
    starts = {record.name: record.start for record in records}
    ends = {record.name: record.end for record in records}
    return Cut(
        (name, starts[name]) for name in lineage.frontier(lambda name: starts[name] == ends[name])
    )


def noted(notes: str) -> Known:
    """What a writer has noted so far, from its record."""
    return WriterNotes.from_json(json.loads(notes)).mark.time if notes else UNKNOWN


class _Marks(Sequence[Mark]):
    """The marks of a stream in their order, loaded where they are looked at."""

    def __init__(self, on: Connection, stream_id: int) -> None:
        self._on = on
        self._of_stream = marks.c.stream_id == stream_id
        ends = select(func.min(marks.c.number), func.max(marks.c.number)).where(self._of_stream)
        first, last = on.execute(ends).one()
        self._first: int = 0 if first is None else first
        self._count: int = 0 if last is None else last + 1 - first

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Mark: ...

    @overload
    def __getitem__(self, at: slice) -> list[Mark]: ...

    def __getitem__(self, at: int | slice) -> Mark | list[Mark]:
        if isinstance(at, int):
            (found,) = self._load(range(at, at + 1))
            return found
        return self._load(range(*at.indices(self._count)))

    def _load(self, places: range) -> list[Mark]:
        """Marks side by side. They are numbered without gaps; only the oldest are ever removed."""
        question = (
            select(marks.c.lower, marks.c.upper, marks.c.cut, marks.c.writers)
            .where(
                self._of_stream,
                marks.c.number >= self._first + places.start,
                marks.c.number < self._first + places.stop,
            )
            .order_by(marks.c.number)
        )
        return [_mark(row) for row in self._on.execute(question)]


def _mark(row: Row[Any, Any, Any, Any]) -> Mark:
    cut, writers = json.loads(row.cut), json.loads(row.writers)
    return Mark(row.lower, row.upper, Cut.from_json(cut), frozenset(writers))
