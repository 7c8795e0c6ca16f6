"""The speed of the store: `python -m bench.store`, or `make bench-store`.

Writers are compared with plain `pyarrow.parquet` on the same rows in the same run, both made
durable (`bench/writing.py`); the catalog is asked over a million chunks, on SQLite and on
PostgreSQL.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from rich.console import Console
from sqlalchemy import insert, update
from sqlalchemy.engine import make_url

from bench import million
from bench.report import Row, publish
from bench.stopwatch import nanoseconds
from bench.writing import measured
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.writer_mark import WriterMark
from tidegate.store import Store
from tidegate.store.catalog import spans
from tidegate.store.catalog.schema import streams as stream_rows
from tidegate.store.catalog.schema import writers as writer_rows
from tidegate.store.mark_cycle import run_due_cycle
from tidegate.store.routing import hashes, segment_index

FLUSH = 100_000
NOTING = 1_000


def main() -> None:
    console = Console(highlight=False)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for part in (writing, routing, latency, marks, catalogs):
            with console.status(f"measuring {part.__name__}"):
                rows.extend(part(Path(folder)))
    publish("store", rows, console)


def orders(count: int = FLUSH) -> pa.Table:
    """Orders of a shop, a little out of order."""
    dice = np.random.default_rng(7)
    at = np.arange(count) * 1_000 + dice.integers(0, 50_000, count)
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "customer": pa.array([f"customer-{n}" for n in dice.integers(0, 5_000, count)]),
            "product": pa.array([f"product-{n}" for n in dice.integers(0, 300, count)]),
            "price": pa.array(dice.random(count) * 100),
            "quantity": pa.array(dice.integers(1, 9, count)),
            "at": pa.array(at).cast(pa.timestamp("us", tz="UTC")),
        }
    )


def writing(folder: Path) -> list[Row]:
    return list(measured(folder, orders()))


def latency(folder: Path) -> list[Row]:
    table = orders(100)
    taken = []
    with Store.open(folder / "latency") as store:
        store.create_stream("orders", table.schema, event_column="at", segments=1)
        with store.writer("orders", "w") as writer:
            for _ in range(300):
                writer.append(table)
                began = perf_counter()
                writer.flush()
                taken.append(perf_counter() - began)
    p50, p99 = np.percentile(np.array(taken) * 1e3, [50, 99])
    return [
        Row("commit of 100 rows, p50", float(p50), "ms"),
        Row("commit of 100 rows, p99", float(p99), "ms"),
    ]


def routing(_: Path) -> list[Row]:
    table, lineage = orders(), Lineage.start(16)
    segments = lineage.open_in(0)

    def route() -> None:
        segment_index(hashes(table, ["customer"]), segments)

    counts = np.bincount(segment_index(hashes(table, ["id"]), segments), minlength=16)
    spread = float(counts.max() / counts.mean())
    return [
        Row("routing by a text, per row", nanoseconds(route, rounds=7) / FLUSH, "ns", target=100),
        Row("the fullest of 16 segments, to the mean", spread, "times"),
    ]


# ---- marks ----


def marks(folder: Path) -> list[Row]:
    with Store.open(folder / "marks") as store:
        stream = store.create_stream("orders", orders(1).schema, event_column="at", segments=16)
        names = [f"{n}.e0" for n in range(16)]
        rows = [
            {
                "stream_id": stream.id,
                "name": f"w{n}",
                "token": 1,
                "notes_time": True,
                "notes": json.dumps(
                    WriterNotes(
                        WriterMark(f"w{n}", 1_000 + n, Cut({name: n for name in names}))
                    ).to_json()
                ),
                "opened_at": 0,
                "seen_at": 0,
            }
            for n in range(NOTING)
        ]
        store.database.write(lambda on: on.execute(insert(writer_rows), rows).close())
        store.database.write(
            lambda on: on.execute(update(stream_rows).values(scheduled=True)).close()
        )
        began = perf_counter()
        done = run_due_cycle(store, "orders")
        took = perf_counter() - began
        assert done is not None
        assert done.mark is not None
        assert len(done.mark.writers) == NOTING
    return [Row(f"marks of {NOTING:,} writers combined in one cycle", took, "s", target=1)]


# ---- a million chunks ----


def catalogs(folder: Path) -> list[Row]:
    rows = []
    with ExitStack() as opened:
        for name, store in _stores(folder, opened):
            store.create_stream("s", orders(1).schema, event_column="at", segments=million.SEGMENTS)
            million.fill(store, "s")
            rows.extend(_asked(name, store))
    return rows


def _stores(folder: Path, opened: ExitStack) -> Iterator[tuple[str, Store]]:
    yield "SQLite", opened.enter_context(Store.open(folder / "million"))
    url = opened.enter_context(_postgresql(folder / "postgresql"))
    yield "PostgreSQL", opened.enter_context(Store.open(url, data=folder / "data"))


@contextmanager
def _postgresql(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgserver import get_server  # type: ignore[attr-defined]

        server = get_server(folder)
    url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        server.cleanup()


def _asked(name: str, store: Store) -> list[Row]:
    end = million.CHUNKS // million.SEGMENTS * million.ROWS
    start = {f"{n}.e0": 0 for n in range(million.SEGMENTS)}
    below = dict.fromkeys(start, end)
    middle = million.CHUNKS // 2 * million.SECOND + million.SECOND // 2

    def overlapping() -> None:
        a, b = middle, middle + 10 * million.SECOND
        found = store.database.read(lambda on: spans.overlapping(on, "s", a, b, start, below))
        assert 10 <= len(found) < 50

    def behind() -> None:
        late = dict.fromkeys(start, end - 10 * million.ROWS)
        found = store.database.read(lambda on: spans.overlapping(on, "s", 0, middle, late, below))
        assert len(found) == 0

    def snapshot() -> None:
        after = dict.fromkeys(start, end - 10 * million.ROWS)
        facts = store.database.read(lambda on: spans.snapshot(on, "s", after))
        assert len(facts.spans) == 10 * million.SEGMENTS

    questions = [
        ("overlapping a narrow interval", overlapping),
        ("overlapping behind a late cut", behind),
        ("cut_at", lambda: store.cut_at("s", middle)),
        ("snapshot after a cut near the end", snapshot),
    ]
    return [
        Row(
            f"{what}, {million.CHUNKS:,} chunks, {name}",
            nanoseconds(ask, rounds=31) / 1e6,
            "ms",
            target=10,
        )
        for what, ask in questions
    ]


if __name__ == "__main__":
    main()
