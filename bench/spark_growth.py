"""Growth: one job at 1, 2 and 4 times the rows, keys and partitions; one core beside two."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.report import Row
from bench.spark_rivals import Windows, duckdb_alone, in_turn, tidegate, warm
from bench.spark_rows import Rows, written
from bench.spark_session import with_cores

STEPS = (1, 2, 4)
LONG = 16
"""So many times the rows are worth some ten seconds of two cores."""


def growth(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """The exponent of time over size, and rows per second and core."""
    half = count // 2
    query = Windows(timedelta(seconds=10))
    rows: list[Row] = []
    for name, sizes in (
        ("rows", [_spread(count * n) for n in STEPS]),
        ("keys", [_spread(half, keys=1_000 * n) for n in STEPS]),
        ("partitions", [_spread(half, partitions=4 * n) for n in STEPS]),
    ):
        seconds = []
        for size in sizes:
            store = written(folder, size)
            run = partial(tidegate, spark, store, query, size.rows, folder)
            seconds.append(warm(run, 4)[1].seconds)
        rows.append(Row(f"growth with {name}: exponent", _exponent(seconds), "", 1.05))
    # The start of a run is the work of one core: what it weighs is seen on fewer rows.
    for many, target in ((count * LONG, 0.9), (count * STEPS[-1], None), (count, None)):
        one, two = (_alone(folder, many, cores) for cores in (1, 2))
        title = f"{many // 1_000_000} million rows"
        rows += [
            Row(f"{title}, one core", one["job"], "rows/s", 200_000, True),
            Row(f"{title}, two cores, per core", two["job"] / 2, "rows/s", 200_000, True),
            *(
                Row(f"{title}: {name}", two[what] / 2 / one[what], "x", wanted, True)
                for name, what, wanted in (
                    ("efficiency of the second core", "job", target),
                    ("the same from the first batch on", "at work", None),
                    ("the same of DuckDB alone", "duckdb", None),
                )
            ),
        ]
    return rows


def _spread(count: int, keys: int = 1_000, partitions: int = 4) -> Rows:
    """So many rows, 100,000 to a second of event time."""
    return Rows(count, keys=keys, partitions=partitions, seconds=count // 100_000)


def _exponent(seconds: list[float]) -> float:
    """The slope of a line through the logarithms."""
    x, y = [math.log(n) for n in STEPS], [math.log(s) for s in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def _alone(folder: Path, count: int, cores: int) -> dict[str, float]:
    """Rows per second in a session of its own with so many cores: of a job, and of DuckDB.

    What DuckDB makes of the second core is what the machine gives: caches and memory are shared.
    """
    command = [sys.executable, "-m", "bench.spark_growth", str(folder), str(count), str(cores)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    folder, count, cores = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    # One core means one: the driver, the planner and Spark's own threads share it with the tasks.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = with_cores(cores)
    store = written(folder, _spread(count))
    query = Windows(timedelta(seconds=10))
    # Long runs need fewer turns; short ones are told best by the best of many.
    (_, job), (_, alone) = in_turn(
        10 if count <= 160_000_000 else 4,
        lambda: tidegate(spark, store, query, count, folder),
        lambda: duckdb_alone(store, query, count, folder, cores),
    )
    found = {"job": job.speed, "at work": count / job.at_work, "duckdb": alone.speed}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
