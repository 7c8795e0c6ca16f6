"""What order and system columns cost: the same job with and without."""

from __future__ import annotations

import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import SparkSession

from bench.report import Row
from bench.spark_rivals import Windows, in_turn, tidegate
from bench.spark_rows import DISORDER, STREAM, Rows, written
from tidegate.spark import FilesSink, ordered
from tidegate.store import Store

ALL = ", max(_offset) AS o, max(_partition) AS p, max(_timestamp) AS c, max(_event_time) AS t"
OWN = ", max(amount) AS o, max('0.e0') AS p, max(at) AS c, max(at) AS t"
"""As many aggregates of the same types over what rows have by themselves: what is left between the
two is what it costs to have the system columns, and not what it costs to compute with them."""

IN_SPARK = (
    ", max(_offset) AS o, count(_partition) AS p, max(_timestamp) AS c, max(_event_time) AS t"
)
OWN_IN_SPARK = ", max(amount) AS o, count(device) AS p, max(at) AS c, max(value) AS t"
"""The same for Spark's operators, which would sort all rows for the largest of a text."""

TURNS = 10
"""Runs of each: they differ by a tenth from one to the next, which is more than is looked for."""


def ordered_release(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """All rows to files, in the order of their time and as they come."""
    count //= 4
    store = written(folder, Rows(count, seconds=count // 100_000))
    in_order = min(_released(spark, store, folder, True) for _ in range(2))
    as_it_comes = min(_released(spark, store, folder, False) for _ in range(2))
    return [
        Row("ordered release", count / in_order, "rows/s"),
        Row("the same unordered", count / as_it_comes, "rows/s"),
        Row("ordered / unordered", as_it_comes / in_order, "x", 0.7, True),
    ]


def system_columns(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """The tumbling job with an aggregate of every system column, and without system columns.

    Without them the same job has as many aggregates over own columns: what is asked is the price of
    the columns. Beside it the job without these four aggregates, which is less work for anybody.
    """
    rows: list[Row] = []
    for many in (count, count // 4):
        store = written(folder, Rows(many, seconds=many // 100_000))
        run = partial(tidegate, spark, store, Windows(timedelta(seconds=10)), many, folder)
        (_, with_all), (_, with_own), (_, without) = in_turn(
            TURNS, partial(run, extra=ALL), partial(run, extra=OWN), run
        )
        title = f"{many // 1_000_000} million rows, all system columns"
        rows += [
            Row(title, with_all.speed, "rows/s"),
            Row(f"{title} / none", with_all.speed / with_own.speed, "x", 0.95, True),
            Row(f"{title} / four aggregates fewer", with_all.speed / without.speed, "x"),
        ]
    in_spark = partial(run, kernel="spark")
    (_, with_all), (_, with_own) = in_turn(
        4, partial(in_spark, extra=IN_SPARK), partial(in_spark, extra=OWN_IN_SPARK)
    )
    return [*rows, Row(f"{title} / none, spark kernel", with_all.speed / with_own.speed, "x")]


def _released(spark: SparkSession, store: Store, folder: Path, in_order: bool) -> float:
    out = folder / "ordered"
    shutil.rmtree(out, ignore_errors=True)
    settings: dict[str, Any] = {"tolerance": DISORDER, "idle_after": "never"}
    job = ordered(
        spark,
        STREAM,
        store=store,
        name="bench-ordered",
        sink=FilesSink(str(out / "rows")),
        checkpoint=out / "checkpoint",
        watermark="events",
        sort=in_order,
        **settings,
    )
    job.reset()
    began = perf_counter()
    job.run(tell=False)
    seconds = perf_counter() - began
    job.reset()
    return seconds
