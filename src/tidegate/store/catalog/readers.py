"""Questions about reader groups: who reads, who owns which segment, and how far it was read.

The positions of a group in a stream are a whole cut at every moment: a successor enters in the step
in which the last of its predecessors is read to its end, and they leave. Whoever changes anything
takes the row of the group first, so changes come one after the other. A reader is fenced by a token
that a new reader of its name, its expiry and a restore raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tidegate.eventtime.instants import Instant
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.marks.segment import SegmentId
from tidegate.store.catalog import streams
from tidegate.store.catalog.schema import reader_groups, reader_positions, readers
from tidegate.store.catalog.schema import streams as stream_rows
from tidegate.store.catalog.streams import SegmentRecord

GONE: Final = 0
"""When a reader expires that has left."""


@dataclass(frozen=True)
class Position:
    """How far a group has read a segment, the largest time it met, and who goes on."""

    stream: str
    record: SegmentRecord
    offset: int
    time: Instant | None
    reader: str | None

    @property
    def rows_behind(self) -> int:
        """The rows that are still to be read."""
        return max(self.record.end - self.offset, 0)

    @property
    def time_behind(self) -> int:
        """How far the times read lie behind the largest in the segment, in microseconds."""
        if not self.rows_behind or self.record.max_time is None:
            return 0
        start = self.record.min_time if self.time is None else self.time
        return max(self.record.max_time - (start or 0), 0)

    @property
    def at_sealed_end(self) -> bool:
        """Whether nothing more will ever come."""
        return not self.record.segment.is_open and self.offset >= self.record.end


@dataclass(frozen=True)
class GroupState:
    """A reader group at one moment."""

    positions: tuple[Position, ...]
    lineages: Mapping[str, Lineage]
    stream_ids: Mapping[str, int]
    live: Mapping[str, int]
    """Readers whose time is not over, with their tokens."""
    lapsed: tuple[str, ...]
    """Readers whose time is over, and who were not fenced yet."""

    def owned(self) -> dict[str, int]:
        """How many segments each live reader has."""
        counts = dict.fromkeys(self.live, 0)
        for position in self.positions:
            if position.reader in counts:
                counts[position.reader] += 1
        return counts

    def cut(self, stream: str) -> Cut:
        """The group's place in a stream."""
        return Cut((p.record.name, p.offset) for p in self.positions if p.stream == stream)

    def frontier(self, stream: str) -> set[str]:
        """The segments the group may read, when all that were read to their end are passed."""
        here = {p.record.name: p for p in self.positions if p.stream == stream}
        lineage = self.lineages[stream]
        passed = lineage.ancestors_of(here)
        return set(
            lineage.frontier(
                lambda name: name in passed or (name in here and here[name].at_sealed_end)
            )
        )


# ---- the group ----


def create(on: Connection, group: str, now: Instant) -> bool:
    """Insert a group; return whether there was none."""
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    added = on.execute(
        dialect.insert(reader_groups)
        .values(name=group, created_at=now, revision=0)
        .on_conflict_do_nothing()
        .returning(reader_groups.c.name)
    )
    return added.one_or_none() is not None


def lock(on: Connection, group: str) -> bool:
    """Take the group's row until the transaction ends; return whether there is such a group."""
    moved = on.execute(
        update(reader_groups)
        .where(reader_groups.c.name == group)
        .values(revision=reader_groups.c.revision + 1)
    )
    return moved.rowcount == 1


def remove(on: Connection, group: str) -> bool:
    """Delete a group with its readers and positions; return whether there was one."""
    moved = on.execute(delete(reader_groups).where(reader_groups.c.name == group))
    return moved.rowcount == 1


def place(on: Connection, group: str, stream_id: int, cut: Mapping[str, int]) -> None:
    """Put a group somewhere in a stream; nobody owns the segments yet."""
    on.execute(delete(reader_positions).where(*_of(group, stream_id)))
    enter(on, group, stream_id, cut)


def enter(on: Connection, group: str, stream_id: int, cut: Mapping[str, int]) -> None:
    """Add segments that nobody owns yet."""
    rows = [
        {
            "group_name": group,
            "stream_id": stream_id,
            "segment": SegmentId.parse(name).number,
            "position": offset,
            "time": None,
            "reader": None,
        }
        for name, offset in cut.items()
    ]
    if rows:
        on.execute(insert(reader_positions), rows)


