"""A stream of the store as the input of a stock query: its rows in the order of their commits.

What was committed together, over all segments, came together; a partition is a segment, or the
value of a column.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import errors
from tidegate.cli.doctor.arrivals import Arrivals, Batching, Piece
from tidegate.marks.lineage import Lineage
from tidegate.store.reading import read_between
from tidegate.store.store import Store

SYSTEM = ("_event_time", "_timestamp", "_partition")


def read_stream(store: Store, name: str, partition: str | None, batching: Batching) -> Arrivals:
    """All rows of a stream that can be read, as a query with this batching would meet them."""
    schema = store.describe(name).config.schema
    if partition is not None and partition not in schema.names:
        raise errors.input_column_missing(f'stream "{name}"', partition, schema.names)
    own = [] if partition is None else [partition]
    found = list(read_between(store, name, columns=own, system_columns=SYSTEM))
    if not found:
        raise errors.input_not_read(f'stream "{name}"', "there is no row in it")
    rows = pa.Table.from_batches(found)
    committed = rows["_timestamp"].cast(pa.int64()).to_numpy()
    order = np.argsort(committed, kind="stable")
    by = "_partition" if partition is None else partition
    codes = pc.cast(rows[by], pa.string()).fill_null("null").combine_chunks().dictionary_encode()
    times = rows["_event_time"].cast(pa.int64()).to_numpy()[order]
    places = codes.indices.to_numpy()[order].astype(np.int32)
    timed = np.ones(len(order), np.bool_)
    cuts = np.flatnonzero(np.diff(committed[order])) + 1
    pieces = [
        Piece(times[start:end], timed[start:end], places[start:end])
        for start, end in pairwise([0, *cuts.tolist(), len(order)])
    ]
    names = codes.dictionary.to_pylist()
    return Arrivals.joined(
        names,
        pieces,
        batching,
        files=len(pieces),
        successors=_successors(store, name, names) if partition is None else {},
    )


def _successors(store: Store, stream: str, names: list[str]) -> dict[str, tuple[str, ...]]:
    """Who goes on for each sealed segment; those without rows are looked through."""
    lineage = Lineage(record.segment for record in store.segments(stream))

    def heirs(name: str) -> set[str]:
        found = lineage.successors_of(name)
        return {heir for one in found for heir in ([one] if one in names else heirs(one))}

    sealed = [name for name in names if not lineage.segment(name).is_open]
    return {name: tuple(sorted(heirs(name))) for name in sealed}
