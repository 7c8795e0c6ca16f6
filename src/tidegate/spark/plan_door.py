"""The door of the plan stream: a light source whose every batch is one row, the plan.

What was planned in this process need not be fetched through Spark when the batch runs: Spark asks
once for each batch, writes the answer down, and runs exactly that. A batch that was written down in
an earlier run, or planned in another process, was not planned here, and is fetched.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from tidegate.spark.desk import place_for
from tidegate.spark.light_source import light_source, pickled
from tidegate.spark.plan_source import BEGINNING, Planner
from tidegate.spark.spec import Job

SCHEMA: Final = "before string, after string, told string"


class PlanRow(NamedTuple):
    """The row of a batch: the states before and after it, and what else was told of the plan."""

    before: str
    after: str
    told: str


@dataclass
class Plans:
    """What answers for the source of a job, in one run."""

    job: Job
    last: PlanRow | None = None
    """What was planned last, if that was here."""
    _opened: Planner | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"job": self.job, "last": None, "_opened": None}

    @property
    def _planner(self) -> Planner:
        if self._opened is None:
            self._opened = Planner(self.job)
        return self._opened

    def begin(self) -> None:
        """Nobody else has to hear of it."""

    def stop_at_what_is_there(self) -> None:
        """Go no further than what there is now."""
        self._planner.stop_at_what_is_there()

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the next batch."""
        end = self._planner.after(start)
        if end != start:
            self.last = _row(start, end)
        return end

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """One, which knows the plan."""
        return [pickle.dumps(tuple(_row(start, end)))]

    def read(self, task: bytes) -> Iterator[pa.RecordBatch]:
        """The plan as a row."""
        row = PlanRow(*pickle.loads(task))._asdict()
        yield pa.RecordBatch.from_pydict({name: [value] for name, value in row.items()})


def source_of(spark: SparkSession, plans: Plans) -> type[DataSource]:
    """The source class of a job. The job is inside it, so no address of a catalog is an option."""
    title = f"tidegate-plans-{plans.job.name}"
    desk = place_for(spark, lambda: plans)
    return light_source(title, SCHEMA, BEGINNING, pickled(plans), desk)


def _row(start: dict[str, Any], end: dict[str, Any]) -> PlanRow:
    return PlanRow(start["state"], end["state"], end["told"])
