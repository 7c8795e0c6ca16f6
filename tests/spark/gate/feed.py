"""Batches for Spark that are laid out by hand: one file of rows, and at most one message, each.

No planner, no store and no source of ours stands between: what is seen here is Spark itself, fed as
`trick.py` feeds it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession

from tidegate.spark.gate.trick import WATERMARK, gated

MS = 1_000
S = 1_000_000
TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("k", pa.list_(pa.string())), ("at", pa.list_(TIME)), (WATERMARK, TIME)])
COLUMNS = ("k", "at")


class Feed:
    """A folder of files: each is a batch of its own, in the order in which they were added."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self._count = 0
        folder.mkdir(parents=True)

    def batch(self, rows: Sequence[tuple[str, int]], message: int | None = None) -> None:
        """Rows are (key, microseconds); they come in packs of two."""
        made: list[dict[str, Any]] = []
        for n in range(0, len(rows), 2):
            pack = rows[n : n + 2]
            made.append({"k": [k for k, _ in pack], "at": [t for _, t in pack], WATERMARK: None})
        if message is not None:
            made.append({"k": None, "at": None, WATERMARK: message})
        columns = {
            field.name: pa.array([row[field.name] for row in made], field.type) for field in SCHEMA
        }
        path = self.folder / f"{self._count:04}.parquet"
        pq.write_table(pa.table(columns, schema=SCHEMA), path)
        # Spark takes files in the order of their time.
        os.utime(path, (self._count + 1_000_000, self._count + 1_000_000))
        self._count += 1

    def raw(self) -> DataFrame:
        """The packs with their messages."""
        schema = f"k ARRAY<STRING>, at ARRAY<TIMESTAMP>, {WATERMARK} TIMESTAMP"
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))

    def gated(self, *, within: timedelta = timedelta(0)) -> DataFrame:
        """The rows as the gate gives them to the user."""
        return gated(self.raw(), COLUMNS, "at", within=within)


@dataclass
class Heard:
    """What a query gave, batch by batch, and what Spark told of each."""

    rows: dict[int, list[Row]] = field(default_factory=dict)
    told: dict[int, Any] = field(default_factory=dict)

    def watermark(self, batch: int) -> int:
        """The watermark with which a batch ran."""
        text = self.told[batch]["eventTime"]["watermark"].replace("Z", "+00:00")
        return micros(datetime.fromisoformat(text))

    def dropped(self, batch: int) -> int:
        """How many rows Spark's operators dropped in a batch."""
        told = self.told[batch]["stateOperators"]
        return sum(operator["numRowsDroppedByWatermark"] for operator in told)

    def given(self, of: Callable[[Row], Any]) -> dict[int, list[Any]]:
        """What came out, sorted, of the batches in which anything did."""
        return {n: sorted(map(of, rows)) for n, rows in self.rows.items() if rows}


def run(frame: DataFrame, folder: Path, mode: str = "append") -> Heard:
    """Run a query to the end of its files."""
    heard = Heard()

    def take(rows: DataFrame, batch: int) -> None:
        heard.rows[batch] = rows.collect()

    with setting(frame.sparkSession, "spark.sql.streaming.numRecentProgressUpdates", "1000"):
        query = (
            frame.writeStream.outputMode(mode)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .foreachBatch(take)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    heard.told = {told["batchId"]: told for told in query.recentProgress}
    return heard


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of the session, for a while."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def micros(time: datetime) -> int:
    """Microseconds since 1970; Spark's own values have no zone, and are UTC here."""
    epoch = datetime.fromtimestamp(0, tz=time.tzinfo) if time.tzinfo else datetime(1970, 1, 1)  # noqa: DTZ001
    return (time - epoch) // timedelta(microseconds=1)
