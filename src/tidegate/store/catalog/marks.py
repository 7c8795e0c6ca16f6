"""Questions about marks, and about the state of the cycle that makes them.

Marks are numbered from 0 without gaps and are only ever appended, one after the number that was
last: who lost the race for a number has changed nothing. The state of the cycle and the mark it
leads to are written in one transaction, if the state is still the one that was seen.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, exists, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tidegate.eventtime.instants import Instant
from tidegate.marks.cut import Cut
from tidegate.marks.generation import Generation
from tidegate.marks.lineage import Lineage
from tidegate.marks.mark import Mark
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.writer_mark import WriterMark
from tidegate.store.catalog import streams as stream_questions
from tidegate.store.catalog import time_index
from tidegate.store.catalog.schema import marks, streams, writers
from tidegate.store.catalog.streams import StreamRecord

NONE_YET = -1
"""The last number of a stream without a mark."""


# ---- marks ----


def last(on: Connection, stream_id: int) -> tuple[int, Mark | None]:
    """The last mark with its number."""
    question = select(marks).where(marks.c.stream_id == stream_id)
    row = on.execute(question.order_by(marks.c.number.desc()).limit(1)).one_or_none()
    return (NONE_YET, None) if row is None else (row.number, _mark(row))


def append(on: Connection, stream_id: int, mark: Mark, *, after: int, now: Instant) -> bool:
    """Append a mark if the last number is `after`; return whether it was."""
    newest = select(func.coalesce(func.max(marks.c.number), NONE_YET)).where(
        marks.c.stream_id == stream_id
    )
    if on.execute(newest).scalar_one() != after:
        return False
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    added = on.execute(
        dialect.insert(marks)
        .values(
            stream_id=stream_id,
            number=after + 1,
            lower=mark.lower,
            upper=mark.upper,
            cut=json.dumps(mark.cut.to_json()),
            writers=json.dumps(sorted(mark.writers)),
            made_at=now,
        )
        # The key decides between two who both saw `after`.
        .on_conflict_do_nothing()
        .returning(marks.c.number)
    )
    return added.one_or_none() is not None


def after_number(
    on: Connection, stream_id: int, number: int, *, most: int | None = None
) -> list[tuple[int, Mark]]:
    """The marks behind a number, in their order."""
    question = (
        select(marks)
        .where(marks.c.stream_id == stream_id, marks.c.number > number)
        .order_by(marks.c.number)
        .limit(most)
    )
    return [(row.number, _mark(row)) for row in on.execute(question)]


def after_cut(on: Connection, stream_id: int, cut: Cut, lineage: Lineage) -> tuple[Mark, ...]:
    """The last mark that the cut has passed, and all that follow."""
    return time_index.marks_after(on, stream_id, cut, lineage)


# ---- the cycle's state ----


@dataclass(frozen=True)
class Schedule:
    """All that a cycle decides on, as it was at one moment."""

    stream: StreamRecord
    generation: Generation
    seen: str
    """The generation as it was written: what must still be there."""
    cycled_at: Instant
    last_number: int
    lineage: Lineage
    writers: tuple[WriterMark, ...]
    versions: Mapping[str, int]


def due_streams(on: Connection, buckets: Collection[int]) -> list[str]:
    """The streams of some buckets that have a mark cycle to run."""
    # The flag may lag behind a writer that has just come; the writer itself does not.
    known = exists().where(writers.c.stream_id == streams.c.id, writers.c.notes_time)
    question = (
        select(streams.c.name)
        .where(streams.c.bucket.in_(buckets), or_(streams.c.scheduled, known))
        .order_by(streams.c.name)
    )
    return list(on.execute(question).scalars())


def in_buckets(on: Connection, buckets: Collection[int]) -> list[StreamRecord]:
    """All streams of some buckets."""
    question = select(streams.c.name).where(streams.c.bucket.in_(buckets))
    names = on.execute(question.order_by(streams.c.name)).scalars().all()
    found = (stream_questions.find(on, name) for name in names)
    return [stream for stream in found if stream is not None]


class Pulse(NamedTuple):
    """What must change before a cycle can be of use, but for time that passes."""

    scheduled: bool
    writers: int
    """Known ones."""
    versions: int
    cycled_at: Instant

    @property
    def at_rest(self) -> bool:
        """There is no cycle to run."""
        return not (self.scheduled or self.writers)


def pulse(on: Connection, name: str) -> Pulse:
    """The pulse of a stream; at rest where there is none by this name."""
    known = (writers.c.stream_id == streams.c.id) & writers.c.notes_time
    question = (
        select(
            streams.c.scheduled,
            func.count(writers.c.name),
            func.coalesce(func.sum(writers.c.version), 0),
            streams.c.cycled_at,
        )
        .outerjoin(writers, known)
        .where(streams.c.name == name)
        .group_by(streams.c.id)
    )
    row = on.execute(question).one_or_none()
    return Pulse(False, 0, 0, 0) if row is None else Pulse(*row)


def last_cycle(on: Connection, name: str) -> tuple[int, Instant] | None:
    """The bucket of a stream and when its last cycle ran."""
    question = select(streams.c.bucket, streams.c.cycled_at).where(streams.c.name == name)
    row = on.execute(question).one_or_none()
    return None if row is None else (row.bucket, row.cycled_at)


def schedule(on: Connection, name: str) -> Schedule | None:
    """What a cycle of a stream has to go by; none when the stream is gone."""
    stream = stream_questions.find(on, name)
    if stream is None:
        return None
    state = select(streams.c.generation, streams.c.cycled_at).where(streams.c.id == stream.id)
    text, cycled_at = on.execute(state).one()
    known = on.execute(
        select(writers.c.name, writers.c.notes, writers.c.version, writers.c.is_sink)
        .where(writers.c.stream_id == stream.id, writers.c.notes_time)
        .order_by(writers.c.name)
    ).all()
    number, _ = last(on, stream.id)
    return Schedule(
        stream=stream,
        generation=Generation.from_json(json.loads(text)) if text else Generation(),
        seen=text,
        cycled_at=cycled_at,
        last_number=number,
        lineage=stream_questions.lineage(on, stream.id),
        writers=tuple(_writer(row) for row in known),
        versions={row.name: row.version for row in known},
    )


def save(on: Connection, seen: Schedule, state: Generation, now: Instant) -> bool:
    """Replace the state of a cycle, if nobody else has; return whether it was.

    It takes the stream's row, so that writers who come to note wait until the cycle has ended.
    """
    moved = on.execute(
        update(streams)
        .where(
            streams.c.id == seen.stream.id,
            streams.c.generation == seen.seen,
            streams.c.cycled_at == seen.cycled_at,
        )
        .values(generation=json.dumps(state.to_json()), cycled_at=now)
    )
    return moved.rowcount == 1


def drop_writer(on: Connection, stream_id: int, name: str, version: int) -> bool:
    """Take a writer out of the known ones, if it is still as it was seen.

    Its row stays: how many of its rows are durable must outlive any silence.
    """
    moved = on.execute(
        update(writers)
        .where(
            writers.c.stream_id == stream_id,
            writers.c.name == name,
            writers.c.version == version,
        )
        .values(notes_time=False, version=version + 1)
    )
    return moved.rowcount == 1


def unschedule(on: Connection, stream_id: int) -> bool:
    """Take a stream out of the schedule, if no known writer is left; return whether it was in."""
    known: ColumnElement[bool] = exists().where(
        writers.c.stream_id == stream_id, writers.c.notes_time
    )
    moved = on.execute(
        update(streams)
        .where(streams.c.id == stream_id, streams.c.scheduled, ~known)
        .values(scheduled=False)
    )
    return moved.rowcount == 1


def _writer(row: Any) -> WriterMark:
    if not row.notes:
        return WriterMark(row.name, sink=row.is_sink)
    return WriterNotes.from_json(json.loads(row.notes)).mark


def _mark(row: Row[Any]) -> Mark:
    cut, names = json.loads(row.cut), json.loads(row.writers)
    return Mark(row.lower, row.upper, Cut.from_json(cut), frozenset(names))
