"""Orders per minute, in either gear: one program for a laptop and for a cluster.

    python examples/per_minute.py slices
    spark-submit --master spark://host:7077 examples/per_minute.py gate

Where the store and the checkpoints are it is told by `SHOP_CATALOG`, `SHOP_DATA` and
`SHOP_CHECKPOINTS`; which Spark it runs on, by whoever starts it. A stream of orders is made where
there is none.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidegate.spark import (
    GateJob,
    SlicesJob,
    StreamSink,
    read_stream,
    session,
    windows,
    write_stream,
)
from tidegate.store import Store

SCHEMA = pa.schema([("item", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
TEXT = "SELECT _window_end, item, count(*) AS n FROM orders GROUP BY _window_end, item"


def job_of(spark: SparkSession, gear: str, store: Store, checkpoints: str) -> SlicesJob | GateJob:
    name = f"per-minute-{gear}"
    sink = StreamSink(name.replace("-", "_"))
    if gear == "slices":
        return windows(
            spark, "orders", size="1 minute", query=TEXT, sink=sink, store=store, name=name,
            checkpoint=f"{checkpoints}/{name}",
        )  # fmt: skip
    orders = read_stream(spark, "orders", query=name, store=store, windows="1 minute")
    counted = orders.groupBy(F.window("at", "1 minute"), "item").agg(F.count("*").alias("n"))
    return write_stream(
        counted, sink=sink, query=name, store=store, checkpoint=f"{checkpoints}/{name}"
    )


def make_orders(store: Store) -> None:
    store.create_stream("orders", SCHEMA, event_column="at", routing_key=("item",), segments=2)
    began = datetime(2026, 1, 31, 12, tzinfo=UTC)
    rows = [{"item": f"i{n % 5}", "at": began + timedelta(seconds=n)} for n in range(600)]
    with store.writer("orders", "shop", notes_time=True) as shop:
        shop.append(rows)
        shop.note_time(round((began + timedelta(seconds=600)).timestamp()) * 1_000_000)


def main(gear: str) -> None:
    where = {name: os.environ[f"SHOP_{name.upper()}"] for name in ("catalog", "data")}
    with Store.open(where["catalog"], data=where["data"]) as store:
        if "orders" not in store.list_streams():
            make_orders(store)
        spark = session(f"per-minute-{gear}")
        figures = job_of(spark, gear, store, os.environ["SHOP_CHECKPOINTS"]).run()
        print(f"{spark.conf.get('spark.master')}: {figures['rows_out']} rows out")
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
