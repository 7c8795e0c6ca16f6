"""Where bad rows go: `<stream>.errors`, an ordinary stream, created when the first one comes.

A routed row is written once, in the transaction that counts it as taken: with its reason, the
column and value that are to blame, the whole row as it came, who wrote it and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tidegate.eventtime.instants import Instant
from tidegate.store.chunk_file import EVENT_TIME, EVENT_TIME_TYPE
from tidegate.store.encoding import BadRow
from tidegate.store.lane import Lane

if TYPE_CHECKING:
    from tidegate.store.store import Store

SUFFIX: Final = ".errors"

SCHEMA: Final = pa.schema(
    [
        ("reason", pa.string()),
        ("column", pa.string()),
        ("value", pa.string()),
        ("row", pa.string()),
        ("writer", pa.string()),
        ("failed_at", EVENT_TIME_TYPE),
    ]
)


def errors_lane(store: Store, stream: str) -> Lane:
    """The way into the stream of bad rows; it is created if it is not there."""
    name = stream + SUFFIX
    if name not in store.list_streams():
        store.create_stream(name, SCHEMA, exist_ok=True, event_column="failed_at", max_future=None)
    return Lane(store, name)


def errors_table(
    bad: Sequence[BadRow], writer: str | None, failed_at: Sequence[Instant]
) -> pa.Table:
    """Bad rows as rows of that stream."""
    times = pa.array(failed_at, pa.int64()).view(EVENT_TIME_TYPE)
    return pa.table(
        {
            "reason": pa.array([row.reason for row in bad], pa.string()),
            "column": pa.array([row.column for row in bad], pa.string()),
            "value": pa.array([row.value for row in bad], pa.string()),
            "row": pa.array([row.original for row in bad], pa.string()),
            "writer": pa.array([writer] * len(bad), pa.string()),
            "failed_at": times,
            EVENT_TIME: times,
        }
    )
