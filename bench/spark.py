"""The speed of jobs on Spark, beside their rivals: `python -m bench.spark`, or `make bench-spark`.

All rivals read the same chunk files in the same session of two cores, each once cold and then warm;
what is told is the warm run, and the rows lost stand beside every figure. `--rows` takes fewer rows
than the 40 million, for a look; targets are judged all the same.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from bench.report import Row, publish, write
from bench.spark_backlog import skewed_backlog
from bench.spark_gate import gate_backlog, gate_state, gate_windows, state_stores
from bench.spark_growth import growth
from bench.spark_latency import latency
from bench.spark_memory import larger_than_memory
from bench.spark_order import ordered_release, system_columns
from bench.spark_rivals import Windows, duckdb_alone, in_turn, stock, tidegate
from bench.spark_rows import Rows, written
from bench.spark_session import with_cores

SECONDS_PER_MILLION = 10
"""Event time that a million rows spread over: 100,000 rows a second."""

ROUNDS = 5
"""Runs of every rival: the JVM compiles what it runs often, and is at its best after some."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    console = Console(highlight=False)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as place:
        spark = with_cores(2)
        for part in PARTS:
            if asked.only and part.__name__ not in asked.only:
                continue
            console.print(f"measuring {part.__name__}")
            rows.extend(part(spark, Path(place), asked.rows))
            write("spark", rows)  # it takes long: what is measured is kept, whatever comes
        spark.stop()
    publish("spark", rows, console)


def windows(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """Count, average, sum, least and largest by window and key."""
    store = written(folder, Rows(count, seconds=count * SECONDS_PER_MILLION // 1_000_000))
    ten = Windows(timedelta(seconds=10))
    minute = Windows(timedelta(minutes=1), key="device % 100")
    hopping = Windows(timedelta(seconds=10), slide=timedelta(seconds=2))
    rows: list[Row] = []
    for name, query in (
        ("10 s windows, 1,000 keys", ten),
        ("1 min windows, 100 keys", minute),
        ("10 s windows every 2 s, 1,000 keys", hopping),
    ):
        run = partial(tidegate, spark, store, query, count, folder)
        (cold, ours), (_, spark_kernel), (stock_cold, theirs), (_, alone) = in_turn(
            ROUNDS,
            run,
            partial(run, kernel="spark"),
            partial(stock, spark, store, query, count, folder),
            partial(duckdb_alone, store, query, count, folder),
        )
        rows += [
            Row(f"{name}: slices, warm", ours.speed, "rows/s"),
            Row(f"{name}: slices, cold", cold.speed, "rows/s"),
            Row(f"{name}: slices, rows lost", ours.lost, "rows", 0),
            Row(f"{name}: slices, spark kernel, warm", spark_kernel.speed, "rows/s"),
            Row(f"{name}: slices, spark kernel, rows lost", spark_kernel.lost, "rows", 0),
            Row(f"{name}: stock Spark, warm", theirs.speed, "rows/s"),
            Row(f"{name}: stock Spark, cold", stock_cold.speed, "rows/s"),
            Row(f"{name}: stock Spark, rows lost", theirs.lost, "rows"),
            Row(f"{name}: DuckDB over everything at once", alone.speed, "rows/s"),
            Row(f"{name}: slices / stock Spark", ours.speed / theirs.speed, "x", 3.0, True),
            Row(
                f"{name}: spark kernel / stock Spark",
                spark_kernel.speed / theirs.speed,
                "x",
                1.5,
                True,
            ),
            Row(
                f"{name}: slices / DuckDB alone",
                ours.speed / alone.speed,
                "x",
                0.4,
                True,
            ),
        ]
    return rows


PARTS = (
    windows,
    latency,
    skewed_backlog,
    ordered_release,
    system_columns,
    growth,
    larger_than_memory,
    gate_windows,
    gate_backlog,
    gate_state,
    state_stores,
)


if __name__ == "__main__":
    main()
