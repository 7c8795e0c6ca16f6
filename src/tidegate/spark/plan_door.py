"""The door of the plan stream: a source that weighs nothing until it has to plan.

Spark carries a Python source through several processes before it reads: one that looks it up, one
that makes it, one that plans the reading, one that answers for offsets. Each would import all of
Tidegate to unpickle it. So the classes here are made inside a function, which has them pickled by
value; they know the job as bytes. The process that answers for offsets asks the driver where there
is a desk (`desk.py`), and opens the job itself where there is none.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from tidegate.spark.asked import asker

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.spark.desk import Place
    from tidegate.spark.spec import Job

SCHEMA = "before string, after string, told string"
BEGINNING = {"state": "beginning", "told": ""}
"""The offset before the first plan: a symbol, for Spark asks for it again in every replay."""


def source_of(job: Job, desk: Place | None = None) -> type[DataSource]:
    """The source class of a job. The job is inside it, so no address of a catalog is an option."""
    title, columns = f"tidegate-plans-{job.name}", SCHEMA
    payload: bytes = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]
    beginning, asked = dict(BEGINNING), asker()

    class Plans(DataSourceStreamReader, SupportsTriggerAvailableNow):
        """The reader; what it answers is said by `plan_source.Planner`."""

        def __init__(self) -> None:
            self.opened: Any = None

        def __getstate__(self) -> dict[str, Any]:
            return {"opened": None}

        def _ask(self, what: str, *given: Any) -> Any:
            if desk is not None:
                self.opened = self.opened or asked(*desk)
                return self.opened.ask(what, *given)
            if self.opened is None:
                from tidegate.spark.plan_source import Planner

                self.opened = Planner(pickle.loads(payload))
            return getattr(self.opened, what)(*given)

        def initialOffset(self) -> dict[str, Any]:
            return dict(beginning)

        def getDefaultReadLimit(self) -> ReadLimit:
            # The planner has limits of its own.
            return ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:
            self._ask("stop_at_what_is_there")

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            found: dict[str, Any] = self._ask("after", start)
            return found

        def partitions(
            self, start: dict[str, Any], end: dict[str, Any]
        ) -> Sequence[InputPartition]:
            return [InputPartition((start["state"], end["state"], end["told"]))]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            import pyarrow

            names = ("before", "after", "told")
            row = dict(zip(names, ([value] for value in partition.value), strict=True))
            yield pyarrow.RecordBatch.from_pydict(row)

    class JobPlans(DataSource):
        """One row per batch: the plan."""

        @classmethod
        def name(cls) -> str:
            return title

        def schema(self) -> str:
            return columns

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return Plans()

    return JobPlans
