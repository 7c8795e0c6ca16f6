"""The commit of staged rows: what tasks have written appears in one transaction, with a note.

All of it is one catalog transaction: the rows of all tasks, the writer's count of durable rows, the
batch they belong to, and the time that is noted. A batch that was committed before is committed
again without effect, so whoever is not sure repeats it.

    commit_staged(store, "orders", staged, writer_id="etl", batch=Batch(query, 7), note=t)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from tidegate.eventtime.instants import Instant, checked
from tidegate.eventtime.watermark import UNKNOWN, later
from tidegate.store.catalog import writer_batches, writers
from tidegate.store.catalog.chunks import SegmentSealed
from tidegate.store.catalog.writer_batches import Batch
from tidegate.store.staging import Staged, discard, publish_staged, reroute
from tidegate.store.store import Store
from tidegate.store.writer import Writer


@dataclass(frozen=True)
class _Commit:
    """What is to be committed, by a writer that was opened for it."""

    writer: Writer
    batch: Batch | None
    note: Instant | None
    goodbye: bool

    def run(self, on: Connection, staged: Sequence[Staged]) -> bool:
        """The one transaction; False: the batch was committed before."""
        writer, rows = self.writer, sum(one.rows + one.reasons.total() for one in staged)
        stream_id, now = writer.lane.stream.id, writer.store.clock()
        if self.note is not None:
            writers.schedule(on, stream_id)
        row = writer.hold(on, now)
        if row.sequence > writer.durable:
            # The answer to this very transaction was lost.
            return True
        if self.batch is not None and not writer_batches.advance(
            on, stream_id, writer.name, self.batch, now
        ):
            return False
        if rows:
            writers.advance(on, row, writer.durable + rows)
            row = replace(row, sequence=writer.durable + rows)
            publish_staged(on, writer.store, staged, now)
        if self.note is None:
            return True
        notes = row.notes
        place, lineage = writers.position(on, stream_id)
        # As with every commit: a time below the highest does not raise, the highest stands.
        time = later(notes.highest, checked(self.note))
        assert time is not UNKNOWN
        notes = notes.note(time, place, lineage)
        if self.goodbye:
            notes = replace(notes, mark=notes.mark.goodbye(place, lineage))
        writers.put(on, row, notes, notes_time=True)
        return True


def commit_staged(
    store: Store,
    stream: str,
    staged: Sequence[Staged],
    *,
    writer_id: str | None = None,
    batch: Batch | None = None,
    note: Instant | None = None,
    goodbye: bool = False,
) -> bool:
    """Make staged rows visible, in the order given; False: the batch was committed before.

    `note`: a promise of the writer, that no later row of it will be before that time; with
    `goodbye` it is its last one. `batch`: which batch of a streaming query it is.
    """
    writer = store.writer(stream, writer_id, notes_time=note is not None, flush_age=None)
    try:
        commit = _Commit(writer, batch, note, goodbye)
        held = list(staged)
        while True:
            try:
                done = store.database.write(lambda on, held=held: commit.run(on, held))  # type: ignore[misc]
                break
            except SegmentSealed as sealed:
                held = reroute(store, held, sealed)
        if not done:
            discard(store, held)
        elif note is not None:
            writer.noted()
        return done
    finally:
        writer.abandon()
