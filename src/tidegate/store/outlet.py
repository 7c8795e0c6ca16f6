"""The outlet: the two ways a writer's rows can go, into its stream or into the stream of errors.

It judges rows, writes files, and makes the pieces of both streams visible in one transaction of the
caller's. The writer decides when; the outlet knows how.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.store.bad_rows import errors_lane
from tidegate.store.buffer import Buffer
from tidegate.store.catalog import chunks
from tidegate.store.catalog.chunks import Piece, SegmentSealed
from tidegate.store.encoding import Encoded, Rows, encode
from tidegate.store.lane import Lane, Part

if TYPE_CHECKING:
    from tidegate.store.store import Store

_SHOWN: Final = 3
"""How many bad rows a refusal tells of."""


class Outlet:
    """The lanes of one writer. Not thread safe: the writer holds its lock."""

    def __init__(
        self, store: Store, stream: str, *, writer: str, writer_id: str | None, routes: bool
    ) -> None:
        self.store = store
        self.lane = Lane(store, stream)
        self._stream = stream
        self._writer = writer
        self._writer_id = writer_id
        self._routes = routes
        self._errors: Lane | None = None

    def encode(self, rows: Rows, skip: int = 0) -> Encoded:
        """Judge rows; refuse them all when some are bad and nobody wants them routed."""
        encoded = self._encoded(rows, skip)
        if encoded.bad and not self._routes:
            shown = [f'row {b.row}: {b.reason} in "{b.column}"' for b in encoded.bad[:_SHOWN]]
            raise errors.rows_refused(self._stream, len(encoded.bad), encoded.rows, shown)
        return encoded

    def bad_parts(self, buffer: Buffer, life: timedelta | None = None) -> list[Part]:
        """The bad rows of a buffer, written to a file of the stream of errors."""
        if not buffer.bad:
            return []
        table, numbers = buffer.bad_rows(self._writer_id)
        lane = self._errors_lane()
        if life is None:
            return lane.upload(table, numbers, self._writer)
        return lane.upload(table, numbers, self._writer, life)

    def rerouted(
        self, good: list[Part], bad: list[Part], sealed: SegmentSealed, place: str
    ) -> tuple[list[Part], list[Part]]:
        """Both kinds of parts, after some segments were found sealed."""
        if sealed.stream_id == self.lane.stream.id:
            return self.lane.again(good, sealed.names, place), bad
        return good, self._errors_lane().again(bad, sealed.names, self._writer)

    def publish(
        self,
        on: Connection,
        good: list[Piece],
        bad: list[Piece],
        now: Instant,
        *,
        staged: bool = False,
    ) -> chunks.Ranges:
        """Make pieces of the stream and of its stream of errors visible; the offsets of the first.

        Streams, too, are taken in one order everywhere. `staged`: a transaction holds the first.
        """
        mine = self.lane.stream.id
        lots = {mine: good} if good else {}
        if bad:
            lots[self._errors_lane().stream.id] = bad
        ranges = {
            stream_id: chunks.publish(
                on, stream_id, pieces, now, staged=staged and stream_id == mine
            )
            for stream_id, pieces in sorted(lots.items())
        }
        return ranges.get(mine, {})

    def close(self) -> None:
        """Give both lanes back."""
        self.lane.close()
        if self._errors is not None:
            self._errors.close()

    def _errors_lane(self) -> Lane:
        if self._errors is None:
            self._errors = errors_lane(self.store, self._stream)
        return self._errors

    def _encoded(self, rows: Rows, skip: int) -> Encoded:
        def once() -> Encoded:
            return encode(
                rows,
                self.lane.stream.config,
                self.store.registry,
                self.store.clock(),
                stream=self._stream,
                skip=skip,
            )

        try:
            return once()
        except errors.InputError as refused:
            if refused.code != "unknown-column":
                raise
        # The column may have been added since the writer was opened.
        self.lane.refresh()
        return once()
