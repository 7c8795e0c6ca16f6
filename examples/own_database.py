"""Results in a database of your own, every row once.

A job counts orders per minute and writes to SQLite, with a function of its own. A batch may run
again after a crash, with the same rows and the same (job, lineage, number). So the function keeps
these three in the transaction that writes the rows: a batch that is there already is left alone.
Kill it whenever you like and start it again.

    python examples/own_database.py [folder]
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark import Batch, ForeachBatch, SlicesJob, session, windows
from tidegate.store import Store

ORDERS = pa.schema(
    [("item", pa.string()), ("price", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))]
)
ITEMS = ("tea", "cake", "jam")
FIRST = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTES = 4

TABLES = """
CREATE TABLE IF NOT EXISTS sales (minute TEXT, item TEXT, orders INTEGER, total INTEGER);
CREATE TABLE IF NOT EXISTS batches (
    job TEXT, lineage TEXT, batch INTEGER, PRIMARY KEY (job, lineage, batch)
);
"""

QUERY = """
SELECT _window_start, _window_end, item, count(*) AS orders, sum(price) AS total
FROM orders GROUP BY _window_start, _window_end, item
"""


def orders() -> list[dict[str, Any]]:
    """An order every two seconds; the last one, of the next minute, shows that time has passed."""
    return [
        {"item": ITEMS[n % len(ITEMS)], "price": n, "at": FIRST + timedelta(seconds=2 * n)}
        for n in range(30 * MINUTES + 1)
    ]


def fill(store: Store) -> None:
    """Write the orders, in small chunks. What was written before is not written again."""
    store.create_stream("orders", ORDERS, event_column="at", exist_ok=True)
    with store.writer("orders", "shop") as shop:
        for n in range(0, len(orders()), 10):
            shop.append(orders()[n : n + 10], first_row=n)
            shop.flush()


def insert(database: sqlite3.Connection, rows: Iterable[dict[str, Any]]) -> None:
    """The rows themselves."""
    database.executemany(
        "INSERT INTO sales VALUES (:minute, :item, :orders, :total)",
        [{**row, "minute": f"{row['_window_start']:%H:%M}"} for row in rows],
    )


def keeper(path: Path) -> ForeachBatch:
    """A sink that writes to the database at `path`."""

    def keep(rows: DataFrame, batch: Batch) -> int:
        computed = rows.toArrow().to_pylist()
        with closing(sqlite3.connect(path)) as database, database:  # one transaction
            known = database.execute(
                "INSERT INTO batches VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (batch.job, batch.lineage, batch.number),
            )
            if known.rowcount:  # it was not there
                insert(database, computed)
        return len(computed)

    return ForeachBatch(keep)


def job(spark: SparkSession, store: Store, path: Path) -> SlicesJob:
    """The job; at most 40 orders per batch, so that there is something to see."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(TABLES)
    return windows(
        spark, "orders", size="1 minute", query=QUERY, sink=keeper(path), name="sales",
        store=store, max_rows=40,
    )  # fmt: skip


def main(folder: Path) -> None:
    """Fill, run, and show what the database has."""
    spark = session("own database", master="local[2]")
    with Store.open(folder / "shop") as store:
        fill(store)
        job(spark, store, folder / "sales.db").run()
    with closing(sqlite3.connect(folder / "sales.db")) as database:
        for row in database.execute("SELECT * FROM sales ORDER BY minute, item"):
            print(*row)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as made:
            main(Path(made))
