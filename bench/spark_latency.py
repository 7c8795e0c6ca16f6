"""The time from the last event to its window's result, live: slices beside stock Spark.

Every round brings one second of rows that closes the windows before it. The clock runs from the
moment the rows are durable (a chunk that is committed, a file that is moved in) until the result of
the window they close can be read in the sink.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.report import Row
from bench.spark_rivals import as_installed
from bench.spark_rows import BEGIN, SCHEMA, SECOND, STREAM
from tidegate.spark import StreamSink, read_stream, windows
from tidegate.spark.arrow_types import spark_schema
from tidegate.store import Store

ROUNDS = 8
WARM = 3
TURNS = 3
"""The JVM gets faster for whoever comes later: both run as often, one after the other."""
PER_SECOND = 10_000


def latency(spark: SparkSession, folder: Path, _: int) -> list[Row]:
    """Median of the rounds after the warm ones."""
    ours, theirs = beside_stock(SlicesLive, spark, folder / "live")
    return [
        Row("last event to result: slices", ours, "s"),
        Row("last event to result: stock Spark", theirs, "s"),
        Row("last event to result: slices / stock Spark", ours / theirs, "x", 0.6),
    ]


def beside_stock(
    ours: type[SlicesLive] | type[GateLive], spark: SparkSession, folder: Path
) -> tuple[float, float]:
    """The medians of a rival of ours and of stock Spark, each in its last turn of three."""
    for turn in range(TURNS):
        mine = median(rounds(ours(spark, folder / f"ours-{turn}")))
        stock = median(rounds(StockLive(spark, folder / f"stock-{turn}")))
    return mine, stock


def rounds(rival: SlicesLive | GateLive | StockLive) -> list[float]:
    """The seconds of every round after the warm ones."""
    found = []
    for number in range(ROUNDS + WARM):
        rival.bring(number)
        began = perf_counter()
        _wait(lambda number=number: rival.seen() >= number)  # type: ignore[misc]
        if number >= WARM:
            found.append(perf_counter() - began)
    rival.stop()
    return found


def _wait(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(0.01)


def _second(number: int) -> pa.Table:
    dice = np.random.default_rng(number)
    at = BEGIN + number * SECOND + np.sort(dice.integers(0, SECOND, PER_SECOND))
    at[-1] = BEGIN + (number + 1) * SECOND - 1
    return pa.table(
        {
            "device": dice.integers(0, 1_000, PER_SECOND),
            "value": dice.random(PER_SECOND),
            "amount": dice.integers(0, 1_000, PER_SECOND),
            "at": pa.array(at).cast(SCHEMA.field("at").type),
        },
        schema=SCHEMA,
    )


class SlicesLive:
    """Windows of a second; what is seen is asked of the job's progress."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.store = Store.open(folder)
        self.store.create_stream(STREAM, SCHEMA, event_column="at", max_future=None)
        self.writer = self.store.writer(STREAM, "live", notes_time=True)
        self.running = windows(
            spark,
            STREAM,
            size="1s",
            store=self.store,
            name="live",
            query=f"SELECT _window_end, device, count(*) AS n FROM {STREAM}"
            " GROUP BY _window_end, device",
            sink=StreamSink("live"),
        ).start(tell=False)

    def bring(self, number: int) -> None:
        """Bring the rows of one second."""
        self.writer.append(_second(number))
        self.writer.note_time(BEGIN + (number + 1) * SECOND)

    def seen(self) -> int:
        """Tell the last second whose window has come out."""
        reached = self.running.progress.frontier()
        return (reached - BEGIN) // SECOND - 1 if isinstance(reached, int) else -1

    def stop(self) -> None:
        """End it."""
        self.running.stop()
        self.writer.abandon()
        self.store.close()


class GateLive:
    """The same by Spark's own operator, behind the gate."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.store = Store.open(folder)
        self.store.create_stream(STREAM, SCHEMA, event_column="at", max_future=None)
        self.writer = self.store.writer(STREAM, "live", notes_time=True)
        rows = read_stream(spark, STREAM, store=self.store, query="live", windows="1 s")
        counted = rows.groupBy(F.window("at", "1 second"), "device").agg(F.count("*").alias("n"))
        self.taken = _Taken()
        self.query = (
            counted.writeStream.foreachBatch(self.taken.take)
            .outputMode("append")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )

    def bring(self, number: int) -> None:
        """Bring the rows of one second."""
        self.writer.append(_second(number))
        self.writer.note_time(BEGIN + (number + 1) * SECOND)

    def seen(self) -> int:
        """Tell the last second whose window has come out."""
        return self.taken.last

    def stop(self) -> None:
        """End it."""
        self.query.stop()
        self.writer.abandon()
        self.store.close()


class _Taken:
    """The last second whose window has come out."""

    last = -1

    def take(self, rows: DataFrame, _: int) -> None:
        latest = rows.agg(F.max("window.end")).collect()[0][0]
        if latest is not None:
            self.last = int(latest.timestamp()) - BEGIN // SECOND - 1


class StockLive:
    """The same with a watermark of nothing: the next second's first row closes a window.

    A row of the next second is brought along: stock Spark closes a window only when it sees one.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        for name in ("in", "aside"):
            (folder / name).mkdir(parents=True)
        source = spark.readStream.schema(spark_schema(STREAM, SCHEMA)).parquet(str(folder / "in"))
        counted = (
            source.withWatermark("at", "0 seconds")
            .groupBy(F.window("at", "1 second"), "device")
            .agg(F.count("*").alias("n"))
        )

        self.taken = _Taken()
        with as_installed(spark):
            self.query = (
                counted.writeStream.foreachBatch(self.taken.take)
                .outputMode("append")
                .option("checkpointLocation", str(folder / "checkpoint"))
                .start()
            )

    def bring(self, number: int) -> None:
        """Bring the rows of one second."""
        rows = _second(number)
        closing = rows.slice(0, 1).set_column(
            3, SCHEMA.field("at"), pa.array([BEGIN + (number + 1) * SECOND]).cast(rows[3].type)
        )
        aside = self.folder / "aside" / f"{number}.parquet"
        pq.write_table(pa.concat_tables([rows, closing]), aside)
        shutil.move(aside, self.folder / "in" / aside.name)

    def seen(self) -> int:
        """Tell the last second whose window has come out."""
        return self.taken.last

    def stop(self) -> None:
        """End it."""
        self.query.stop()
