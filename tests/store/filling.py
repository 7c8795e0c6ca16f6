"""Rows in a stream, chunk by chunk, with the times a test wants."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.store import Store
from tidegate.store.catalog import chunk_rows, intents
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.catalog.chunks import Piece, publish
from tidegate.store.chunk_file import EVENT_TIME, EVENT_TIME_TYPE, encode_chunk

TIMED = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
PLAIN = pa.schema([("id", pa.int64())])


def fill(
    store: Store, stream: str, segment: str, times: Sequence[int], *, first_id: int | None = None
) -> tuple[int, int]:
    """Append one chunk of rows with these times; ids count the rows of the segment."""
    record = next(r for r in store.segments(stream) if r.name == segment)
    begin = record.end if first_id is None else first_id
    columns = {"id": pa.array(np.arange(begin, begin + len(times)))}
    if store.describe(stream).config.event_column is not None:
        column = pa.array(np.asarray(times, dtype=np.int64)).cast(EVENT_TIME_TYPE)
        columns |= {"at": column, EVENT_TIME: column}
    content, stats = encode_chunk(pa.table(columns))
    path = f"{stream}/{segment}/{uuid.uuid4().hex}.parquet"
    store.database.write(lambda on: intents.announce(on, [path], store.clock()))
    store.files.write(path, content)
    piece = Piece(
        segment, path, stats.rows, stats.bytes, stats.min_time, stats.max_time, stats.disorder
    )
    stream_id = store.describe(stream).id
    return store.database.write(lambda on: publish(on, stream_id, [piece], store.clock()))[segment]


def chunks_of(store: Store, stream: str, segment: str) -> list[ChunkRow]:
    """The chunks of a segment, by offset."""
    number = int(segment.split(".")[0])
    stream_id = store.describe(stream).id
    return store.database.read(lambda on: chunk_rows.between(on, stream_id, number, 0, 1 << 60))
