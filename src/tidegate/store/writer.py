"""The writer: takes rows, makes them durable once, and promises time.

A flush is one catalog transaction over all segments it touches: the rows appear in all of them, the
writer's count of durable rows moves, or nothing happens. The count is moved by a conditional update
with the writer's token and the count that was expected, so that

- a flush repeated after a lost answer changes nothing, and one that overlaps what is durable skips
  those rows;
- a second open with the same id fences the first, whose next flush, note or commit is an error and
  writes nothing.

Rows are counted as they are appended, bad ones that are routed included. `durable` says how many
are safe: after a crash, go on with `append(rows[n:], first_row=n)` from there, or from anywhere
before; what overlaps is left out. After an error the rows that were taken are still in the buffer,
and the next flush takes them along: do not append them again without `first_row`.

    with store.writer("orders", "shop-eu", notes_time=True) as writer:
        writer.append(rows)
        writer.note_time(t)         # no later row will be before t
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked, micros
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.store.buffer import Buffer
from tidegate.store.catalog import transactions, writers
from tidegate.store.catalog.chunks import Piece, SegmentSealed
from tidegate.store.catalog.writers import ANONYMOUS, WriterRow
from tidegate.store.encoding import Rows
from tidegate.store.lane import Part
from tidegate.store.outlet import Outlet
from tidegate.store.ticker import Ticker
from tidegate.store.transaction import Transaction

if TYPE_CHECKING:
    from tidegate.store.store import Store

FLUSH_ROWS: Final = 100_000
FLUSH_BYTES: Final = 64 * 1024 * 1024
FLUSH_AGE: Final = timedelta(seconds=1)
TIMEOUT: Final = timedelta(minutes=5)
"""How long a transaction may stay open, by default."""
LONGEST_ID: Final = 200
_FORGET: Final = timedelta(days=1)

BadRows = Literal["refuse", "route"]


@dataclass
class Counts:
    """What a writer has made durable since it was opened: each row is counted once."""

    rows: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    """Routed rows, by reason."""


class Writer:
    """Made by `Store.writer`. Thread safe; a small thread looks after age and automatic notes."""

    def __init__(
        self,
        store: Store,
        stream: str,
        writer_id: str | None = None,
        *,
        notes_time: bool = False,
        sink: bool = False,
        flush_rows: int = FLUSH_ROWS,
        flush_bytes: int = FLUSH_BYTES,
        flush_age: timedelta | None = FLUSH_AGE,
        bad_rows: BadRows = "refuse",
    ) -> None:
        if bad_rows not in ("refuse", "route"):
            raise errors.wrong_setting("bad_rows", bad_rows, ["refuse", "route"])
        for name, size in (("flush_rows", flush_rows), ("flush_bytes", flush_bytes)):
            if size < 1:
                raise errors.wrong_setting(name, size, ["1 or more"])
        if flush_age is not None and flush_age <= timedelta(0):
            raise errors.not_a_positive_duration("flush_age", flush_age)
        if writer_id is None and (notes_time or sink):
            raise errors.writer_without_id(stream, "note time")
        if writer_id is not None and not _is_id(writer_id):
            raise errors.writer_id_not_valid(writer_id, LONGEST_ID)
        self.store = store
        self.stream = stream
        self.id = writer_id
        self.name = writer_id or f"{ANONYMOUS}{uuid4().hex}"
        self.notes_time = notes_time or sink
        self.is_sink = sink
        self.counts = Counts()
        self.outlet = Outlet(
            store, stream, writer=self.name, writer_id=writer_id, routes=bad_rows == "route"
        )
        self.lane = self.outlet.lane
        self.lock = RLock()
        self.flush_rows, self.flush_bytes, self.flush_age = flush_rows, flush_bytes, flush_age
        self._failure: Exception | None = None
        self._ticker: Ticker | None = None
        self._every: timedelta | None = None
        self._noted_at: Instant | None = None
        self._transactions: dict[str, Transaction] = {}
        self._closed = False
        opened = self._open() if writer_id is not None else None
        self.token = 1 if opened is None else opened.token
        self.highest = UNKNOWN if opened is None else opened.notes.highest
        start = 0 if opened is None else opened.sequence
        self.buffer = Buffer(start, start)

    # ---- rows ----

    @property
    def durable(self) -> int:
        """How many rows are durable: the number of the first one that is not."""
        return self.buffer.start

    @property
    def appended(self) -> int:
        """How many rows were taken: the number of the next one."""
        return self.buffer.end

    def append(self, rows: Rows, *, first_row: int | None = None) -> int:
        """Take rows; return how many. They are durable after the next flush.

        `first_row` is the number of the first of them: those that were taken before are left out.
        Bad rows are refused, then nothing of the call is taken, or routed.
        """
        with self.lock:
            self._ready()
            if self._is_full():  # an earlier flush failed: no rows are piled up behind it
                self.flush()
            skip = 0 if first_row is None else self.appended - first_row
            if skip < 0:
                raise errors.row_numbers_skipped(self.stream, self.appended, first_row)
            encoded = self.outlet.encode(rows, skip)
            self.buffer.add(encoded, self.store.clock())
            if self._is_full() or self._is_old():
                self.flush()
            elif len(self.buffer) and self.flush_age is not None:
                self._tick_every(self.flush_age)
            return encoded.rows

    def flush(self) -> int:
        """Make everything durable that was appended; return how many rows are."""
        with self.lock:
            self._ready()
            if len(self.buffer):
                self._write()
            return self.durable

    # ---- time ----

    def note_time(self, time: Instant) -> None:
        """Promise that no later row will be before `time`; everything appended is flushed with it.

        An equal time may be noted again, an earlier one is an error.
        """
        with self.lock:
            self._ready()
            if self._every is not None:
                raise errors.time_noted_by_the_clock(self.name)
            self._note(time)

    def auto_note_time(self, interval: timedelta | None) -> None:
        """Note the time of the clock once per interval; None switches it off."""
        with self.lock:
            self._ready()
            self._may_note()
            if interval is not None and interval <= timedelta(0):
                raise errors.not_a_positive_duration("interval", interval)
            self._every = interval
            if interval is not None:
                self._tick_every(interval)

    def tick(self) -> None:
        """Do what is due by the clock: the flush of old rows, the automatic note.

        The writer's own thread calls this. What fails is kept, and raised by the next call.
        """
        try:
            with self.lock:
                if self._closed or self._failure is not None:
                    return
                now = self.store.clock()
                due = self._noted_at is None or (
                    self._every is not None and now - self._noted_at >= micros(self._every)
                )
                if self._every is not None and due:
                    # A clock that has stepped back promises nothing new.
                    self._note(now if self.highest is UNKNOWN else max(now, self.highest))
                elif self._is_old():
                    self._write()
        except Exception as failure:
            self._failure = failure

    # ---- transactions ----

    def begin(self, timeout: timedelta = TIMEOUT, *, id: str | None = None) -> Transaction:
        """Begin a transaction: its rows are invisible until it commits.

        What was appended before is flushed first, so that rows keep their order.
        """
        with self.lock:
            self.flush()
            begun = Transaction.begin(self, id or uuid4().hex, timeout)
            self._transactions[begun.id] = begun
            return begun

    def transaction(self, id: str) -> Transaction:
        """A transaction of this stream by its id, to ask for its status, or to commit it again."""
        with self.lock:
            self._ready()
            return self._transactions.get(id) or Transaction(self, id)

    # ---- the end ----

    def close(self, *, goodbye: bool | None = None) -> None:
        """Flush, abort what is open, and say goodbye to the marks.

        The writer of a job's sink stays known when it is closed, unless `goodbye` is asked for.
        """
        with self.lock:
            if self._closed:
                return
            self._ready()
            for transaction in list(self._transactions.values()):
                transaction.abort_if_open()
            parting = (not self.is_sink) if goodbye is None else goodbye
            if len(self.buffer) or (parting and self.notes_time):
                self._write(goodbye=parting and self.notes_time)
            if self.id is None and self.durable:
                stream_id = self.lane.stream.id
                self.store.database.write(lambda on: writers.remove(on, stream_id, self.name))
        self.abandon()

    def abandon(self) -> None:
        """Give everything back without flushing and without a goodbye, as a crash would."""
        with self.lock:
            self._closed = True
        if self._ticker is not None:
            self._ticker.stop()
        self.outlet.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    # ---- used by transactions too ----

    def hold(self, on: Connection, now: Instant) -> WriterRow:
        """Lock the writer's row, unless somebody has taken its id over."""
        stream_id = self.lane.stream.id
        if self.id is not None:
            return writers.hold(on, stream_id, self.name, self.token, now)
        found = writers.look(on, stream_id, self.name)
        if found is None:
            forget = now - micros(_FORGET)
            writers.add_anonymous(on, stream_id, self.name, self.durable, now, forget)
            found = writers.look(on, stream_id, self.name)
            assert found is not None
        return found

    def noted(self) -> None:
        """Tell whoever waits for notes."""
        self.store.noted(self.stream)

    def require_open(self) -> None:
        """Refuse work on a closed writer; raise what failed in the background."""
        self._ready()

    # ---- inside ----

    def _open(self) -> WriterRow:
        stream_id = self.lane.stream.id

        def work(on: Connection) -> tuple[WriterRow, list[str]]:
            now = self.store.clock()
            if self.notes_time:
                writers.schedule(on, stream_id)
            row = writers.open_writer(
                on, stream_id, self.name, notes_time=self.notes_time, sink=self.is_sink, now=now
            )
            unwanted: list[str] = []
            for found in transactions.open_ones(on, stream_id=stream_id, writer=self.name):
                after, paths = transactions.abort(on, found, row, transactions.ABORTED, now)
                row, unwanted = after or row, unwanted + paths
            return row, unwanted

        row, unwanted = self.store.database.write(work)
        for path in unwanted:
            self.store.files.delete(path)
        self.notes_time = row.notes_time
        return row

    def _note(self, time: Instant) -> None:
        self._may_note()
        if self.highest is not UNKNOWN and checked(time) < self.highest:
            raise errors.time_went_back(f'writer "{self.name}"', self.highest, time)
        self._write(note=checked(time))
        self._noted_at = self.store.clock()
        self.noted()

    def _may_note(self) -> None:
        if self.id is None:
            raise errors.writer_without_id(self.stream, "note time")

    def _write(self, *, note: Instant | None = None, goodbye: bool = False) -> None:
        table, numbers = self.buffer.rows()
        good = self.lane.upload(table, numbers, self._place())
        bad = self.outlet.bad_parts(self.buffer)
        while True:
            try:
                row = self.store.database.write(
                    lambda on, good=good, bad=bad: self._commit(on, good, bad, note, goodbye)  # type: ignore[misc]
                )
                break
            except SegmentSealed as sealed:
                good, bad = self.outlet.rerouted(good, bad, sealed, self._place())
        self.counts.rows += len(table)
        self.counts.bad.update(found.reason for found, _ in self.buffer.bad)
        self.buffer = self.buffer.emptied()
        if note is not None:
            self.notes_time = True
            self.highest = row.notes.highest

    def _commit(
        self,
        on: Connection,
        good: list[Part],
        bad: list[Part],
        note: Instant | None,
        goodbye: bool,
    ) -> WriterRow:
        """The one transaction of a flush."""
        stream_id, now = self.lane.stream.id, self.store.clock()
        if note is not None:
            writers.schedule(on, stream_id)
        row = self.hold(on, now)
        if self.buffer.end > row.sequence:
            writers.advance(on, row, self.buffer.end)
            self.outlet.publish(on, _after(good, row.sequence), _after(bad, row.sequence), now)
        if note is None and not goodbye:
            return row
        for found in transactions.open_ones(
            on, stream_id=stream_id, writer=self.name, expired_at=now
        ):
            row = transactions.abort(on, found, row, transactions.TIMED_OUT, now)[0] or row
        place, lineage = writers.position(on, stream_id)
        if note is not None:
            row = writers.put(on, row, row.notes.note(note, place, lineage), notes_time=True)
        if goodbye:
            parted = row.notes.mark.goodbye(place, lineage)
            row = writers.put(on, row, replace(row.notes, mark=parted))
        return row

    def _ready(self) -> None:
        if self._closed:
            raise errors.writer_closed(self.stream, self.name)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _place(self) -> str:
        # Without a routing key: each flush to another segment.
        return f"{self.name}:{self.durable}"

    def _is_full(self) -> bool:
        return len(self.buffer) >= self.flush_rows or self.buffer.bytes >= self.flush_bytes

    def _is_old(self) -> bool:
        if self.flush_age is None or self.buffer.since is None:
            return False
        return self.store.clock() - self.buffer.since >= micros(self.flush_age)

    def _tick_every(self, wanted: timedelta) -> None:
        """Have the ticker look at least four times in such a period."""
        period = wanted / 4
        if self._ticker is not None and self._ticker.period > period:
            # Without waiting for it: it may be waiting for our lock.
            self._ticker.stop(wait=False)
            self._ticker = None
        if self._ticker is None:
            self._ticker = Ticker(period, self.tick)


def _after(parts: list[Part], durable: int) -> list[Piece]:
    return [piece for part in parts if (piece := part.after(durable)) is not None]


def _is_id(name: Any) -> bool:
    if not isinstance(name, str) or name.startswith(ANONYMOUS):
        return False
    return 0 < len(name) <= LONGEST_ID and name == name.strip() and name.isprintable()
