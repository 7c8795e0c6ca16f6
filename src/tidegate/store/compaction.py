"""Compaction: small chunks that are neighbours become one, and no offset changes its row.

Rows keep their order, their times and their commit instants; readers, writers, truncation and the
replay of an old plan go on beside it. The change is one transaction that happens only if the old
chunks are still there; their files live on for a grace period.

The rule against read amplification: a joined chunk has at most `MOST_ROWS`, so that its row groups
are no larger than those of its parts; and its length in time is at most twice that of its longest
part, unless all of it fits one row group, which is the least that is ever read.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlalchemy import Connection, insert, select, update

from tidegate.errors import TidegateError
from tidegate.store.catalog import chunk_rows, intents, removal
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.catalog.schema import chunks, segments
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord
from tidegate.store.chunk_file import EVENT_TIME, GROUPS, SMALLEST_GROUP, encode_chunk
from tidegate.store.reading import read

if TYPE_CHECKING:
    from tidegate.store.store import Store

MOST_ROWS: Final = GROUPS * SMALLEST_GROUP
"""A chunk of up to so many rows has row groups of the smallest size."""
MOST_BYTES: Final = 64 * 2**20
_PAGE: Final = 1_000


def compact(store: Store, stream: str, *, most: int | None = None) -> tuple[int, list[str]]:
    """Join neighbours, at most so many groups; return how many chunks went, and what failed.

    One call joins each chunk at most once; called again, it goes on from what it made.
    """
    found = store.describe(stream)
    joined, failed, groups = 0, list[str](), 0
    for record in store.segments(stream):
        for group in _groups(store, found, record):
            if most is not None and groups >= most:
                return joined, failed
            try:
                joined += len(group) if _join(store, found, record, group) else 0
            except TidegateError as failure:
                # A chunk that cannot be read stays as it is; the others go on.
                failed.append(str(failure))
            groups += 1
    return joined, failed


def _groups(store: Store, stream: StreamRecord, record: SegmentRecord) -> Iterator[list[ChunkRow]]:
    """Neighbours that may be joined, by offset."""
    number, at = record.segment.id.number, record.start
    group: list[ChunkRow] = []

    def page(on: Connection) -> list[ChunkRow]:
        return chunk_rows.short(on, stream.id, number, at, rows=MOST_ROWS // 2, most=_PAGE)

    while found := store.database.read(page):
        for chunk in found:
            if group and not may_join([*group, chunk]):
                if len(group) > 1:
                    yield group
                group = []
            group.append(chunk)
        at = found[-1].end
    if len(group) > 1:
        yield group


def may_join(group: list[ChunkRow]) -> bool:
    """Whether one chunk may take the place of these, after the rule above."""
    if group[-2].end != group[-1].start:
        return False
    rows = sum(chunk.rows for chunk in group)
    if rows > MOST_ROWS or sum(chunk.bytes for chunk in group) > MOST_BYTES:
        return False
    lows = [chunk.min_time for chunk in group if chunk.min_time is not None]
    highs = [chunk.max_time for chunk in group if chunk.max_time is not None]
    if rows <= SMALLEST_GROUP or not lows:
        return True
    longest = max(high - low for low, high in zip(lows, highs, strict=True))
    return max(highs) - min(lows) <= 2 * longest


def _join(store: Store, stream: StreamRecord, record: SegmentRecord, group: list[ChunkRow]) -> bool:
    """Write the joined file and put it in the place of its parts; False if they have changed."""
    first, last = group[0], group[-1]
    timed = stream.config.event_column is not None
    batches = read(
        store,
        stream.name,
        record.name,
        first.start,
        last.end,
        columns=stream.config.schema.names,
        system_columns=(EVENT_TIME,) if timed else (),
    )
    content, stats = encode_chunk(pa.Table.from_batches(batches))
    path = f"{stream.name}/{record.name}/{uuid.uuid4().hex}.parquet"
    now = store.clock()
    store.database.write(lambda on: intents.announce(on, [path], now))
    store.files.write(path, content)
    done = store.database.write(
        lambda on: _replace(on, stream.id, group, path, stats.bytes, store.clock())
    )
    if not done:
        # Nobody has seen the file.
        store.database.write(lambda on: intents.withdraw(on, [path]))
        store.files.delete(path)
    return done


def _replace(
    on: Connection, stream_id: int, group: list[ChunkRow], path: str, size: int, now: int
) -> bool:
    first, last = group[0], group[-1]
    of_segment = (segments.c.stream_id == stream_id, segments.c.number == first.segment)
    locked = on.execute(select(segments.c.start_offset).where(*of_segment).with_for_update())
    start = locked.scalar()
    there = chunk_rows.between(on, stream_id, first.segment, first.start, last.end)
    if len(there) == 1 and there[0].path == path:
        return True  # the answer to an earlier attempt was lost
    if start is None or start > first.start or there != group:
        return False
    if not intents.withdraw(on, [path]):
        return False  # the upload took so long that its announcement expired: the sweep may come
    removal.remove(on, group, now)
    on.execute(insert(chunks).values(_joined(stream_id, group, path, size)))
    old = sum(chunk.bytes for chunk in group)
    on.execute(update(segments).where(*of_segment).values(bytes=segments.c.bytes + (size - old)))
    return True


def _joined(stream_id: int, group: list[ChunkRow], path: str, size: int) -> dict[str, Any]:
    lows = [chunk.min_time for chunk in group if chunk.min_time is not None]
    highs = [chunk.max_time for chunk in group if chunk.max_time is not None]
    low, high = min(lows, default=None), max(highs, default=None)
    return {
        "stream_id": stream_id,
        "segment": group[0].segment,
        "start_offset": group[0].start,
        "end_offset": group[-1].end,
        "skip": 0,
        "bytes": size,
        "min_time": low,
        "max_time": high,
        "running_max": group[-1].running_max,
        "disorder": max(chunk.disorder for chunk in group),
        "width_class": 0 if low is None or high is None else (high - low).bit_length(),
        "path": path,
        "committed_at": group[-1].committed_at,
    }
