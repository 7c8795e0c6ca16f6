"""The light door of the gate.

`format("tidegate")` is found by its name and made from options, so every process that Spark carries
it through imports all of Tidegate. `read_stream` in a classic session has the gate at hand, and
makes a light source of it.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidegate.spark.desk import place_for
from tidegate.spark.gate.offsets import BEGINNING
from tidegate.spark.gate.reader import GateReader
from tidegate.spark.light_source import light_source, pickled


@dataclass
class GateAnswers:
    """What answers for a source of the gate."""

    reader: GateReader

    def begin(self) -> None:
        """Make itself known to the other sources of its query."""
        self.reader.getDefaultReadLimit()

    def stop_at_what_is_there(self) -> None:
        """End this run with what there is now."""
        self.reader.prepareForTriggerAvailableNow()

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the next batch."""
        return self.reader.latestOffset(start, ReadAllAvailable())

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """The tasks of a batch."""
        return [pickle.dumps(task) for task in self.reader.partitions(start, end)]

    def read(self, task: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of a task, and its message behind them."""
        return self.reader.read(pickle.loads(task))


def source_of(spark: SparkSession, reader: GateReader) -> type[DataSource] | None:
    """The source of a gate, by a name of its own; None where there is no desk to ask."""
    payload = pickled(GateAnswers(reader))
    gate = reader.gate
    # Frames may have the same query and the same stream, and yet not the same store.
    name = f"tidegate-{gate.name}-{gate.source}-{hashlib.sha256(payload).hexdigest()[:12]}"
    # One planner for each run: whoever connects has a reader of its own.
    desk = place_for(spark, lambda: pickle.loads(payload), name)
    return None if desk is None else light_source(name, reader.schema, BEGINNING, payload, desk)