def depart(on: Connection, group: str, stream_id: int, names: Iterable[str]) -> None:
    """Take segments out that are read to their end."""
    numbers = [SegmentId.parse(name).number for name in names]
    on.execute(
        delete(reader_positions).where(
            *_of(group, stream_id), reader_positions.c.segment.in_(numbers)
        )
    )


def state(on: Connection, group: str, now: Instant) -> GroupState:
    """Everything about a group at this moment."""
    rows = on.execute(
        select(reader_positions, stream_rows.c.name)
        .join(stream_rows, stream_rows.c.id == reader_positions.c.stream_id)
        .where(reader_positions.c.group_name == group)
        .order_by(stream_rows.c.name, reader_positions.c.segment)
    ).all()
    ids = {row.name: row.stream_id for row in rows}
    records = {name: streams.segment_records(on, stream_id) for name, stream_id in ids.items()}
    by_number = {
        (name, record.segment.id.number): record for name in ids for record in records[name]
    }
    known = on.execute(
        select(readers.c.name, readers.c.token, readers.c.expires_at)
        .where(readers.c.group_name == group, readers.c.expires_at != GONE)
        .order_by(readers.c.name)
    ).all()
    return GroupState(
        positions=tuple(
            Position(row.name, by_number[row.name, row.segment], row.position, row.time, row.reader)
            for row in rows
        ),
        lineages={name: Lineage(r.segment for r in records[name]) for name in ids},
        stream_ids=ids,
        live={row.name: row.token for row in known if row.expires_at > now},
        lapsed=tuple(row.name for row in known if row.expires_at <= now),
    )


# ---- readers ----


def join(on: Connection, group: str, reader: str, expires_at: Instant) -> int:
    """Be a reader of the group, in place of an earlier one of that name; return the token."""
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    joined = on.execute(
        dialect.insert(readers)
        .values(group_name=group, name=reader, token=1, expires_at=expires_at)
        .on_conflict_do_update(
            index_elements=[readers.c.group_name, readers.c.name],
            set_={"token": readers.c.token + 1, "expires_at": expires_at},
        )
        .returning(readers.c.token)
    )
    token: int = joined.scalar_one()
    return token


def renew(on: Connection, group: str, reader: str, token: int, expires_at: Instant) -> bool:
    """Stay a reader, unless it was fenced; return whether it is one."""
    moved = on.execute(
        update(readers)
        .where(
            readers.c.group_name == group,
            readers.c.name == reader,
            readers.c.token == token,
            readers.c.expires_at != GONE,
        )
        .values(expires_at=expires_at)
    )
    return moved.rowcount == 1


def fence(on: Connection, group: str, names: Iterable[str]) -> None:
    """Have readers be none any more; what they own is free. Their rows keep the token."""
    gone = list(names)
    on.execute(
        update(readers)
        .where(readers.c.group_name == group, readers.c.name.in_(gone))
        .values(token=readers.c.token + 1, expires_at=GONE)
    )
    on.execute(
        update(reader_positions)
        .where(reader_positions.c.group_name == group, reader_positions.c.reader.in_(gone))
        .values(reader=None)
    )


# ---- positions ----


def assign(
    on: Connection, group: str, stream_id: int, number: int, *, old: str | None, new: str | None
) -> bool:
    """Have a segment change hands; return whether it was in the old ones."""
    moved = on.execute(
        update(reader_positions)
        .where(
            *_of(group, stream_id),
            reader_positions.c.segment == number,
            reader_positions.c.reader.is_not_distinct_from(old),
        )
        .values(reader=new)
    )
    return moved.rowcount == 1


def advance(
    on: Connection,
    group: str,
    stream_id: int,
    number: int,
    *,
    reader: str,
    old: int,
    new: int,
    time: Instant | None,
) -> bool:
    """Move a position on, if its owner is still that reader; return whether it was.

    A move that was made already, and whose answer was lost, is no other one.
    """
    moved = on.execute(
        update(reader_positions)
        .where(
            *_of(group, stream_id),
            reader_positions.c.segment == number,
            reader_positions.c.reader == reader,
            reader_positions.c.position.in_((old, new)),
        )
        .values(position=new, time=time)
    )
    return moved.rowcount == 1


def _of(group: str, stream_id: int) -> tuple[Any, Any]:
    return reader_positions.c.group_name == group, reader_positions.c.stream_id == stream_id
