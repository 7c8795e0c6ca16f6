"""The transaction: rows that appear together, over all segments, or never.

Its files are written and recorded before the commit, which makes them visible in one catalog
transaction, together with its end and the writer's note. So a commit repeated after a lost answer
finds the end and gives the same result; a transaction that was not committed in time, or whose
writer was opened again after a crash, is aborted, and its rows never appear.

    with writer.begin() as transaction:
        transaction.append(rows)
    transaction.mark            # the writer's mark after the commit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked, micros
from tidegate.marks.segment import SegmentId
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.writer_mark import WriterMark
from tidegate.store.buffer import Buffer
from tidegate.store.catalog import intents, transactions, writers
from tidegate.store.catalog.chunks import Piece, SegmentSealed
from tidegate.store.catalog.transactions import ABORTED, COMMITTED, OPEN, TIMED_OUT, TransactionRow
from tidegate.store.catalog.writers import WriterRow
from tidegate.store.encoding import Rows
from tidegate.store.lane import Part

if TYPE_CHECKING:
    from tidegate.store.store import Store
    from tidegate.store.writer import Writer


class Transaction:
    """Made by `Writer.begin`. Thread safe, as its writer is."""

    def __init__(self, writer: Writer, id: str, life: timedelta = intents.LIFE) -> None:
        self.id = id
        self.mark: WriterMark | None = None
        self._writer = writer
        self._life = life
        self._buffer = Buffer()
        self._ready: list[Part] = []
        """Written, and perhaps not recorded: the answer to that may be missing."""

    @staticmethod
    def begin(writer: Writer, id: str, timeout: timedelta) -> Transaction:
        """Open a transaction in the catalog."""
        if timeout <= timedelta(0):
            raise errors.not_a_positive_duration("timeout", timeout)
        stream_id = writer.lane.stream.id

        def work(on: Connection) -> TransactionRow:
            now = writer.store.clock()
            row = None if writer.id is None else writer.hold(on, now)
            transactions.begin(on, id, stream_id, row, now, now + micros(timeout))
            found = transactions.look(on, id)
            assert found is not None
            return found

        found = writer.store.database.write(work)
        owner = (stream_id, writer.id, None if writer.id is None else writer.token)
        if found.status != OPEN or (found.stream_id, found.writer, found.token) != owner:
            raise errors.transaction_begun_twice(writer.name, id)
        return Transaction(writer, id, timeout + intents.LIFE)

    @property
    def status(self) -> str:
        """How it stands: open, committed, aborted or timed out."""
        found = self._writer.store.database.read(lambda on: transactions.look(on, self.id))
        if found is None:
            raise errors.unknown_transaction(self._writer.stream, self.id)
        if found.status == OPEN and found.expires_at <= self._writer.store.clock():
            return TIMED_OUT
        return found.status

    def append(self, rows: Rows) -> int:
        """Take rows; return how many. They appear when the transaction commits."""
        writer = self._writer
        with writer.lock:
            writer.require_open()
            encoded = writer.outlet.encode(rows)
            self._buffer.add(encoded, writer.store.clock())
            full = len(self._buffer) >= writer.flush_rows
            if full or self._buffer.bytes >= writer.flush_bytes:
                self._upload()
            return encoded.rows

    def commit(self, time: Instant | None = None) -> WriterMark:
        """Make its rows visible, with a note of `time` if given; return the writer's mark.

        Rows that the writer has taken beside it are flushed before they are promised not to come.
        A time below the highest that the writer has noted does not raise: the highest stands.
        Committing again gives the same result.
        """
        writer = self._writer
        with writer.lock:
            writer.require_open()
            if time is not None and writer.id is None:
                raise errors.writer_without_id(writer.stream, "note time")
            noted = None if time is None else checked(time)
            if self.mark is None and self.status == OPEN:
                if noted is not None:
                    # What was appended before the promise must not come after it.
                    writer.flush()
                self._upload()
            bad = writer.outlet.bad_parts(self._buffer, self._life)
            mark = self._committed(noted, bad)
            if self.mark is None:
                writer.counts.bad.update(found.reason for found, _ in self._buffer.bad)
                self._buffer = Buffer()
                self.mark = mark
                if noted is not None or writer.notes_time:
                    writer.notes_time = True
                    writer.noted()
            return mark

    def abort(self) -> None:
        """Make sure that its rows never appear; a second time changes nothing."""
        with self._writer.lock:
            found = self._end(ABORTED)
            if found.status == COMMITTED:
                raise errors.transaction_ended(self.id, COMMITTED)

    def abort_if_open(self) -> None:
        """Abort, unless it has ended one way or the other."""
        with self._writer.lock:
            if self.mark is None:
                self._end(ABORTED)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort_if_open()

    # ---- inside ----

    def _upload(self) -> None:
        """Write what was appended to files, and record them with the transaction."""
        writer, buffer = self._writer, self._buffer
        if buffer.tables:
            table, numbers = buffer.rows()
            self._ready += writer.lane.upload(table, numbers, self.id, self._life)
            self._buffer = replace(buffer, tables=[], numbers=[], bytes=0, start=buffer.end)
        if not self._ready:
            return
        pieces = [part.piece for part in self._ready]

        def work(on: Connection) -> TransactionRow:
            found = self._met(on)[1]
            if found.status == OPEN:
                transactions.add_pieces(on, self.id, pieces)
            return found

        self._require_open(writer.store.database.write(work))
        writer.counts.rows += sum(piece.rows for piece in pieces)
        self._ready = []

    def _committed(self, time: Instant | None, bad: list[Part]) -> WriterMark:
        database = self._writer.store.database
        while True:
            try:
                found = database.write(lambda on, bad=bad: self._commit(on, time, bad))  # type: ignore[misc]
            except SegmentSealed as sealed:
                if sealed.stream_id == self._writer.lane.stream.id:
                    self._reroute(sealed.names)
                else:
                    bad = self._writer.outlet.rerouted([], bad, sealed, self.id)[1]
                continue
            if found.status != COMMITTED:
                raise errors.transaction_ended(self.id, found.status)
            notes = WriterNotes.from_json(found.result["notes"])
            self._writer.highest = notes.highest
            return notes.mark

    def _commit(self, on: Connection, time: Instant | None, bad: list[Part]) -> TransactionRow:
        """The one transaction of a commit."""
        writer = self._writer
        stream_id, now = writer.lane.stream.id, writer.store.clock()
        if time is not None or writer.notes_time:
            writers.schedule(on, stream_id)
        row, found = self._met(on)
        if found.status != OPEN:
            return found
        pieces = transactions.pieces(on, self.id)
        ranges = writer.outlet.publish(on, pieces, [part.piece for part in bad], now, staged=True)
        transactions.replace_pieces(on, self.id, [])
        place, lineage = writers.position(on, stream_id)
        if row is None:
            notes = WriterNotes(WriterMark(writer.name, position=place))
        else:
            notes = row.notes.commit(self.id, place, lineage, time=time)
            writers.put(on, row, notes, notes_time=row.notes_time or time is not None)
        result = {"notes": notes.to_json(), "ranges": ranges}
        transactions.end(on, self.id, COMMITTED, now, result)
        return replace(found, status=COMMITTED, result=result)

    def _reroute(self, sealed: frozenset[str]) -> None:
        """Move the rows of sealed segments to those that follow.

        A segment is written to before its successors are, so the moved rows come first.
        """
        writer = self._writer
        held = writer.store.database.read(lambda on: transactions.pieces(on, self.id))
        tables = [self._read(piece) for piece in held if piece.segment in sealed]
        writer.lane.refresh()
        moved: list[Piece] = []
        if tables:
            table = pa.concat_tables(tables).combine_chunks()
            numbers = np.arange(len(table), dtype=np.int64)
            parts = writer.lane.upload(table, numbers, self.id, self._life)
            moved = [part.piece for part in parts]
        kept = [piece for piece in held if piece.segment not in sealed]
        after = [*moved, *sorted(kept, key=lambda p: SegmentId.parse(p.segment).epoch)]

        def work(on: Connection) -> TransactionRow:
            found = self._met(on)[1]
            if found.status == OPEN:
                transactions.replace_pieces(on, self.id, after)
            return found

        self._require_open(writer.store.database.write(work))

    def _read(self, piece: Piece) -> pa.Table:
        with self._writer.store.files.open(piece.path) as source:
            return pq.read_table(source)

    def _end(self, status: str) -> TransactionRow:
        writer = self._writer

        def work(on: Connection) -> tuple[TransactionRow, Sequence[str]]:
            row, found = self._met(on)
            if found.status != OPEN:
                return found, ()
            _, paths = transactions.abort(on, found, row, status, writer.store.clock())
            return replace(found, status=status), paths

        found, unwanted = writer.store.database.write(work)
        for path in unwanted:
            writer.store.files.delete(path)
        return found

    def _met(self, on: Connection) -> tuple[WriterRow | None, TransactionRow]:
        """Lock the rows of the writer and of the transaction.

        One whose time is over is aborted by whoever meets it. A fenced writer has no say, except
        that what it has committed is committed.
        """
        writer = self._writer
        row = None
        if writer.id is not None:
            row = writers.look(on, writer.lane.stream.id, writer.name)
        found = transactions.look(on, self.id)
        if found is None or found.stream_id != writer.lane.stream.id:
            raise errors.unknown_transaction(writer.stream, self.id)
        if found.status == COMMITTED:
            return row, found
        if writer.id is not None and (row is None or row.token != writer.token):
            raise errors.writer_fenced(writer.name, writer.token)
        now = writer.store.clock()
        if found.status == OPEN and found.expires_at <= now:
            row, _ = transactions.abort(on, found, row, TIMED_OUT, now)
            found = replace(found, status=TIMED_OUT)
        return row, found

    def _require_open(self, found: TransactionRow) -> None:
        if found.status != OPEN:
            raise errors.transaction_ended(self.id, found.status)


def expire(store: Store) -> int:
    """Abort every transaction whose time is over, whosever it is; return how many."""
    asked = store.clock()
    due = store.database.read(lambda on: transactions.open_ones(on, expired_at=asked))

    def work(on: Connection, found: TransactionRow) -> Sequence[str]:
        row = None
        if found.writer is not None:
            row = writers.look(on, found.stream_id, found.writer)
        again = transactions.look(on, found.id)
        if again is None or again.status != OPEN:
            return ()
        return transactions.abort(on, again, row, TIMED_OUT, store.clock())[1]

    for found in due:
        for path in store.database.write(lambda on, found=found: work(on, found)):  # type: ignore[misc]
            store.files.delete(path)
    return len(due)
