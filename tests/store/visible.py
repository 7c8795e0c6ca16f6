"""What is visible in a stream, read in the most naive way: file by file, from the catalog."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import Connection, select

from tidegate.store import Store
from tidegate.store.catalog import streams
from tidegate.store.catalog.schema import chunks


def visible(store: Store, stream: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of every segment in offset order, with the system column."""

    def work(on: Connection) -> list[Any]:
        found = streams.get(on, stream)
        asked = select(chunks).where(chunks.c.stream_id == found.id)
        return list(on.execute(asked.order_by(chunks.c.segment, chunks.c.start_offset)))

    records = store.segments(stream)
    rows: dict[str, list[dict[str, Any]]] = {record.name: [] for record in records}
    names = {record.segment.id.number: record.name for record in records}
    for chunk in store.database.read(work):
        held = rows[names[chunk.segment]]
        assert chunk.start_offset == len(held)
        with store.files.open(chunk.path) as source:
            found = pq.read_table(source).slice(chunk.skip).to_pylist()
        assert chunk.end_offset - chunk.start_offset == len(found)
        held.extend(found)
    for record in records:
        assert record.end == len(rows[record.name])
    return rows


def all_of(store: Store, stream: str, column: str) -> list[Any]:
    """One column of all visible rows, segment after segment."""
    return [row[column] for rows in visible(store, stream).values() for row in rows]
