"""The light door of the gate: a source that weighs nothing until it has to read.

`format("tidegate")` is found by its name and made from options, so every process that Spark carries
it through imports all of Tidegate. `read_stream` in a classic session has the gate at hand. Its
source is made here, with classes that are pickled by value: it asks the desk of the driver for
offsets and tasks, hands the tasks on as bytes, and only those who read open them.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidegate.spark.asked import asker
from tidegate.spark.desk import Place, place_for
from tidegate.spark.gate.offsets import BEGINNING
from tidegate.spark.gate.reader import GateReader

if TYPE_CHECKING:
    import pyarrow as pa


class AtDesk:
    """What the desk answers for a source of the gate."""

    def __init__(self, reader: GateReader) -> None:
        self._reader = reader

    def begin(self) -> None:
        """Make itself known to the other sources of its query."""
        self._reader.getDefaultReadLimit()

    def stop_at_what_is_there(self) -> None:
        """End this run with what there is now."""
        self._reader.prepareForTriggerAvailableNow()

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the next batch."""
        return self._reader.latestOffset(start, ReadAllAvailable())

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """The tasks of a batch, to be opened by those who read."""
        return [pickle.dumps(task) for task in self._reader.partitions(start, end)]


def light_source(spark: SparkSession, reader: GateReader) -> type[DataSource] | None:
    """The source of a gate, by a name of its own; None where there is no desk to ask."""
    payload: bytes = cloudpickle.dumps(reader)  # type: ignore[no-untyped-call]
    gate = reader.gate
    name = f"tidegate-{gate.name}-{gate.source}-{hashlib.sha256(payload).hexdigest()[:12]}"
    # One planner for each run: whoever connects has a reader of its own.
    desk = place_for(spark, lambda: AtDesk(pickle.loads(payload)), name)
    return None if desk is None else _source(name, reader.schema, payload, desk)


def _source(title: str, columns: StructType, payload: bytes, desk: Place) -> type[DataSource]:
    beginning, asked = dict(BEGINNING), asker()

    class Rows(DataSourceStreamReader, SupportsTriggerAvailableNow):
        """The reader; what it answers is said by `reader.GateReader`."""

        def __init__(self) -> None:
            self.opened: Any = None

        def __getstate__(self) -> dict[str, Any]:
            return {"opened": None}

        def _ask(self, what: str, *given: Any) -> Any:
            self.opened = self.opened or asked(*desk)
            return self.opened.ask(what, *given)

        def initialOffset(self) -> dict[str, Any]:
            return dict(beginning)

        def getDefaultReadLimit(self) -> ReadLimit:
            self._ask("begin")
            return ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:
            self._ask("stop_at_what_is_there")

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            found: dict[str, Any] = self._ask("after", start)
            return found

        def partitions(
            self, start: dict[str, Any], end: dict[str, Any]
        ) -> Sequence[InputPartition]:
            return [InputPartition(task) for task in self._ask("tasks", start, end)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            found: Iterator[pa.RecordBatch] = pickle.loads(payload).read(
                pickle.loads(partition.value)
            )
            return found

    class GatedRows(DataSource):
        """One stream, behind the gate."""

        @classmethod
        def name(cls) -> str:
            return title

        def schema(self) -> StructType:
            return columns

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return Rows()

    return GatedRows
