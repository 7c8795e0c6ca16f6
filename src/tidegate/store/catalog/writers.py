"""Questions about writers: who has opened an id, how many of its rows are durable, what it noted.

The fence is a token that every open raises. Whatever a writer changes begins with a conditional
update of its row, by token; so of two processes with one id the later one writes, and the earlier
one finds out. The row stays locked until the transaction ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.writer_mark import WriterMark
from tidegate.store.catalog import streams
from tidegate.store.catalog.schema import streams as stream_rows
from tidegate.store.catalog.schema import writers

ANONYMOUS: Final = "_anonymous."
"""How the names of writers without an id begin: a row of their own makes their flushes, too, safe
to repeat after a lost answer."""


@dataclass(frozen=True)
class WriterRow:
    """A writer as the catalog has it; its row is locked by whoever holds this."""

    stream_id: int
    name: str
    token: int
    sequence: int
    notes_time: bool
    is_sink: bool
    notes: WriterNotes
    version: int


def open_writer(
    on: Connection, stream_id: int, name: str, *, notes_time: bool, sink: bool, now: Instant
) -> WriterRow:
    """Take an id over from whoever had it; raise its token, keep all it has done."""
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    on.execute(
        dialect.insert(writers)
        .values(
            stream_id=stream_id,
            name=name,
            token=1,
            sequence=0,
            notes_time=notes_time,
            is_sink=sink,
            notes="",
            version=0,
            opened_at=now,
            seen_at=now,
        )
        .on_conflict_do_update(
            index_elements=[writers.c.stream_id, writers.c.name],
            set_={"token": writers.c.token + 1, "opened_at": now, "seen_at": now},
        )
    )
    found = look(on, stream_id, name)
    assert found is not None
    if not notes_time:
        return found
    mark = replace(found.notes.mark, alive=True, sink=sink or found.notes.mark.sink)
    return put(on, found, replace(found.notes, mark=mark), notes_time=True, sink=mark.sink)


def add_anonymous(
    on: Connection, stream_id: int, name: str, sequence: int, now: Instant, forget: Instant
) -> None:
    """A row for a writer without an id; those not seen since `forget` are gone for good."""
    on.execute(
        delete(writers).where(
            writers.c.stream_id == stream_id,
            writers.c.name.startswith(ANONYMOUS, autoescape=True),
            writers.c.seen_at < forget,
        )
    )
    on.execute(
        insert(writers).values(
            stream_id=stream_id,
            name=name,
            token=1,
            sequence=sequence,
            notes_time=False,
            is_sink=False,
            notes="",
            version=0,
            opened_at=now,
            seen_at=now,
        )
    )


def look(on: Connection, stream_id: int, name: str) -> WriterRow | None:
    """A writer's row, locked."""
    row = on.execute(
        select(writers)
        .where(writers.c.stream_id == stream_id, writers.c.name == name)
        .with_for_update()
    ).one_or_none()
    return None if row is None else _row(row)


def hold(on: Connection, stream_id: int, name: str, token: int, now: Instant) -> WriterRow:
    """Lock the row of a writer that has not been fenced; it is an error when it has."""
    moved = on.execute(
        update(writers)
        .where(writers.c.stream_id == stream_id, writers.c.name == name, writers.c.token == token)
        .values(seen_at=now)
    )
    found = look(on, stream_id, name) if moved.rowcount == 1 else None
    if found is None:
        raise errors.writer_fenced(name, token)
    return found


def advance(on: Connection, writer: WriterRow, sequence: int) -> bool:
    """Count rows as durable; return whether that was so already when it was called."""
    if sequence <= writer.sequence:
        return False
    moved = on.execute(
        update(writers)
        .where(
            writers.c.stream_id == writer.stream_id,
            writers.c.name == writer.name,
            writers.c.token == writer.token,
            writers.c.sequence == writer.sequence,
        )
        .values(sequence=sequence)
    )
    if moved.rowcount != 1:
        raise errors.writer_fenced(writer.name, writer.token)
    return True


def put(
    on: Connection,
    writer: WriterRow,
    notes: WriterNotes,
    *,
    notes_time: bool | None = None,
    sink: bool | None = None,
) -> WriterRow:
    """Replace a writer's notes, if they are still those that were seen."""
    after = replace(
        writer,
        notes=notes,
        version=writer.version + 1,
        notes_time=writer.notes_time if notes_time is None else notes_time,
        is_sink=writer.is_sink if sink is None else sink,
    )
    moved = on.execute(
        update(writers)
        .where(
            writers.c.stream_id == writer.stream_id,
            writers.c.name == writer.name,
            writers.c.token == writer.token,
            writers.c.version == writer.version,
        )
        .values(
            notes=json.dumps(notes.to_json()),
            version=after.version,
            notes_time=after.notes_time,
            is_sink=after.is_sink,
        )
    )
    if moved.rowcount != 1:
        raise errors.writer_fenced(writer.name, writer.token)
    return after


def remove(on: Connection, stream_id: int, name: str) -> None:
    """Forget a writer."""
    on.execute(delete(writers).where(writers.c.stream_id == stream_id, writers.c.name == name))


def schedule(on: Connection, stream_id: int) -> None:
    """Have the mark cycle look at a stream; comes first in a transaction that notes time.

    The stream's row is shared with others who note, but not with a cycle under way: that one would
    not see the note, and might take the stream out of the schedule.
    """
    scheduled = on.execute(
        select(stream_rows.c.scheduled)
        .where(stream_rows.c.id == stream_id)
        .with_for_update(read=True)
    ).scalar_one_or_none()
    if scheduled is False:
        on.execute(update(stream_rows).where(stream_rows.c.id == stream_id).values(scheduled=True))


def position(on: Connection, stream_id: int) -> tuple[Cut, Lineage]:
    """Where a writer stands that holds its row: all of its rows lie before this cut.

    It is the end of the log at this moment, a whole cut. Taking only the writer's own segments
    would be a little earlier, and would have to be remembered over crashes.
    """
    records = streams.segment_records(on, stream_id)
    lineage = Lineage(record.segment for record in records)
    return Cut({r.name: r.end for r in records if r.segment.is_open}), lineage


def _row(row: Any) -> WriterRow:
    notes = (
        WriterNotes.from_json(json.loads(row.notes))
        if row.notes
        else WriterNotes(WriterMark(row.name, sink=row.is_sink))
    )
    return WriterRow(
        row.stream_id,
        row.name,
        row.token,
        row.sequence,
        row.notes_time,
        row.is_sink,
        notes,
        row.version,
    )
