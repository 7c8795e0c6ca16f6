"""Questions about batches: which one of a streaming query a writer has committed last.

A query has a name that its checkpoint keeps, and counts its batches. The next batch is one with a
higher number; the last one again is a replay, and changes nothing. Anything else is another
history: a deleted checkpoint, one restored from yesterday, or two queries with one writer's id.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.store.catalog.schema import writer_batches


@dataclass(frozen=True)
class Batch:
    """A batch of a streaming query."""

    query: str
    number: int


def advance(on: Connection, stream_id: int, writer: str, batch: Batch, now: Instant) -> bool:
    """Move a writer to its next batch; False: this one is committed already.

    The caller holds the writer's row.
    """
    of_writer = (writer_batches.c.stream_id == stream_id, writer_batches.c.writer == writer)
    found = on.execute(select(writer_batches).where(*of_writer)).one_or_none()
    values = {"query": batch.query, "batch": batch.number, "committed_at": now}
    if found is None:
        on.execute(insert(writer_batches).values(stream_id=stream_id, writer=writer, **values))
        return True
    if found.query != batch.query or found.batch > batch.number:
        raise errors.batch_fenced(writer, batch.query, batch.number, found.query, found.batch)
    if found.batch == batch.number:
        return False
    on.execute(update(writer_batches).where(*of_writer).values(**values))
    return True
