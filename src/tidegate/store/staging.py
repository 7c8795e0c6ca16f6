"""Staging: rows are written where they are computed, and made visible where the decision is made.

Tasks call `stage`: the rows are judged, parted by segment and written to files, and nothing of it
can be seen. What comes back is small and travels. One process then makes all of it visible by
`publish_staged`, in a catalog transaction of its own, together with whatever must be atomic with
it.

Law: in every segment rows come in the order given: that of the table within one `Staged`, and one
`Staged` after the other. That holds, too, when segments were sealed in between: then the publishing
raises `SegmentSealed`, and the caller tries again with what `reroute` gives.

    staged = [stage(store, "orders", table, place="job 7, task 3")]         # in tasks
    while True:
        try:
            return store.database.write(lambda on: publish_staged(on, store, staged, now))
        except SegmentSealed as sealed:
            staged = reroute(store, staged, sealed)

A catalog transaction may be repeated after its answer was lost. So the caller looks first, in the
same transaction, whether it has committed before: a second publishing of the same files is refused.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.store.bad_rows import SUFFIX
from tidegate.store.buffer import Buffer
from tidegate.store.catalog import chunks, intents, streams
from tidegate.store.catalog.chunks import Piece, Ranges, SegmentSealed
from tidegate.store.catalog.streams import StreamRecord
from tidegate.store.encoding import Numbers, Rows
from tidegate.store.lane import Lane, Part
from tidegate.store.outlet import Outlet

if TYPE_CHECKING:
    from tidegate.store.store import Store
    from tidegate.store.writer import BadRows

LIFE: Final = timedelta(days=1)
"""How long staged files wait to be published: longer than any job that stages them."""

_NOTHING: Final = pa.table({})


@dataclass(frozen=True)
class Lot:
    """Files of one stream; with several of them, for every row the one it is in."""

    stream: str
    stream_id: int
    created_at: Instant
    """When the stream was made: SQLite gives the number of a deleted one away again."""
    pieces: tuple[Piece, ...] = ()
    places: bytes = b""

    @staticmethod
    def of(stream: StreamRecord, parts: Sequence[Part]) -> Lot:
        """The lot of parts whose numbers count its rows."""
        pieces = tuple(part.piece for part in parts)
        if len(parts) < 2:
            return Lot(stream.name, stream.id, stream.created_at, pieces)
        index = np.empty(sum(piece.rows for piece in pieces), dtype=np.uint16)
        for place, part in enumerate(parts):
            index[part.numbers] = place
        # Less than a byte per row, and the only way back to the order of the rows.
        return Lot(
            stream.name, stream.id, stream.created_at, pieces, zlib.compress(index.tobytes(), 1)
        )

    def check(self, stream: StreamRecord) -> None:
        """Refuse another stream of the same name."""
        if (stream.id, stream.created_at) != (self.stream_id, self.created_at):
            raise errors.stream_replaced(self.stream)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(piece.rows for piece in self.pieces)

    def numbers(self) -> list[Numbers]:
        """For every file the numbers of its rows in the lot."""
        if len(self.pieces) < 2:
            return [np.arange(piece.rows, dtype=np.int64) for piece in self.pieces]
        index = np.frombuffer(zlib.decompress(self.places), dtype=np.uint16)
        return [
            np.flatnonzero(index == place).astype(np.int64) for place in range(len(self.pieces))
        ]


@dataclass(frozen=True)
class Staged:
    """What `stage` has written: files of the stream, and of its stream of errors. It pickles."""

    good: Lot
    place: str
    bad: Lot | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    """How many rows are bad, by reason."""

    @property
    def rows(self) -> int:
        """How many good rows there are."""
        return self.good.rows

    @property
    def max_time(self) -> Instant | None:
        """The largest event time of them, if they have any."""
        return max((p.max_time for p in self.good.pieces if p.max_time is not None), default=None)

    @property
    def lots(self) -> list[Lot]:
        """The files of both streams."""
        return [self.good] if self.bad is None else [self.good, self.bad]


def stage(
    store: Store,
    stream: str,
    table: Rows,
    place: str,
    *,
    bad_rows: BadRows = "refuse",
    writer: str | None = None,
    life: timedelta = LIFE,
) -> Staged:
    """Write rows to files that nobody can see yet.

    Bad rows are refused, then nothing is written, or put into files of the stream of errors, with
    the name of the `writer`. Without a routing key the text `place` chooses the segment.
    """
    outlet = Outlet(
        store, stream, writer=writer or place, writer_id=writer, routes=bad_rows == "route"
    )
    try:
        buffer = Buffer()
        buffer.add(outlet.encode(table), store.clock())
        rows = buffer.rows()[0]
        good = outlet.lane.upload(rows, np.arange(len(rows), dtype=np.int64), place, life)
        staged = Staged(Lot.of(outlet.lane.stream, good), place)
        bad = outlet.bad_parts(buffer, life)
        if not bad:
            return staged
        reasons = Counter(found.reason for found, _ in buffer.bad)
        return replace(staged, bad=Lot.of(store.describe(stream + SUFFIX), bad), reasons=reasons)
    finally:
        outlet.close()


def publish_staged(on: Connection, store: Store, staged: Sequence[Staged], now: Instant) -> Ranges:
    """Make all of it visible, in the order given; return the offsets in the stream of the first.

    Of several streams each is held in one order everywhere. Raises `SegmentSealed`; then the
    caller's transaction must not be committed.
    """
    lots: dict[str, list[Lot]] = {}
    for lot in (lot for one in staged for lot in one.lots if lot.pieces):
        lots.setdefault(lot.stream, []).append(lot)
    found = [streams.get(on, name) for name in lots]
    ranges: dict[str, Ranges] = {}
    for stream in sorted(found, key=lambda stream: stream.id):
        name = stream.name
        for lot in lots[name]:
            lot.check(stream)
        pieces = [piece for lot in lots[name] for piece in lot.pieces]
        ranges[name] = chunks.publish(on, stream.id, pieces, now)
        if store.files.is_local:
            # Tasks on other machines have folders of their own under the same name.
            missing = [piece.path for piece in pieces if not store.files.exists(piece.path)]
            if missing:
                raise errors.staged_files_missing(name, store.files.root, missing)
    return ranges.get(staged[0].good.stream, {}) if staged else {}


def reroute(store: Store, staged: Sequence[Staged], sealed: SegmentSealed) -> list[Staged]:
    """The same rows, after some segments were found sealed: theirs go to those that follow.

    Files that nobody wants any more are left to the sweep: if the answer to a publishing was lost,
    they may be visible after all.
    """
    return [
        replace(
            one,
            good=_moved(store, one.good, sealed, one.place),
            bad=None if one.bad is None else _moved(store, one.bad, sealed, one.place),
        )
        for one in staged
    ]


def discard(store: Store, staged: Iterable[Staged]) -> None:
    """Delete the files of what will not be published; what has been published is left alone."""
    paths = [piece.path for one in staged for lot in one.lots for piece in lot.pieces]
    for path in store.database.write(lambda on: intents.withdraw(on, paths)):
        store.files.delete(path)


# ---- inside ----


def _moved(store: Store, lot: Lot, sealed: SegmentSealed, place: str) -> Lot:
    gone = {piece.segment for piece in lot.pieces} & sealed.names
    if lot.stream_id != sealed.stream_id or not gone:
        return lot
    lane = Lane(store, lot.stream)
    try:
        lot.check(lane.stream)
        parts = [
            # What stays where it is need not be read.
            Part(_read(store, piece) if piece.segment in gone else _NOTHING, numbers, piece)
            for piece, numbers in zip(lot.pieces, lot.numbers(), strict=True)
        ]
        return Lot.of(lane.stream, lane.again(parts, gone, place))
    finally:
        lane.close()


def _read(store: Store, piece: Piece) -> pa.Table:
    with store.files.open(piece.path) as source:
        return pq.read_table(source)
