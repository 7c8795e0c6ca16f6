"""Taking chunks out of sight: truncated ones, and those that a larger one replaces.

Their files are listed as replaced, and live on for a grace period: a reader may have just looked
them up. Whoever calls this holds the lock on the segment's row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, insert, select

from tidegate.eventtime.instants import Instant
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.catalog.schema import chunks, commit_runs, replaced

_AT_ONCE = 500


def remove(on: Connection, gone: Sequence[ChunkRow], now: Instant) -> bool:
    """Remove chunks; return whether all of them were still there."""
    removed = 0
    for first in range(0, len(gone), _AT_ONCE):
        some = gone[first : first + _AT_ONCE]
        ids = [chunk.id for chunk in some]
        removed += on.execute(delete(chunks).where(chunks.c.id.in_(ids))).rowcount
        on.execute(insert(replaced), [{"path": chunk.path, "replaced_at": now} for chunk in some])
    return removed == len(gone)


def forget_runs(on: Connection, stream_id: int, segment: int, before: int) -> None:
    """Forget the commit instants of rows before an offset; the run around it stays."""
    of_segment = (commit_runs.c.stream_id == stream_id, commit_runs.c.segment == segment)
    around = on.execute(
        select(func.max(commit_runs.c.start_offset)).where(
            *of_segment, commit_runs.c.start_offset <= before
        )
    ).scalar()
    if around is not None:
        on.execute(delete(commit_runs).where(*of_segment, commit_runs.c.start_offset < around))
