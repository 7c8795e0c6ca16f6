"""On a Connect session: windows by both kernels, by a function, by the gate; a fenced job.

Run as a program, with a folder to work in.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.errors import TidegateError
from tidegate.spark import StreamSink, read_stream, session, windows, write_stream
from tidegate.spark.slices import SlicesJob
from tidegate.store import Store
from tidegate.store.reading import read_between

SECOND = 1_000_000
SCHEMA = pa.schema([("item", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
TEXT = "SELECT _window_end, item, count(*) AS n FROM orders GROUP BY _window_end, item"


def counted(orders: DataFrame) -> DataFrame:
    """The same as the text, by the functions of DataFrames."""
    return orders.groupBy("_window_end", "item").agg(F.count("*").alias("n"))


def gated(spark: SparkSession, store: Store) -> list[int]:
    """The same windows by Spark's own operator, in two runs."""

    def run() -> dict[str, Any]:
        orders = read_stream(spark, "orders", store=store, query="gate", windows="10s", tasks=2)
        counts = orders.groupBy(F.window("at", "10 seconds"), "item").agg(F.count("*").alias("n"))
        return write_stream(counts, sink=StreamSink("gate"), query="gate", store=store).run()

    run()
    with store.writer("orders", "more") as writer:
        rows = [{"item": f"i{n}", "at": at * SECOND} for n in range(3) for at in (5, 119)]
        writer.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    figures = run()
    found = pa.Table.from_batches(read_between(store, "gate"))
    late = pa.Table.from_batches(read_between(store, "orders.late"))
    return [
        figures["rows_in"],
        figures["lost"],
        late.num_rows,
        figures["dropped_by_spark"],
        sum(found.column("n").to_pylist()),
    ]


def main(folder: Path) -> dict[str, Any]:
    """Work, and tell."""
    store = Store.open(folder / "shop")
    store.create_stream("orders", SCHEMA, event_column="at", routing_key=("item",), segments=2)
    with store.writer("orders", "shop") as writer:
        rows = [{"item": f"i{n % 3}", "at": n * SECOND} for n in range(100)]
        writer.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    spark = session("connect", remote="local[2]")
    told: dict[str, Any] = {}

    def job(name: str, query: Any, kernel: Any) -> SlicesJob:
        return windows(
            spark,
            "orders",
            size="10s",
            store=store,
            name=name,
            query=query,
            sink=StreamSink(name),
            kernel=kernel,
            cores=2,
        )

    for name, query, kernel in (
        ("duckdb", TEXT, "duckdb"),
        ("spark", TEXT, "spark"),
        ("function", counted, "auto"),
    ):
        figures = job(name, query, kernel).run()
        found = pa.Table.from_batches(read_between(store, name))
        told[name] = [figures["rows_in"], figures["lost"], sum(found.column("n").to_pylist())]
    told["gate"] = gated(spark, store)
    again = job("spark", TEXT, "spark")
    shutil.rmtree(again.checkpoint)
    try:
        again.run()
    except TidegateError as fenced:
        told["fenced"] = [fenced.code, "Traceback" in str(fenced)]
    spark.stop()
    return told


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
