"""The rows of the Spark benchmarks: one stream of the store, read by all rivals from its files.

The stream has some partitions, and is delivered as a backlog is: one partition after the other.
Inside a partition rows are a little out of order. Stock Spark and DuckDB read the very chunk files
that Tidegate reads, so nobody has a better layout than another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.store import Store
from tidegate.store.routing import hashes, segment_index

SECOND = 1_000_000
BEGIN = 1_790_000_000 * SECOND
STREAM = "readings"
FLUSH = 500_000
DISORDER = timedelta(milliseconds=500)
SCHEMA = pa.schema(
    [
        ("device", pa.int64()),
        ("value", pa.float64()),
        ("amount", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class Rows:
    """So many rows over so many keys and partitions, spread over so much event time."""

    rows: int = 40_000_000
    keys: int = 1_000
    partitions: int = 4
    seconds: int = 400
    slow: float = 1.0
    """How many times fewer rows the last partition has."""
    by_time: bool = False
    """Delivered in the order of time, all partitions together."""

    @property
    def name(self) -> str:
        """The folder of the store that holds them."""
        name = f"{self.rows}-{self.keys}-{self.partitions}-{self.seconds}-{self.slow:g}"
        return f"{name}-by-time" if self.by_time else name

    def in_order(self) -> Rows:
        """The same rows, delivered as they happened."""
        return replace(self, by_time=True)


def written(folder: Path, rows: Rows) -> Store:
    """A store with the rows in it; written once, found again afterwards."""
    place = folder / rows.name
    found = (place / "whole").exists()
    store = Store.open(place)
    if found:
        return store
    store.create_stream(
        STREAM,
        SCHEMA,
        event_column="at",
        routing_key=("device",),
        segments=rows.partitions,
        max_future=None,
    )
    keys = _keys_by_segment(store, rows)
    weights = np.ones(rows.partitions)
    weights[-1] /= rows.slow
    counts = (weights / weights.sum() * rows.rows).astype(np.int64)
    counts[0] += rows.rows - counts.sum()
    with store.writer(STREAM, "backlog", notes_time=False, flush_rows=FLUSH) as writer:
        for number, first, size in _deliveries(counts.tolist(), rows):
            dice = np.random.default_rng((number, first))
            writer.append(_table(dice, keys[number], first, size, int(counts[number]), rows))
            writer.flush()
        # One more row per partition, two minutes later, closes the last windows for everybody.
        writer.append(_closing(keys, rows))
    (place / "whole").touch()
    return store


def files(store: Store) -> list[str]:
    """The files of the stream, in the order they were written."""
    root = Path(store.files.root) / STREAM
    return [str(p) for p in sorted(root.rglob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)]


def _deliveries(counts: list[int], rows: Rows) -> list[tuple[int, int, int]]:
    """(partition, first row, rows): one partition after the other, or all of them by time."""
    found = [
        (number, first, min(FLUSH, count - first))
        for number, count in enumerate(counts)
        for first in range(0, count, FLUSH)
    ]
    return sorted(found, key=lambda d: d[1] / counts[d[0]]) if rows.by_time else found


def _table(
    dice: np.random.Generator,
    keys: npt.NDArray[np.int64],
    first: int,
    count: int,
    all_: int,
    rows: Rows,
) -> pa.Table:
    step = rows.seconds * SECOND / all_
    at = BEGIN + ((first + np.arange(count)) * step).astype(np.int64)
    at = at - dice.integers(0, int(DISORDER / timedelta(microseconds=1)), count)
    return pa.table(
        {
            "device": keys[dice.integers(0, len(keys), count)],
            "value": dice.random(count) * 100,
            "amount": dice.integers(0, 1_000, count),
            "at": pa.array(np.maximum(at, BEGIN)).cast(SCHEMA.field("at").type),
        },
        schema=SCHEMA,
    )


def _closing(keys: list[npt.NDArray[np.int64]], rows: Rows) -> pa.Table:
    at = BEGIN + (rows.seconds + 120) * SECOND
    return pa.table(
        {
            "device": [int(mine[0]) for mine in keys],
            "value": [0.0] * len(keys),
            "amount": [0] * len(keys),
            "at": pa.array([at] * len(keys)).cast(SCHEMA.field("at").type),
        },
        schema=SCHEMA,
    )


def _keys_by_segment(store: Store, rows: Rows) -> list[npt.NDArray[np.int64]]:
    """The keys of every partition: a backlog is delivered partition by partition."""
    found: list[list[int]] = [[] for _ in range(rows.partitions)]
    names = np.arange(rows.keys * 4)
    segments = [record.segment for record in store.segments(STREAM)]
    place = segment_index(hashes(pa.table({"device": names}), ["device"]), segments)
    share = rows.keys // rows.partitions
    for key, at in zip(names.tolist(), place.tolist(), strict=True):
        mine = found[at]
        if len(mine) < share:
            mine.append(key)
    return [np.array(keys, dtype=np.int64) for keys in found]
