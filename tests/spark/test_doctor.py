"""What `tidegate doctor` says stock Spark loses, held against stock Spark.

Random files of three sites, one site behind the others, are read by a real streaming query, a file
to a batch. The rows that are in none of its windows must be those that the doctor counts.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner

from tidegate.cli import app
from tidegate.cli.doctor.spark import _in_worker

FILES = 9
ROWS = 40
SITES = 3
COLUMNS = "site int, at timestamp"


def write_files(folder: Path, seed: int) -> Iterator[Path]:
    """Files in the order of their dates; site 2 is minutes behind, some rows have no time."""
    draw = random.Random(seed)
    folder.mkdir()
    for number in range(FILES):
        site = draw.randrange(SITES)
        begin = 1_000_000_000 + number * 60 - (300 if site == 2 else 0)
        seconds = [begin + draw.uniform(0, 150) for _ in range(ROWS)]
        times = [None if draw.random() < 0.03 else round(s * 1e6) for s in seconds]
        table = {
            "site": pa.array([site] * ROWS, pa.int32()),
            "at": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
        # Names in an order of their own: dates decide.
        path = folder / f"{draw.randrange(1_000_000):06}-{number}.parquet"
        pq.write_table(pa.table(table), folder / f".{path.name}")
        os.utime(folder / f".{path.name}", (1_700_000_000 + number, 1_700_000_000 + number))
        (folder / f".{path.name}").rename(path)
        yield path


class Stock:
    """A stock query that counts rows per minute and site, and writes down what it gave out."""

    def __init__(self, spark: SparkSession, folder: Path, place: Path) -> None:
        self.counts: dict[Any, int] = {}
        self.progress: list[str] = []
        rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        self._counted = (
            rows.parquet(str(folder))
            .withWatermark("at", "30 seconds")
            .groupBy(F.window("at", "1 minute"), "site")
            .count()
            .writeStream.outputMode("update")
            .option("checkpointLocation", str(place))
            .foreachBatch(self._take)
        )

    def _take(self, frame: Any, number: int) -> None:
        for row in frame.collect():
            self.counts[row["window"]["start"], row["site"]] = row["count"]

    def drain(self) -> None:
        query = self._counted.trigger(availableNow=True).start()
        query.awaitTermination()
        self._tell(query)

    def follow(self, files: Iterator[Path]) -> None:
        """Let it wait for every file."""
        query = self._counted.start()
        try:
            for _ in files:
                query.processAllAvailable()
        finally:
            query.stop()
        self._tell(query)

    def _tell(self, query: StreamingQuery) -> None:
        self.progress = [progress.json for progress in query.recentProgress]


def drained(stock: Stock, files: Iterator[Path]) -> None:
    assert len(list(files)) == FILES
    stock.drain()


def followed(stock: Stock, files: Iterator[Path]) -> None:
    stock.follow(files)


@pytest.mark.parametrize(
    ("seed", "way", "options"),
    [(1, drained, []), pytest.param(1, followed, ["--live"], marks=pytest.mark.faults)],
)
def test_the_doctor_counts_the_rows_that_stock_spark_loses(
    spark: SparkSession,
    tmp_path: Path,
    seed: int,
    way: Callable[[Stock, Iterator[Path]], None],
    options: list[str],
) -> None:
    folder = tmp_path / "files"
    files = write_files(folder, seed)
    folder_is_there = next(files)
    stock = Stock(spark, folder, tmp_path / "checkpoint")
    way(stock, _again(folder_is_there, files))
    call = ["doctor", "--input", str(folder), "--time", "at", "--partition", "site"]
    call += ["--delay", "30 seconds", "--window", "1 minute", "--json", *options]
    result = CliRunner().invoke(app, call)
    told = json.loads(result.stdout)["input"]
    assert told["rows"] + told["rows_without_time"] == FILES * ROWS
    lost = told["rows"] - sum(stock.counts.values())
    assert lost > 0
    assert result.exit_code == 1
    assert told["stock"]["lost"] == lost
    of_site = {str(site): 0 for site in range(SITES)}
    for (_, site), count in stock.counts.items():
        of_site[str(site)] += count
    for part in told["partitions"]:
        assert part["rows"] - part["lost_by_stock"] == of_site[part["partition"]]
    _check_progress(stock, tmp_path, lost)


def _again(first: Path, rest: Iterator[Path]) -> Iterator[Path]:
    yield first
    yield from rest


def _check_progress(stock: Stock, tmp_path: Path, lost: int) -> None:
    """The progress of the same run: fewer, as Spark counts groups, and the delay as it was set."""
    file = tmp_path / "progress.jsonl"
    file.write_text("\n".join(stock.progress))
    result = CliRunner().invoke(app, ["doctor", "--progress", str(file), "--json"])
    (told,) = json.loads(result.stdout)["progress"]
    kept = [json.loads(progress) for progress in stock.progress]
    assert told["rows"] == sum(progress["numInputRows"] for progress in kept)
    assert 0 < told["dropped"] <= lost
    assert told["counted_in_groups"]
    assert told["delay"] == 30.0


def test_the_task_of_the_doctor_runs_in_a_python_worker(spark: SparkSession) -> None:
    (row,) = spark.range(1).mapInArrow(_in_worker, "python string, pid long").collect()
    assert row.pid != os.getpid()
    assert Path(row.python).exists()
