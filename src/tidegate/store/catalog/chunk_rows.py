"""Chunks one by one: which file holds which offsets, and when its rows were committed.

Plans name offsets, never files: whoever reads asks here which files hold them now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from tidegate.eventtime.instants import Instant
from tidegate.store.catalog.schema import chunks, commit_runs


@dataclass(frozen=True)
class ChunkRow:
    """A chunk: the rows `skip` to `skip + rows` of a file, as offsets [start, end)."""

    id: int
    segment: int
    start: int
    end: int
    skip: int
    bytes: int
    min_time: Instant | None
    max_time: Instant | None
    running_max: Instant | None
    disorder: int
    path: str
    committed_at: Instant

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.end - self.start


_COLUMNS = (
    chunks.c.id,
    chunks.c.segment,
    chunks.c.start_offset,
    chunks.c.end_offset,
    chunks.c.skip,
    chunks.c.bytes,
    chunks.c.min_time,
    chunks.c.max_time,
    chunks.c.running_max,
    chunks.c.disorder,
    chunks.c.path,
    chunks.c.committed_at,
)


def holding(stream_id: int, segment: int, start: int, end: int) -> tuple[ColumnElement[bool], ...]:
    """The condition that a chunk has rows in [start, end): one range of the index on the end.

    Chunks lie side by side, so the last one is the first that ends at or behind `end`.
    """
    other = chunks.alias()
    last = (
        select(func.min(other.c.end_offset))
        .where(
            other.c.stream_id == stream_id, other.c.segment == segment, other.c.end_offset >= end
        )
        .scalar_subquery()
    )
    return (
        chunks.c.stream_id == stream_id,
        chunks.c.segment == segment,
        chunks.c.end_offset > start,
        chunks.c.end_offset <= func.coalesce(last, end),
        chunks.c.start_offset < end,
    )


def between(
    on: Connection, stream_id: int, segment: int, start: int, end: int, *, most: int | None = None
) -> list[ChunkRow]:
    """The chunks with rows in [start, end), by offset; the first `most` of them."""
    question = (
        select(*_COLUMNS)
        .where(*holding(stream_id, segment, start, end))
        .order_by(chunks.c.end_offset)
        .limit(most)
    )
    return [_chunk(row) for row in on.execute(question)]


def short(
    on: Connection, stream_id: int, segment: int, start: int, *, rows: int, most: int
) -> list[ChunkRow]:
    """The first chunks from an offset on that have at most so many rows, by offset."""
    question = (
        select(*_COLUMNS)
        .where(
            chunks.c.stream_id == stream_id,
            chunks.c.segment == segment,
            chunks.c.start_offset >= start,
            chunks.c.end_offset - chunks.c.start_offset <= rows,
        )
        .order_by(chunks.c.start_offset)
        .limit(most)
    )
    return [_chunk(row) for row in on.execute(question)]


def up_to(on: Connection, stream_id: int, segment: int, end: int) -> list[ChunkRow]:
    """The chunks that lie wholly before an offset, by offset."""
    question = (
        select(*_COLUMNS)
        .where(
            chunks.c.stream_id == stream_id,
            chunks.c.segment == segment,
            chunks.c.end_offset <= end,
        )
        .order_by(chunks.c.end_offset)
    )
    return [_chunk(row) for row in on.execute(question)]


def runs(
    on: Connection, stream_id: int, segment: int, start: int, end: int
) -> list[tuple[int, Instant]]:
    """(first offset, commit instant) of the runs of rows that make up [start, end)."""
    of_segment = (commit_runs.c.stream_id == stream_id, commit_runs.c.segment == segment)
    first = (
        select(func.max(commit_runs.c.start_offset))
        .where(*of_segment, commit_runs.c.start_offset <= start)
        .scalar_subquery()
    )
    question = (
        select(commit_runs.c.start_offset, commit_runs.c.committed_at)
        .where(
            *of_segment,
            commit_runs.c.start_offset >= func.coalesce(first, 0),
            commit_runs.c.start_offset < end,
        )
        .order_by(commit_runs.c.start_offset)
    )
    return [_run(row) for row in on.execute(question)]


def _chunk(row: Any) -> ChunkRow:
    return ChunkRow(*row)


def _run(row: Row[Any, Any]) -> tuple[int, Instant]:
    return row[0], row[1]
