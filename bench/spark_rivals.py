"""The rivals of one query over the same rows: Tidegate's slices, stock Spark streaming, DuckDB.

Each gives the same account: how long it took, how many rows its results hold, and how many it lost.
Stock Spark reads the chunk files with its streaming file source, in the order they were written,
with a watermark as wide as the disorder inside a partition, and keeps its state where Spark does if
nobody chooses otherwise; its results go to Parquet files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.spark_rows import DISORDER, SCHEMA, STREAM, files
from tidegate.spark import FilesSink, windows
from tidegate.spark.arrow_types import spark_schema
from tidegate.spark.session import defaults_on
from tidegate.spark.sinks.files import read_files
from tidegate.store import Store

CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"


@dataclass(frozen=True)
class Account:
    """What a rival did: rows counted by its results, out of how many, in how many seconds."""

    seconds: float
    counted: int
    rows: int
    at_work: float = 0.0
    """The seconds from its first batch on, where that is known: without the start of the query."""

    @property
    def speed(self) -> float:
        """Rows of input per second."""
        return self.rows / self.seconds

    @property
    def lost(self) -> int:
        """Rows that are in no result."""
        return self.rows - self.counted


@dataclass(frozen=True)
class Windows:
    """The query: count, average, sum, least and largest per window and key."""

    size: timedelta = timedelta(seconds=10)
    slide: timedelta | None = None
    key: str = "device"

    @property
    def times_counted(self) -> int:
        """In how many windows a row stands."""
        return 1 if self.slide is None else self.size // self.slide


AGGREGATES = (
    "count(*) AS n, avg(value) AS mean, sum(amount) AS total, min(value) AS low, max(value) AS high"
)


def tidegate(
    spark: SparkSession,
    store: Store,
    query: Windows,
    rows: int,
    folder: Path,
    *,
    kernel: str = "auto",
    extra: str = "",
    **settings: Any,
) -> Account:
    """A slices job over everything, to Parquet files."""
    name = f"bench-{kernel}"
    out = emptied(folder / "slices")
    job = windows(
        spark,
        STREAM,
        size=query.size,
        slide=query.slide,
        store=store,
        name=name,
        kernel=kernel,  # type: ignore[arg-type]
        query=f"SELECT _window_start, _window_end, {query.key} AS k, {AGGREGATES}{extra}"
        f" FROM {STREAM} GROUP BY _window_start, _window_end, {query.key}",
        sink=FilesSink(str(out / "rows")),
        checkpoint=out / "checkpoint",
        tolerance=DISORDER,
        watermark="events",
        idle_after="never",
        **settings,
    )
    job.reset()
    began = perf_counter()
    with job.start(available_now=True, tell=False) as running:
        running.wait()
    seconds, ended = perf_counter() - began, datetime.now(UTC)
    first = datetime.fromisoformat(running.query.recentProgress[0]["timestamp"])
    counted = sum(read_files(str(out / "rows")).column("n").to_pylist())
    job.reset()
    at_work = (ended - first).total_seconds()
    return Account(seconds, counted // query.times_counted, rows, at_work)


def stock(
    spark: SparkSession, store: Store, query: Windows, rows: int, folder: Path, per_batch: int = 8
) -> Account:
    """Spark's own streaming aggregation, in append mode, to Parquet files."""
    out = emptied(folder / "stock")
    source = (
        spark.readStream.schema(spark_schema(STREAM, SCHEMA))
        .option("maxFilesPerTrigger", per_batch)
        .option("recursiveFileLookup", "true")
        .parquet(str(Path(store.files.root) / STREAM))
    )
    span = [_spark(length) for length in (query.size, query.slide) if length is not None]
    made: DataFrame = (
        source.withWatermark("at", f"{int(DISORDER.total_seconds() * 1000)} milliseconds")
        .groupBy(F.window("at", *span), F.expr(query.key).alias("k"))
        .agg(
            F.count("*").alias("n"),
            F.avg("value").alias("mean"),
            F.sum("amount").alias("total"),
            F.min("value").alias("low"),
            F.max("value").alias("high"),
        )
    )
    with as_installed(spark):
        began = perf_counter()
        run = (
            made.writeStream.format("parquet")
            .option("path", str(out / "rows"))
            .option("checkpointLocation", str(out / "checkpoint"))
            .outputMode("append")
            .trigger(availableNow=True)
            .start()
        )
        run.awaitTermination()
        seconds = perf_counter() - began
    counted = spark.read.parquet(str(out / "rows")).agg(F.sum("n")).collect()[0][0] or 0
    return Account(seconds, int(counted) // query.times_counted, rows)


@contextmanager
def as_installed(spark: SparkSession, keeping: Sequence[str] = ()) -> Iterator[None]:
    """Meanwhile the session keeps state and checkpoints as Spark does by itself.

    `keeping`: settings of ours that stay as they are.
    """
    ours = {
        key: text
        for key, text in defaults_on("local").items()
        if (".stateStore." in key or key == CHECKPOINTS) and key not in keeping
    }
    for key in ours:
        spark.conf.unset(key)
    try:
        yield
    finally:
        for key, value in ours.items():
            spark.conf.set(key, value)


def duckdb_alone(
    store: Store, query: Windows, rows: int, folder: Path, threads: int = 2
) -> Account:
    """DuckDB over all files at once: no time, no order, no recovery."""
    out = emptied(folder / "duckdb") / "rows.parquet"
    listed = ", ".join(f"'{path}'" for path in files(store))
    slide = query.slide or query.size
    hop, size = slide // timedelta(microseconds=1), query.size // timedelta(microseconds=1)
    steps = ", ".join(str(n * hop) for n in range(query.times_counted))
    start = f'(epoch_us("at") - epoch_us("at") % {hop})'
    if query.slide is not None:
        start = f"{start} - unnest([{steps}])"
    began = perf_counter()
    with duckdb.connect(config={"threads": threads}) as on:
        on.execute(
            f"COPY (SELECT s, s + {size}, k, {AGGREGATES} FROM (SELECT *, {start} AS s,"
            f" {query.key} AS k FROM read_parquet([{listed}])) GROUP BY ALL) TO '{out}'"
        )
        seconds = perf_counter() - began
        found = on.execute(f"SELECT sum(n) FROM '{out}'").fetchone()
    assert found is not None
    return Account(seconds, int(found[0]) // query.times_counted, rows)


def warm(run: Callable[[], Account], times: int = 2) -> tuple[Account, Account]:
    """The first run, and the best of those after it."""
    [found] = in_turn(times, run)
    return found


def in_turn(times: int, *rivals: Callable[[], Account]) -> list[tuple[Account, Account]]:
    """Of every rival the first run, and the best of those after it.

    They take turns: a JVM gets faster for whoever comes later.
    """
    runs = zip(*([rival() for rival in rivals] for _ in range(times)), strict=True)
    return [(first, min(again, key=lambda account: account.seconds)) for first, *again in runs]


def _spark(duration: timedelta) -> str:
    return f"{int(duration.total_seconds())} seconds"


def emptied(folder: Path) -> Path:
    """A folder with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
