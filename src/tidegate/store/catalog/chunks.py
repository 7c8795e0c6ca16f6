"""Making chunks visible: the one place where rows get their offsets.

Offsets and commit instants come from the segments' counters, whose rows are locked in the order of
their numbers; so they grow without gaps, whoever else appends, and two who append to the same
segments never wait for each other in a circle. All of it is one transaction of the caller's: the
rows of all segments appear at one moment, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from tidegate.eventtime.instants import Instant
from tidegate.marks.segment import SegmentId
from tidegate.store.catalog import intents
from tidegate.store.catalog.schema import chunks, commit_runs, segments

Ranges = dict[str, tuple[int, int]]
"""By segment name, the offsets [start, end) that rows got."""


@dataclass(frozen=True)
class Piece:
    """A file that waits to become visible in one segment, and what is known of its rows.

    `rows` are those that become visible: without the first `skip` of the file. Rows without event
    time have the instant of their commit: then the times are absent.
    """

    segment: str
    path: str
    rows: int
    bytes: int
    min_time: Instant | None
    max_time: Instant | None
    disorder: int
    skip: int = 0

    @property
    def number(self) -> int:
        """The number of its segment."""
        return SegmentId.parse(self.segment).number


class SegmentSealed(Exception):
    """Some segments take no rows any more: the caller routes these rows again."""

    def __init__(self, stream_id: int, names: Iterable[str]) -> None:
        super().__init__(stream_id, sorted(names))
        self.stream_id = stream_id
        self.names = frozenset(names)


def publish(
    on: Connection,
    stream_id: int,
    pieces: Sequence[Piece],
    now: Instant,
    *,
    staged: bool = False,
) -> Ranges:
    """Make pieces visible, those of one segment in the order given; return their offsets.

    The commit instant is `now`, or the latest one of a segment if the clock has stepped back.
    Raises `SegmentSealed`, and then the caller's transaction must not be committed. The uploads
    must still be announced, unless they are `staged`: held by an open transaction.
    """
    by_number: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_number.setdefault(piece.number, []).append(piece)
    counters = _locked(on, stream_id, by_number)
    at = max([now, *(row.last_commit_at for row in counters.values())])
    news: dict[str, list[dict[str, Any]]] = {"chunks": [], "runs": [], "segments": []}
    ranges: Ranges = {}
    for number in sorted(by_number):
        row, added = counters[number], by_number[number]
        if row.next_offset == 0 or row.last_commit_at != at:
            news["runs"].append(
                {
                    "stream_id": stream_id,
                    "segment": number,
                    "start_offset": row.next_offset,
                    "committed_at": at,
                }
            )
        after = _appended(row, added, at, news["chunks"])
        news["segments"].append({"of_stream": stream_id, "of_number": number, **after})
        ranges[added[0].segment] = (row.next_offset, after["next_offset"])
    if news["runs"]:
        on.execute(insert(commit_runs), news["runs"])
    if news["chunks"]:
        on.execute(insert(chunks), news["chunks"])
        on.execute(
            update(segments).where(
                segments.c.stream_id == bindparam("of_stream"),
                segments.c.number == bindparam("of_number"),
            ),
            news["segments"],
        )
    if not staged:
        intents.redeem(on, [piece.path for piece in pieces])
    return ranges


def _locked(
    on: Connection, stream_id: int, by_number: Mapping[int, Sequence[Piece]]
) -> Mapping[int, Any]:
    rows = on.execute(
        select(segments)
        .where(segments.c.stream_id == stream_id, segments.c.number.in_(sorted(by_number)))
        .order_by(segments.c.number)
        .with_for_update()
    ).all()
    found = {row.number: row for row in rows if row.sealed_in is None}
    if len(found) < len(by_number):
        gone = [by_number[number][0].segment for number in by_number if number not in found]
        raise SegmentSealed(stream_id, gone)
    return found


def _appended(
    row: Any, added: Sequence[Piece], at: Instant, into: list[dict[str, Any]]
) -> dict[str, Any]:
    """Add the rows of chunks to a list; return the segment's columns after them."""
    offset, size, disorder = row.next_offset, row.bytes, row.disorder
    lowest, running = row.min_time, row.max_time
    for piece in added:
        low = at if piece.min_time is None else piece.min_time
        high = at if piece.max_time is None else piece.max_time
        # Behind the maximum of the segment: that of this chunk, or the one before it.
        behind = max(piece.disorder, 0 if running is None else running - low)
        running = high if running is None else max(running, high)
        lowest = low if lowest is None else min(lowest, low)
        disorder = max(disorder, behind)
        into.append(
            {
                "stream_id": row.stream_id,
                "segment": row.number,
                "start_offset": offset,
                "end_offset": offset + piece.rows,
                "skip": piece.skip,
                "bytes": piece.bytes,
                "min_time": low,
                "max_time": high,
                "running_max": running,
                "disorder": behind,
                "width_class": (high - low).bit_length(),
                "path": piece.path,
                "committed_at": at,
            }
        )
        offset, size = offset + piece.rows, size + piece.bytes
    return {
        "next_offset": offset,
        "bytes": size,
        "min_time": lowest,
        "max_time": running,
        "disorder": disorder,
        "last_commit_at": at,
    }
