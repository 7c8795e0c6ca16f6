"""A lane into a stream: rows are parted by segment, written to files, and await their offsets.

Nothing is visible yet when a file is written. A part keeps its rows until it is: if its segment is
sealed meanwhile, they are routed again by the segments that follow; if some of them turn out to be
durable already, they are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection

from tidegate import errors
from tidegate.marks.lineage import Lineage
from tidegate.marks.segment import Segment
from tidegate.store.catalog import intents, streams
from tidegate.store.catalog.chunks import Piece
from tidegate.store.catalog.streams import StreamRecord
from tidegate.store.chunk_file import encode_chunk, stats_of, times_of
from tidegate.store.encoding import Numbers
from tidegate.store.routing import hash_of, hashes, segment_index

if TYPE_CHECKING:
    from tidegate.store.store import Store


Parted = tuple[Segment, pa.Table, Numbers]
"""Rows of one segment, with their numbers in the writer's count."""


@dataclass(frozen=True)
class Part:
    """Encoded rows of one segment, their numbers in the writer's count, and their file."""

    table: pa.Table
    numbers: Numbers
    piece: Piece

    def after(self, durable: int) -> Piece | None:
        """What is to be made visible, when so many rows of the writer are durable already."""
        skip = int(np.searchsorted(self.numbers, durable))
        if skip == 0:
            return self.piece
        if skip == len(self.numbers):
            return None
        times = times_of(self.table.slice(skip))
        left = stats_of(times, len(self.numbers) - skip, self.piece.bytes)
        return Piece(
            self.piece.segment,
            self.piece.path,
            left.rows,
            left.bytes,
            left.min_time,
            left.max_time,
            left.disorder,
            skip,
        )


class Lane:
    """The way of one writer into one stream. Not thread safe: the writer holds the lock."""

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._name = stream
        self._uploads = store.uploads.share()
        self.stream, self._segments = self._look()

    def refresh(self) -> None:
        """Look again at the stream's declaration and its segments."""
        before = self.stream.id
        self.stream, self._segments = self._look()
        if self.stream.id != before:
            raise errors.stream_replaced(self._name)

    def upload(
        self, table: pa.Table, numbers: Numbers, place: str, life: timedelta = intents.LIFE
    ) -> list[Part]:
        """Part rows by segment and write them to files, announced before.

        Without a routing key all of them go to one segment, chosen by the text `place`.
        """
        if not len(table):
            return []
        parted = self._parted(table, numbers, place)
        paths = [f"{self._name}/{segment.name}/{uuid4().hex}.parquet" for segment, _, _ in parted]
        now = self._store.clock()
        self._store.database.write(lambda on: intents.announce(on, paths, now, life))
        named = list(zip(parted, paths, strict=True))
        if len(named) == 1:
            return [self._written(named[0])]
        return self._uploads.all(self._written, named)

    def again(self, parts: Sequence[Part], sealed: Iterable[str], place: str) -> list[Part]:
        """Route the rows of sealed segments by those that follow; the others stay as they are.

        Rows go in the order of their numbers, so that those of one key keep theirs.
        """
        gone = set(sealed)
        self.refresh()
        moving = [part for part in parts if part.piece.segment in gone]
        numbers = np.concatenate([part.numbers for part in moving])
        order = np.argsort(numbers, kind="stable")
        table = pa.concat_tables([part.table for part in moving]).take(pa.array(order))
        kept = [part for part in parts if part.piece.segment not in gone]
        return [*kept, *self.upload(table, numbers[order], place)]

    def close(self) -> None:
        """Give the threads back."""
        self._uploads.close()

    # ---- inside ----

    def _look(self) -> tuple[StreamRecord, tuple[Segment, ...]]:
        def work(on: Connection) -> tuple[StreamRecord, Lineage]:
            record = streams.get(on, self._name)
            return record, streams.lineage(on, record.id)

        record, lineage = self._store.database.read(work)
        return record, lineage.open_in(lineage.epoch)

    def _parted(self, table: pa.Table, numbers: Numbers, place: str) -> list[Parted]:
        key = self.stream.config.routing_key
        if not key or len(self._segments) == 1:
            at = int(segment_index(hash_of(place), self._segments)[0])
            return [(self._segments[at], table, numbers)]
        # Few distinct small numbers: a stable sort of them is one pass.
        index = segment_index(hashes(table, key), self._segments).astype(np.uint16)
        counts = np.bincount(index, minlength=len(self._segments))
        order = np.argsort(index, kind="stable")
        ordered, numbered = table.take(pa.array(order)), numbers[order]
        ends = np.cumsum(counts)
        return [
            (
                segment,
                ordered.slice(int(end - count), int(count)),
                numbered[end - count : end],
            )
            for segment, count, end in zip(self._segments, counts, ends, strict=True)
            if count
        ]

    def _written(self, named: tuple[Parted, str]) -> Part:
        (segment, table, numbers), path = named
        content, stats = encode_chunk(table)
        self._store.files.write(path, content)
        piece = Piece(
            segment.name,
            path,
            stats.rows,
            stats.bytes,
            stats.min_time,
            stats.max_time,
            stats.disorder,
        )
        return Part(table, numbers, piece)
