"""A function of the user's own as a sink, with what it needs to be exact.

The function is called with the rows of a batch, a DataFrame that is not computed yet, and the
batch: once for every batch in its order, and again with the same (job, lineage, number) and the
same rows when the batch runs again after a crash. Whoever keeps these three beside the rows, in one
transaction, has every row once; `examples/own_database.py` does. What belongs in the job's own
catalog goes through `batch.in_commit`, which happens once.

    def keep(rows, batch):
        table = rows.toArrow()
        ...
        return len(table)

    windows(spark, "orders", size="1 minute", sink=ForeachBatch(keep), ...)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame

from tidegate.spark.sinks.sink import Batch, FrameSink


@dataclass(frozen=True)
class ForeachBatch(FrameSink):
    """Call `function(rows, batch)` for every batch, also for one without rows.

    What it returns is counted as rows out, if it is a number. On Spark Connect the function is
    pickled and runs beside the server. What it raises fails the batch, which is then run again by
    the next start. With `late = update` rows have `_op` and `_revision`.
    """

    function: Callable[[DataFrame, Batch], int | None]
    kind: ClassVar[str] = "function"

    def take(self, rows: DataFrame, batch: Batch) -> int:
        """Call the function."""
        found = self.function(rows, batch)
        return found if isinstance(found, int) else 0
