"""Stock Spark on the demo's orders: its own file source, its own watermark, append mode.

It gets the same rows in files, in the order in which they arrived, a few files at a time, and a
delay of ten minutes, which is three hundred times the disorder inside a partition. Nothing is held
against it that it did not lose itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.cli.demo_rows import DELAY, WINDOW
from tidegate.cli.demo_truth import Results, results_of
from tidegate.eventtime.instants import Instant, micros, parse_instant

FILES: Final = 8
"""Files per batch: about one site's backlog, or two steps of all writers."""
COLUMNS: Final = "site int, item string, cents long, at timestamp"
RESULTS: Final = "window_start timestamp, item string, n long, cents long"


@dataclass(frozen=True)
class StockJob:
    """A stock streaming query; it may be started more than once, each time in a new folder."""

    spark: SparkSession
    files: Path
    folder: Path

    def start(self, *, every: float | None = None) -> StreamingQuery:
        """Start it for good, with so many seconds between two batches; or over what there is."""
        orders = (
            self.spark.readStream.schema(COLUMNS)
            .option("maxFilesPerTrigger", FILES)
            .parquet(str(self.files))
        )
        counted = (
            orders.withWatermark("at", f"{micros(DELAY)} microseconds")
            .groupBy(F.window("at", f"{micros(WINDOW)} microseconds"), "item")
            .agg(F.count("*").alias("n"), F.sum("cents").alias("cents"))
            .select(F.col("window.start").alias("window_start"), "item", "n", "cents")
        )
        writer = (
            counted.writeStream.format("parquet")
            .outputMode("append")
            .option("path", str(self.folder / "results"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
        )
        if every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(every * 1000)} milliseconds").start()

    def results(self) -> Results:
        """What it has given out: of its files those that its own log knows."""
        kept = self.spark.read.schema(RESULTS).parquet(str(self.folder / "results"))
        return results_of([kept.toArrow()])


def history(query: StreamingQuery) -> Iterator[tuple[float, Instant]]:
    """When each batch ended, by the wall clock in seconds, and the watermark it worked with."""
    for progress in query.recentProgress:
        watermark = _watermark(progress)
        if watermark is not None:
            began = datetime.fromisoformat(progress["timestamp"])
            yield began.timestamp() + progress["durationMs"]["triggerExecution"] / 1000, watermark


def last_window(query: StreamingQuery, until: Instant) -> float | None:
    """When the batch ended that closed every window before a time; none while it is to come."""
    return next((at for at, watermark in history(query) if watermark >= until), None)


def _watermark(progress: dict[str, Any]) -> Instant | None:
    text = progress.get("eventTime", {}).get("watermark")
    return None if text is None or text.startswith("1970") else parse_instant(text)
