"""Replay of a skewed backlog: eight partitions, one ten times slower, delivered one by one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from bench.memory import largest_descendant
from bench.report import Row
from bench.spark_rivals import Windows, stock, tidegate
from bench.spark_rows import Rows, written


def skewed_backlog(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """Rows lost, time and memory."""
    count //= 4
    store = written(folder, Rows(count, partitions=8, seconds=count // 100_000, slow=10.0))
    query = Windows(timedelta(seconds=10))
    ours = tidegate(spark, store, query, count, folder)
    peak = largest_descendant()
    theirs = stock(spark, store, query, count, folder)
    return [
        Row("skewed backlog: slices, rows lost", ours.lost, "rows", 0),
        Row("skewed backlog: stock Spark, rows lost", theirs.lost, "rows"),
        Row("skewed backlog: slices", ours.seconds, "s"),
        Row("skewed backlog: stock Spark", theirs.seconds, "s"),
        Row("skewed backlog: largest process so far", peak, "MiB"),
    ]
