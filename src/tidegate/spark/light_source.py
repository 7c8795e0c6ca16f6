"""A light source: a streaming source that weighs nothing until it has to read.

Spark carries a Python source through several processes before it reads: one that looks it up, one
that makes it, one that plans the reading, one that answers for offsets. Each would import all of
Tidegate to unpickle it. So the classes here are made inside a function, which has them pickled by
value, and what answers for them travels as bytes. Questions go to the desk of the driver
(`desk.py`); where there is none, the process of the source opens the bytes and asks itself.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.spark.desk import Place


class Answers(Protocol):
    """What answers for a source. It pickles, without what it has opened."""

    def begin(self) -> None:
        """Hear that a run begins: of every source of a query, before any is asked for offsets."""

    def stop_at_what_is_there(self) -> None:
        """Go no further than what there is now."""

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the next batch; the same offset when there is none."""

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """The tasks of a batch, to be opened by those who read."""

    def read(self, task: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of a task, on whatever machine it runs."""


def light_source(
    title: str,
    columns: str | StructType,
    beginning: dict[str, Any],
    payload: bytes,
    desk: Place | None,
) -> type[DataSource]:
    """The class of a source by this name, for what `pickled` made of its answers."""

    class Rows(DataSourceStreamReader, SupportsTriggerAvailableNow):
        """The reader; what it answers is said by `Answers`."""

        def __init__(self) -> None:
            self.opened: Any = None

        def __getstate__(self) -> dict[str, Any]:
            return {"opened": None}

        def _ask(self, what: str, *given: Any) -> Any:
            if desk is None:
                self.opened = self.opened or pickle.loads(payload)
                return getattr(self.opened, what)(*given)
            if self.opened is None:
                from multiprocessing.connection import Client

                address, key, name = desk
                self.opened = Client(address, authkey=key)
                self.opened.send(name)
            self.opened.send((what, *given))
            done, answer = self.opened.recv()
            if not done:
                raise answer
            return answer

        def initialOffset(self) -> dict[str, Any]:
            return dict(beginning)

        def getDefaultReadLimit(self) -> ReadLimit:
            # Whoever plans has limits of its own.
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
            found: Iterator[pa.RecordBatch] = pickle.loads(payload).read(partition.value)
            return found

    class Source(DataSource):
        """One source, by a name of its own."""

        @classmethod
        def name(cls) -> str:
            return title

        def schema(self) -> str | StructType:
            return columns

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return Rows()

    return Source


def pickled(answers: Answers) -> bytes:
    """Answers as they travel; a user's functions in them by value."""
    made: bytes = cloudpickle.dumps(answers)  # type: ignore[no-untyped-call]
    return made
