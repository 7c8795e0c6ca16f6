"""Small streams of numbered rows, and what a reader makes of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tidegate.store import Store
from tidegate.store.reader import Reader

SCHEMA = pa.schema([("key", pa.int64()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def create(store: Store, name: str, *, segments: int = 1) -> None:
    """A stream by key, with the time of a row in `at`."""
    store.create_stream(
        name,
        SCHEMA,
        event_column="at",
        routing_key=("key",),
        segments=segments,
        max_future=None,
    )


def table(numbers: Iterable[int], *, keys: int = 8) -> pa.Table:
    """Rows whose time is their number, and whose key follows from it."""
    given = list(numbers)
    return pa.table(
        [
            pa.array([n % keys for n in given], pa.int64()),
            pa.array(given, pa.int64()),
            pa.array(given, pa.int64()).cast(SCHEMA.field("at").type),
        ],
        schema=SCHEMA,
    )


def write(store: Store, name: str, numbers: Iterable[int]) -> None:
    """Append rows and make them durable."""
    with store.writer(name) as writer:
        writer.append(table(numbers))


def drain(reader: Reader, *, commit: bool = True, max_rows: int = 7) -> list[int]:
    """The numbers of all rows there are now."""
    found: list[int] = []
    while (rows := reader.read(max_rows)) is not None:
        found += rows.column("n").to_pylist()
        if commit:
            reader.commit()
    return found


def in_key_order(numbers: Iterable[int], *, keys: int = 8) -> bool:
    """Whether the rows of every key come in the order in which they were written."""
    last: dict[int, int] = {}
    for n in numbers:
        if n <= last.get(n % keys, -1):
            return False
        last[n % keys] = n
    return True
