"""The chunks that can hold a time, by offset or by time: whichever way passes fewer of them.

Two indexes lead to the chunks between two cuts that can hold a time in [a, b). By offset one passes
all chunks between the cuts: few when the question is about what is new, however long the history.
By time one passes all chunks with such times: few when a slice asks, however far apart its cuts.
Each is the whole table for the other's question. So where both pass more than a few, both are
counted first, in their indexes and not much further than the shorter one goes: what is looked at is
a small multiple of the shorter way, what is fetched hardly more than it, and neither grows with the
longer one.

The way by time goes by length class: chunks are filed by the bits of their length in time, and
those of one class that reach `a` begin less than 2^class before it. So there is one short index
range per class, where a pair of conditions on minimum and maximum would scan half the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, text

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Numbers

Ranges = Mapping[int, tuple[int, int]]
"""Offsets [begin, end) by the number of the segment."""

_FEW: Final = 64
"""So few chunks are fetched before anything is counted."""
_COUNTED: Final = 1024
"""So many are counted at first, and four times as many in every round that follows."""
_AT_ONCE: Final = 50
"""Index ranges in one statement."""

# Written out, with the numbers in them: building these statements would take longer than they do.
# A chunk without times has a minimum above its maximum.
_COLUMNS: Final = (
    "segment, start_offset, end_offset, bytes, coalesce(min_time, 1), coalesce(max_time, 0), "
    "disorder"
)
_WIDTH: Final = 7
_HOLDING: Final = """stream_id = {stream:d} AND segment = {segment:d} AND end_offset > {begin:d}
    AND end_offset <= coalesce((
        SELECT min(end_offset) FROM chunks
        WHERE stream_id = {stream:d} AND segment = {segment:d} AND end_offset >= {end:d}
    ), {end:d})"""
"""Chunks lie side by side, so the last one is the first that ends at or behind the end."""

_CLASSES: Final = text(
    """
    WITH RECURSIVE found(class) AS (
        SELECT min(width_class) FROM chunks WHERE stream_id = :stream
        UNION ALL
        SELECT (SELECT min(width_class) FROM chunks
                WHERE stream_id = :stream AND width_class > found.class)
        FROM found WHERE found.class IS NOT NULL
    )
    SELECT class FROM found WHERE class IS NOT NULL
    """
)
"""The length classes of a stream, each found by one step in the index."""


class _Way(NamedTuple):
    """Ranges of one index that have all chunks asked for, and others."""

    key: str
    """The column that orders each range: in order, a limit is a few steps and not a scan."""
    ranges: Sequence[str]
    wanted: str
    """What more is asked of a chunk; not of the index."""


def by_offsets(on: Connection, stream_id: int, ranges: Ranges) -> Numbers:
    """The chunks with rows in ranges of offsets.

    Where rows are truncated it can have the first chunk behind them, too.
    """
    return _fetched(on, _offset_way(stream_id, ranges))


def that_can_hold(on: Connection, stream_id: int, ranges: Ranges, a: Known, b: Instant) -> Numbers:
    """The chunks with rows in ranges of offsets that can hold a time in [a, b), and others.

    The caller leaves out what lies outside of its offsets or times: this only has to be quick.
    """
    offsets = _offset_way(stream_id, ranges, a, b)
    rows = _few(on, offsets)
    if len(rows) <= _FEW:
        return rows
    times = _time_way(on, stream_id, a, b)
    rows = _few(on, times)
    if len(rows) <= _FEW:
        return rows
    return _fetched(on, _shorter(on, offsets, times))


# ---- two ways ----


def _offset_way(
    stream_id: int, ranges: Ranges, a: Known = UNKNOWN, b: Instant | None = None
) -> _Way:
    """Through all chunks of the offsets; those with other times are passed, but not fetched."""
    holding = [
        _HOLDING.format(stream=stream_id, segment=number, begin=begin, end=end)
        for number, (begin, end) in ranges.items()
    ]
    # The plus keeps the database from the index on times: the offsets are what was counted.
    wanted = "" if b is None else f" AND +min_time < {b:d}"
    return _Way("end_offset", holding, wanted + _reaching(a))


def _time_way(on: Connection, stream_id: int, a: Known, b: Instant) -> _Way:
    """Through the chunks of all segments that begin where one that has such times can begin."""

    def beginning(width: int) -> str:
        begin = f"stream_id = {stream_id:d} AND width_class = {width:d} AND min_time < {b:d}"
        if a is UNKNOWN:
            return begin
        return f"{begin} AND min_time > {max(a - (1 << width), -(1 << 62)):d}"

    classes = on.execute(_CLASSES, {"stream": stream_id}).scalars()
    return _Way("min_time", list(map(beginning, classes)), _reaching(a))


def _reaching(a: Known) -> str:
    return "" if a is UNKNOWN else f" AND max_time >= {a:d}"


def _shorter(on: Connection, offsets: _Way, times: _Way) -> _Way:
    """The way with fewer chunks; neither is counted much further than the shorter one goes."""
    most = _COUNTED
    while True:
        by_time = _count(on, times, most)
        by_offset = _count(on, offsets, min(most, by_time))
        if min(by_time, by_offset) <= most:
            return offsets if by_offset < by_time else times
        most *= 4


# ---- rows of the table ----


def _fetched(on: Connection, way: _Way) -> Numbers:
    """The chunks of a way that are wanted."""
    parts = [f"SELECT {_COLUMNS} FROM chunks WHERE {one}{way.wanted}" for one in way.ranges]
    rows: list[Sequence[Any]] = []
    for statement in _bundled(parts):
        rows.extend(on.exec_driver_sql(statement).all())
    return _table(rows)


def _few(on: Connection, way: _Way) -> Numbers:
    """All chunks that a way passes, wanted or not, or one more than a few."""
    rows: list[Sequence[Any]] = []
    for statement in _bundled(_first(way, _COLUMNS, _FEW + 1)):
        rows.extend(on.exec_driver_sql(f"{statement} LIMIT {_FEW + 1 - len(rows):d}").all())
        if len(rows) > _FEW:
            break
    return _table(rows)


def _count(on: Connection, way: _Way, most: int) -> int:
    """How many chunks a way passes, or one more than `most`; the index alone is read."""
    count = 0
    for statement in _bundled(_first(way, "1", most + 1)):
        passed = f"SELECT count(*) FROM ({statement} LIMIT {most + 1 - count:d}) AS passed"
        count += on.exec_driver_sql(passed).scalar_one()
        if count > most:
            break
    return count


def _first(way: _Way, columns: str, most: int) -> list[str]:
    """The first chunks of every range."""
    return [
        f"SELECT * FROM (SELECT {columns} FROM chunks WHERE {one} "
        f"ORDER BY {way.key} LIMIT {most:d}) AS few"
        for one in way.ranges
    ]


def _bundled(parts: Sequence[str]) -> Iterator[str]:
    """Questions as few statements."""
    for first in range(0, len(parts), _AT_ONCE):
        yield " UNION ALL ".join(parts[first : first + _AT_ONCE])


def _table(rows: Sequence[Sequence[Any]]) -> Numbers:
    """Rows of the table as one array."""
    flat = chain.from_iterable(rows)
    return np.fromiter(flat, dtype=np.int64, count=_WIDTH * len(rows)).reshape(-1, _WIDTH)
