"""Retention: what is truncated, and what is remembered of it.

Truncation moves the first readable offset of segments, never past what a running job holds nor into
a chunk that one holds a part of, and a segment loses rows only when everything it follows is gone.
The catalog remembers the largest time that was truncated: asking for it, by offset or by time, is
an error, so that no window is ever silently partial. Age counts from the commit of a row, not from
its event time: history that is loaded today is young.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select, update

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.planning.facts import Offsets
from tidegate.store.catalog import chunk_rows, holds, removal, streams
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.catalog.schema import segments
from tidegate.store.catalog.spans import between
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord
from tidegate.store.catalog.time_index import first_readable, reaching

if TYPE_CHECKING:
    from tidegate.store.store import Store

_PAGE = 200


@dataclass(frozen=True)
class Truncation:
    """What a truncation did: the first readable cut after it, and who held it back."""

    stream: str
    cut: Cut
    rows: int
    bytes: int
    held_by: tuple[str, ...]


def truncate(
    store: Store,
    stream: str,
    *,
    before: Offsets | None = None,
    time: Instant | None = None,
    age: timedelta | None = None,
    size: int | None = None,
) -> Truncation:
    """Truncate a stream before a cut, or as far as one of the others allows.

    `time`: only rows before it go, whole chunks at a time. `age`: chunks committed longer ago.
    `size`: the oldest chunks, until what is left has at most so many bytes.
    """
    asked = {"before": before, "time": time, "age": age, "size": size}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise errors.truncation_unclear(given)
    now = store.clock()

    def work(on: Connection) -> Truncation:
        found = streams.get(on, stream)
        holds.lock(on, found.id)
        records = streams.segment_records(on, found.id)
        lineage = Lineage(record.segment for record in records)
        if before is not None:
            ranges = between(records, lineage, {}, before)
            wanted = {r.name: ranges.get(r.segment.id.number, (0, 0))[1] for r in records}
        elif time is not None:
            wanted = reaching(on, found.id, records, time)
        elif age is not None:
            wanted = _before_instant(on, found, records, now - micros(age))
        else:
            wanted = _beyond_size(on, found, records, size or 0)
        return _apply(on, found, records, lineage, wanted, now)

    return store.database.write(work)


def _before_instant(
    on: Connection, stream: StreamRecord, records: list[SegmentRecord], limit: Instant
) -> dict[str, int]:
    """Everything in chunks committed before an instant."""
    wanted: dict[int, int] = {}
    for chunk in _oldest(on, stream, records):
        if chunk.committed_at >= limit:
            break
        wanted[chunk.segment] = chunk.end
    return {r.name: wanted.get(r.segment.id.number, 0) for r in records}


def _beyond_size(
    on: Connection, stream: StreamRecord, records: list[SegmentRecord], size: int
) -> dict[str, int]:
    """The oldest chunks, as many as are too much."""
    excess = sum(record.bytes for record in records) - size
    wanted: dict[int, int] = {}
    for chunk in _oldest(on, stream, records):
        if excess <= 0:
            break
        wanted[chunk.segment] = chunk.end
        excess -= chunk.bytes
    return {r.name: wanted.get(r.segment.id.number, 0) for r in records}


def _oldest(
    on: Connection, stream: StreamRecord, records: list[SegmentRecord]
) -> Iterator[ChunkRow]:
    """The chunks of all segments in the order of their commits, looked up as they are needed."""

    def of(record: SegmentRecord) -> Iterator[ChunkRow]:
        at = record.start
        while at < record.end:
            number = record.segment.id.number
            page = chunk_rows.between(on, stream.id, number, at, record.end, most=_PAGE)
            if not page:
                return
            yield from page
            at = page[-1].end

    return heapq.merge(
        *map(of, records), key=lambda chunk: (chunk.committed_at, chunk.segment, chunk.start)
    )


def _apply(
    on: Connection,
    stream: StreamRecord,
    records: list[SegmentRecord],
    lineage: Lineage,
    wanted: Mapping[str, int],
    now: Instant,
) -> Truncation:
    limits, holders = _held_back(on, stream, records, lineage, wanted)
    bounds: dict[str, int] = {}
    rows = size = 0
    for record in sorted(records, key=lambda record: record.segment.id):
        bound = max(record.start, min(wanted[record.name], limits[record.name], record.end))
        ends = {r.name: r.end for r in records}
        if any(bounds[name] < ends[name] for name in lineage.predecessors_of(record.name)):
            bound = record.start
        bounds[record.name] = bound
    for record in sorted(records, key=lambda record: record.segment.id.number):
        name = record.name
        if bounds[name] > record.start:
            gone = _truncate_segment(on, stream.id, record, bounds[name], limits[name], now)
            rows, size = rows + gone[0], size + gone[1]
    after = streams.segment_records(on, stream.id)
    return Truncation(stream.name, first_readable(after, lineage), rows, size, holders)


def _held_back(
    on: Connection,
    stream: StreamRecord,
    records: list[SegmentRecord],
    lineage: Lineage,
    wanted: Mapping[str, int],
) -> tuple[dict[str, int], tuple[str, ...]]:
    """How far each segment may be truncated, and whose holds stop what was wanted."""
    limits = {record.name: record.end for record in records}
    stopping = []
    for holder, cut in holds.held(on, stream.id).items():
        passed = lineage.ancestors_of(cut)
        stops = False
        for record in records:
            name = record.name
            limit = cut.get(name, record.end if name in passed else 0)
            stops = stops or max(limit, record.start) < min(wanted[name], record.end)
            limits[name] = min(limits[name], limit)
        if stops:
            stopping.append(holder)
    return limits, tuple(stopping)


def _truncate_segment(
    on: Connection, stream_id: int, record: SegmentRecord, bound: int, limit: int, now: Instant
) -> tuple[int, int]:
    """Move the first readable offset of a segment; return the rows and bytes that went with it."""
    number = record.segment.id.number
    of_segment = (segments.c.stream_id == stream_id, segments.c.number == number)
    # The lock under which chunks are published, compacted and removed.
    on.execute(select(segments.c.number).where(*of_segment).with_for_update())
    around = chunk_rows.between(on, stream_id, number, bound - 1, bound)
    # Of a chunk that stays for its other rows the times are not known apart: all count as gone. So
    # one that somebody holds a part of, since it was compacted, stays whole: that part is there.
    if around and limit < around[0].end:
        bound, around = max(record.start, around[0].start), []
    if bound == record.start:
        return 0, 0
    on.execute(
        update(segments)
        .where(*of_segment, segments.c.start_offset < bound)
        .values(start_offset=bound)
    )
    gone = chunk_rows.up_to(on, stream_id, number, bound)
    times = [chunk.max_time for chunk in [*gone, *around] if chunk.max_time is not None]
    if record.truncated_time is not None:
        times.append(record.truncated_time)
    size = sum(chunk.bytes for chunk in gone)
    on.execute(
        update(segments)
        .where(*of_segment)
        .values(bytes=segments.c.bytes - size, truncated_time=max(times, default=None))
    )
    removal.remove(on, gone, now)
    removal.forget_runs(on, stream_id, number, bound)
    return bound - record.start, size
