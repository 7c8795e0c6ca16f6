"""Questions about streams and their segments."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
from sqlalchemy import Connection, Row, delete, insert, select, update

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.marks.lineage import Lineage
from tidegate.marks.segment import Bound, Segment, SegmentId
from tidegate.store.catalog.schema import segments, streams
from tidegate.store.config import Retention, Scaling, StreamConfig

BUCKETS: Final = 64
"""Streams are shared among mark controllers by bucket, a hash of the name."""


@dataclass(frozen=True)
class SegmentRecord:
    """A segment as the catalog has it."""

    segment: Segment
    start: int
    end: int
    bytes: int
    min_time: Instant | None
    max_time: Instant | None
    disorder: int
    truncated_time: Instant | None
    created_at: Instant
    last_commit_at: Instant

    @property
    def name(self) -> str:
        """Its name in cuts."""
        return self.segment.name


@dataclass(frozen=True)
class StreamRecord:
    """A stream as the catalog has it."""

    id: int
    name: str
    config: StreamConfig
    epoch: int
    revision: int
    created_at: Instant
    bucket: int


def bucket_of(name: str) -> int:
    """The bucket of a stream."""
    return crc32(name.encode()) % BUCKETS


def create(on: Connection, name: str, config: StreamConfig, now: Instant) -> StreamRecord:
    """Insert a stream with its first segments."""
    found = on.execute(
        insert(streams)
        .values(
            name=name,
            **_columns(config),
            epoch=0,
            revision=0,
            created_at=now,
            bucket=bucket_of(name),
            scheduled=False,
            generation="",
            cycled_at=0,
        )
        .returning(streams.c.id)
    ).scalar_one()
    _insert_segments(on, found, Lineage.start(config.segments).segments.values(), now)
    return StreamRecord(found, name, config, 0, 0, now, bucket_of(name))


def find(on: Connection, name: str) -> StreamRecord | None:
    """A stream by its name."""
    row = on.execute(select(streams).where(streams.c.name == name)).one_or_none()
    return None if row is None else _record(row)


def get(on: Connection, name: str) -> StreamRecord:
    """A stream by its name; an error that lists what there is, when there is none."""
    found = find(on, name)
    if found is None:
        raise errors.unknown_stream(name, names(on))
    return found


def names(on: Connection) -> list[str]:
    """All streams, in order."""
    return list(on.execute(select(streams.c.name).order_by(streams.c.name)).scalars())


def change(on: Connection, stream: StreamRecord, config: StreamConfig) -> None:
    """Replace a stream's declaration; the segments stay."""
    on.execute(
        update(streams)
        .where(streams.c.id == stream.id)
        .values(**_columns(config), revision=streams.c.revision + 1)
    )


def remove(on: Connection, stream: StreamRecord) -> None:
    """Delete a stream and all that belongs to it."""
    on.execute(delete(streams).where(streams.c.id == stream.id))


# ---- segments ----


def segment_records(on: Connection, stream_id: int) -> list[SegmentRecord]:
    """All segments of a stream, by number."""
    rows = on.execute(
        select(segments).where(segments.c.stream_id == stream_id).order_by(segments.c.number)
    )
    return [_segment(row) for row in rows]


def lineage(on: Connection, stream_id: int) -> Lineage:
    """Who follows whom in a stream."""
    return Lineage(record.segment for record in segment_records(on, stream_id))


def scale(
    on: Connection,
    stream: StreamRecord,
    sealed: Sequence[str],
    opened: Sequence[tuple[Bound, Bound]],
    now: Instant,
) -> Lineage:
    """Seal segments and open others over the same keys, in a new epoch.

    The stream's row is locked first, so that scales come one after the other; sealing takes the row
    of each segment, so that whoever appends to it either comes before or finds it sealed.
    """
    moved = on.execute(
        update(streams)
        .where(streams.c.id == stream.id)
        .values(epoch=streams.c.epoch + 1, revision=streams.c.revision + 1)
    )
    if moved.rowcount != 1:
        raise errors.unknown_stream(stream.name, names(on))
    before = lineage(on, stream.id)
    after = before.scale(sealed, opened)
    for name in sorted(sealed, key=lambda n: SegmentId.parse(n).number):
        on.execute(
            update(segments)
            .where(
                segments.c.stream_id == stream.id,
                segments.c.number == SegmentId.parse(name).number,
                segments.c.sealed_in.is_(None),
            )
            .values(sealed_in=after.epoch)
        )
    fresh = [s for name, s in after.segments.items() if name not in before.segments]
    _insert_segments(on, stream.id, fresh, now)
    return after


def _insert_segments(on: Connection, stream_id: int, fresh: Any, now: Instant) -> None:
    on.execute(
        insert(segments),
        [
            {
                "stream_id": stream_id,
                "number": segment.id.number,
                "epoch": segment.id.epoch,
                "low": str(segment.low),
                "high": str(segment.high),
                "sealed_in": None,
                "start_offset": 0,
                "next_offset": 0,
                "bytes": 0,
                "disorder": 0,
                "created_at": now,
                "last_commit_at": now,
            }
            for segment in fresh
        ],
    )


# ---- rows to values and back ----


def _columns(config: StreamConfig) -> dict[str, Any]:
    return {
        "arrow_schema": base64.b64encode(config.schema.serialize().to_pybytes()).decode(),
        "event_column": config.event_column,
        "event_type": config.event_type,
        "routing_key": json.dumps(list(config.routing_key)),
        "scaling": json.dumps(config.scaling.to_json()),
        "retention": json.dumps(config.retention.to_json()),
        "mark_timeout": micros(config.mark_timeout),
        "max_future": None if config.max_future is None else micros(config.max_future),
    }


def _record(row: Row[Any]) -> StreamRecord:
    future = row.max_future
    config = StreamConfig(
        schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(row.arrow_schema))),
        event_column=row.event_column,
        event_type=row.event_type,
        routing_key=tuple(json.loads(row.routing_key)),
        scaling=Scaling.from_json(json.loads(row.scaling)),
        retention=Retention.from_json(json.loads(row.retention)),
        mark_timeout=timedelta(microseconds=row.mark_timeout),
        max_future=None if future is None else timedelta(microseconds=future),
    )
    return StreamRecord(
        row.id, row.name, config, row.epoch, row.revision, row.created_at, row.bucket
    )


def _segment(row: Row[Any]) -> SegmentRecord:
    return SegmentRecord(
        segment=Segment(
            SegmentId(row.epoch, row.number), Fraction(row.low), Fraction(row.high), row.sealed_in
        ),
        start=row.start_offset,
        end=row.next_offset,
        bytes=row.bytes,
        min_time=row.min_time,
        max_time=row.max_time,
        disorder=row.disorder,
        truncated_time=row.truncated_time,
        created_at=row.created_at,
        last_commit_at=row.last_commit_at,
    )
