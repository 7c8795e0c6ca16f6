"""Writers as the catalog sees them, for tests of marks: noted times without any rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
from sqlalchemy import Connection, insert, select, update

from tidegate.marks.cut import Cut
from tidegate.marks.mark import Mark
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.writer_mark import WriterMark
from tidegate.store import Store
from tidegate.store.catalog import marks, streams
from tidegate.store.catalog.schema import streams as stream_rows
from tidegate.store.catalog.schema import writers

SCHEMA = pa.schema([("id", pa.int64())])


def note(store: Store, stream: str, writer: str, time: int | None, **position: int) -> None:
    """Register a writer, or have it note a time at a position; bring the stream into schedule."""

    def work(on: Connection) -> None:
        found = streams.get(on, stream)
        here = (writers.c.stream_id == found.id) & (writers.c.name == writer)
        row = on.execute(select(writers).where(here)).one_or_none()
        if row is None:
            notes = WriterNotes(WriterMark(writer))
            values = {"stream_id": found.id, "name": writer, "token": 1, "sequence": 0}
            on.execute(
                insert(writers).values(
                    **values, is_sink=False, version=0, opened_at=0, seen_at=0, notes=""
                )
            )
        else:
            notes = WriterNotes.from_json(json.loads(row.notes))
        if time is not None:
            cut = Cut(
                {name.replace("_", ".").removeprefix("s"): at for name, at in position.items()}
            )
            notes = notes.note(time, cut, streams.lineage(on, found.id))
        text = json.dumps(notes.to_json())
        on.execute(
            update(writers)
            .where(here)
            .values(notes=text, notes_time=True, version=writers.c.version + 1)
        )
        on.execute(update(stream_rows).where(stream_rows.c.id == found.id).values(scheduled=True))

    store.database.write(work)


def say_goodbye(store: Store, stream: str, writer: str) -> None:
    """Let a writer close."""

    def work(on: Connection) -> None:
        here = (writers.c.stream_id == streams.get(on, stream).id) & (writers.c.name == writer)
        notes = WriterNotes.from_json(
            json.loads(on.execute(select(writers.c.notes).where(here)).scalar_one())
        )
        gone = replace(notes, mark=notes.mark.goodbye())
        on.execute(
            update(writers)
            .where(here)
            .values(notes=json.dumps(gone.to_json()), version=writers.c.version + 1)
        )

    store.database.write(work)


def marks_of(store: Store, stream: str) -> list[Mark]:
    """All marks of a stream."""
    return store.database.read(
        lambda on: [m for _, m in marks.after_number(on, streams.get(on, stream).id, -1)]
    )


def is_scheduled(store: Store, stream: str) -> bool:
    """Whether the stream is in the mark schedule."""
    asked = select(stream_rows.c.scheduled).where(stream_rows.c.name == stream)
    return bool(store.database.read(lambda on: on.execute(asked).scalar_one()))
