"""A reader: reads its share of a group's segments, and commits how far it came.

What is read and not committed is read again by whoever has the segment next; what is committed is
never read again. A reader that was silent for too long, or whose name another one took, is fenced:
its next read or commit is an error, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.marks.segment import SegmentId
from tidegate.marks.window import TimeWindow
from tidegate.store import reading
from tidegate.store.catalog import readers
from tidegate.store.catalog.readers import GroupState, Position

if TYPE_CHECKING:
    from tidegate.store.group import ReaderGroup

MAX_ROWS: Final = 10_000
STREAM: Final = b"tidegate.stream"
"""Under this key the schema of a table says which stream its rows come from."""

Key = tuple[str, str]
"""A stream and a segment of it."""


class Reader:
    """Made by `ReaderGroup.join`. Not thread safe: one thread reads."""

    def __init__(self, group: ReaderGroup, name: str, token: int) -> None:
        self.group = group
        self.name = name
        self.token = token
        self._committed: dict[Key, int] = {}
        self._read: dict[Key, tuple[int, Instant | None]] = {}
        """Where it has read to since its last commit, with the largest time."""
        self._renewed_at: Instant | None = None
        self._turn: Key = ("", "")

    def read(
        self,
        max_rows: int = MAX_ROWS,
        *,
        stream: str | None = None,
        columns: Sequence[str] | None = None,
        system_columns: Sequence[str] = (),
    ) -> pa.Table | None:
        """The next rows of one stream, of one or several segments; none when there are none now.

        In a group of several streams they take turns, or `stream` says which. The table's schema
        has the stream's name under `STREAM`.
        """
        if max_rows < 1:
            raise errors.wrong_setting("max_rows", max_rows, ["1 or more"])
        state = self._look()
        todo = sorted(
            (p for p in self._own(state) if p.record.end > self._at(p)),
            # Those after the last one that was read come first, so that each has its turn.
            key=lambda p: (_key(p) <= self._turn, _key(p)),
        )
        if stream is not None:
            todo = [p for p in todo if p.stream == stream]
        if not todo:
            return None
        chosen = [p for p in todo if p.stream == todo[0].stream]
        tables: list[pa.Table] = []
        left = max_rows
        for position in chosen:
            if left:
                table = self._rows(position, left, columns, system_columns)
                left -= table.num_rows
                tables.append(table)
                self._turn = _key(position)
        found = pa.concat_tables(tables)
        return found.replace_schema_metadata({STREAM: chosen[0].stream.encode()})

    def commit(self) -> None:
        """Make it last how far the reader came; a fenced reader gets an error."""
        moves = dict(self._read)
        now = self.group.store.clock()

        def work(on: Connection) -> None:
            self._hold(on, now)
            state = readers.state(on, self.group.name, now)
            for (stream, name), (to, time) in moves.items():
                if stream not in state.stream_ids:
                    continue  # The stream was deleted.
                if name in state.lineages[stream].ancestors_of(state.cut(stream)):
                    continue  # Repeated after a lost answer: the group is past it already.
                if not readers.advance(
                    on,
                    self.group.name,
                    state.stream_ids[stream],
                    SegmentId.parse(name).number,
                    reader=self.name,
                    old=self._committed[stream, name],
                    new=to,
                    time=time,
                ):
                    raise errors.reader_fenced(self.group.name, self.name)

        self.group.store.database.write(work)
        self._read.clear()
        # Apart from the commit, so that a repeated one finds its segments still its own.
        self._settle(now)

    def leave(self) -> None:
        """Be no reader any more; what is committed stays, what it owned is free."""

        def work(on: Connection) -> None:
            if readers.lock(on, self.group.name) and readers.renew(
                on, self.group.name, self.name, self.token, 1
            ):
                readers.fence(on, self.group.name, [self.name])

        self.group.store.database.write(work)
        self._read.clear()
        self._committed.clear()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def segments(self) -> list[Key]:
        """What it owns, by stream and segment, as of its last read or commit."""
        return sorted(self._committed)

    def time_window(self, stream: str) -> TimeWindow:
        """Between which two numbers the reader has read a stream: marks it has passed, and ahead.

        Without a segment of the stream there is none.
        """
        state = self.group.state()
        if not any(p.stream == stream for p in self._own(state)):
            return TimeWindow(None, None)
        ahead = {name: at for (of, name), (at, _) in self._read.items() if of == stream}
        place = self.group.place_of(state, stream, self.name, ahead)
        return self.group.windows(state, stream, [place])[0]

    # ---- inside ----

    def _look(self) -> GroupState:
        """The group as it is now; settled, and the reader renewed, when that is due."""
        state, now = self.group.state(), self.group.store.clock()
        if self.name not in state.live or state.live[self.name] != self.token:
            return self._settle(now)
        due = self._renewed_at is None or now - self._renewed_at >= micros(self.group.expiry) // 3
        if due or self.group.is_unsettled(state, self.name):
            return self._settle(now)
        self._adopt(state, self._renewed_at)
        return state

    def _settle(self, now: Instant) -> GroupState:
        def work(on: Connection) -> GroupState:
            self._hold(on, now)
            return self.group.settle(on, self.name, now, self._read)

        state = self.group.store.database.write(work)
        self._adopt(state, now)
        return state

    def _hold(self, on: Connection, now: Instant) -> None:
        """Lock the group and stay a reader of it; an error when somebody has ended that."""
        if not readers.lock(on, self.group.name):
            raise errors.unknown_reader_group(self.group.name)
        expires_at = now + micros(self.group.expiry)
        if not readers.renew(on, self.group.name, self.name, self.token, expires_at):
            raise errors.reader_fenced(self.group.name, self.name)

    def _adopt(self, state: GroupState, renewed_at: Instant | None) -> None:
        self._renewed_at = renewed_at
        self._committed = {_key(p): p.offset for p in self._own(state)}

    def _own(self, state: GroupState) -> list[Position]:
        return [p for p in state.positions if p.reader == self.name]

    def _at(self, position: Position) -> int:
        return self._read.get(_key(position), (position.offset, None))[0]

    def _rows(
        self,
        position: Position,
        most: int,
        columns: Sequence[str] | None,
        system_columns: Sequence[str],
    ) -> pa.Table:
        start = self._at(position)
        end = min(position.record.end, start + most)
        wanted = tuple(dict.fromkeys((*system_columns, "_event_time")))
        batches = list(
            reading.read(
                self.group.store,
                position.stream,
                position.record.name,
                start,
                end,
                columns,
                system_columns=wanted,
            )
        )
        table = pa.Table.from_batches(batches)
        before = self._read.get(_key(position), (0, position.time))[1]
        latest = pc.max(table.column("_event_time").cast(pa.int64())).as_py()
        times = [time for time in (before, latest) if time is not None]
        self._read[_key(position)] = (end, max(times, default=None))
        return table if "_event_time" in system_columns else table.drop_columns("_event_time")


def _key(position: Position) -> Key:
    return position.stream, position.record.name
