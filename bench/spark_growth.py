"""Growth: one job at 1, 2 and 4 times the rows, keys and partitions; one core beside two."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession

from bench.report import Row
from bench.spark_rivals import Account, Windows, duckdb_alone, in_turn, tidegate, warm
from bench.spark_rows import Rows, written
from bench.spark_session import with_cores

STEPS = (1, 2, 4)
LONG = 16
"""So many times the rows are worth some ten seconds of two cores."""
ANSWER = "account: "


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
        rows += _second_core(folder, many, target)
    return rows


def _second_core(folder: Path, count: int, target: float | None) -> list[Row]:
    """What a second core adds, told by the best of some runs of either session.

    The two take turns, run by run: how fast this machine is changes from minute to minute. What
    DuckDB makes of the second core is what the machine gives: caches and memory are shared.
    """
    written(folder, _spread(count))
    turns = 10 if count <= 160_000_000 else 6
    with _Alone(folder, count, 1) as one_core, _Alone(folder, count, 2) as two_cores:
        (_, one), (_, two), (_, duckdb_one), (_, duckdb_two) = in_turn(
            turns, one_core.job, two_cores.job, one_core.duckdb, two_cores.duckdb
        )
    title = f"{count // 1_000_000} million rows"
    return [
        Row(f"{title}, one core", one.speed, "rows/s", 200_000, True),
        Row(f"{title}, two cores, per core", two.speed / 2, "rows/s", 200_000, True),
        *(
            Row(f"{title}: {name}", before / 2 / after, "x", wanted, True)
            for name, before, after, wanted in (
                ("efficiency of the second core", one.seconds, two.seconds, target),
                ("the same from the first batch on", one.at_work, two.at_work, None),
                ("the same of DuckDB alone", duckdb_one.seconds, duckdb_two.seconds, None),
            )
        ),
    ]


class _Alone:
    """A session of its own with so many cores, in a process that waits for its turn."""

    def __init__(self, folder: Path, count: int, cores: int) -> None:
        command = [sys.executable, "-m", "bench.spark_growth", str(folder), str(count), str(cores)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the end of its input is the end of its work

    def job(self) -> Account:
        """One run of the job."""
        return self._asked("job")

    def duckdb(self) -> Account:
        """One run of DuckDB alone, with as many threads."""
        return self._asked("duckdb")

    def _asked(self, what: str) -> Account:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return Account(**json.loads(line.removeprefix(ANSWER)))
        raise RuntimeError(f"the session of the bench has ended: {self._process.wait()}")


def _spread(count: int, keys: int = 1_000, partitions: int = 4) -> Rows:
    """So many rows, 100,000 to a second of event time."""
    return Rows(count, keys=keys, partitions=partitions, seconds=count // 100_000)


def _exponent(seconds: list[float]) -> float:
    """The slope of a line through the logarithms."""
    x, y = [math.log(n) for n in STEPS], [math.log(s) for s in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def main() -> None:
    """Answer every line of the input with the account of one run."""
    folder, count, cores = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    # One core means one: the driver, the planner and Spark's own threads share it with the tasks.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = with_cores(cores)
    store = written(folder, _spread(count))
    query, out = Windows(timedelta(seconds=10)), folder / f"out-{cores}"
    for line in sys.stdin:
        if line.strip() == "job":
            found = tidegate(spark, store, query, count, out)
        else:
            found = duckdb_alone(store, query, count, out, cores)
        print(ANSWER + json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    main()
