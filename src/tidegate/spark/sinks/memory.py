"""The memory sink: results in the Python process of the driver, to look at and for tests.

Within a process every batch counts once, also when it runs again. Rows end with the process: a job
that goes on in a new one has there what came since. All rows must fit into memory, and on Spark
Connect, where batches run in another process, it is refused.

    sink = MemorySink("per minute")
    windows(spark, "orders", size="1 minute", sink=sink, ...).run()
    sink.table()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate import errors
from tidegate.spark.arrow_types import cast
from tidegate.spark.sinks.sink import Batch, FrameSink
from tidegate.store.store import Store


@dataclass
class _Rows:
    """What one name holds, of one history. A lock guards it: readers are other threads."""

    schema: pa.Schema
    lineage: str = ""
    job: str = ""
    batches: dict[int, pa.Table] = field(default_factory=dict)
    taken: tuple[Batch, pa.Table] | None = None
    """What was computed and is not settled yet, with the run it belongs to."""
    lock: Any = field(default_factory=Lock)


_named: dict[str, _Rows] = {}


@dataclass(frozen=True)
class MemorySink(FrameSink):
    """Keep rows under a name; every `MemorySink` of that name in this process sees them."""

    name: str
    kind: ClassVar[str] = "memory"
    in_this_process: ClassVar[bool] = True

    # ---- what a user asks ----

    def table(self) -> pa.Table:
        """All rows so far, in their order: whole batches only."""
        rows = self._rows()
        with rows.lock:
            tables = [rows.batches[number] for number in sorted(rows.batches)]
            return pa.concat_tables([rows.schema.empty_table(), *tables], promote_options="default")

    def clear(self) -> bool:
        """Forget all rows, so that another history may begin; return whether there were any."""
        found = _named.get(self.name)
        if found is None:
            return False
        with found.lock:
            had = bool(found.batches)
            found.batches, found.lineage, found.taken = {}, "", None
            return had

    # ---- what a job asks ----

    def prepare(self, store: Store, job: str, schema: pa.Schema, event_time: str | None) -> None:
        """Make room, or learn of columns that were added."""
        _named.setdefault(self.name, _Rows(schema)).schema = schema

    def settled(self, batch: Batch) -> int | None:
        """The rows of a batch that is here already; another history is refused."""
        rows = self._rows()
        with rows.lock:
            if not rows.lineage:
                rows.lineage, rows.job = batch.lineage, batch.job
            if rows.lineage != batch.lineage:
                place = f'MemorySink("{self.name}")'
                raise errors.sink_fenced(
                    place, batch.job, batch.lineage, batch.number, rows.job, rows.lineage
                )
            found = rows.batches.get(batch.number)
            return None if found is None else len(found)

    def take(self, rows: DataFrame, batch: Batch) -> int:
        """Bring the rows of a batch to the driver."""
        found = rows.toArrow()
        typed = [cast(part, batch.columns) for part in found.to_batches()]
        table = pa.Table.from_batches(typed, schema=batch.columns)
        kept = self._rows()
        with kept.lock:
            kept.taken = (batch, table)
        return len(table)

    def settle(self, batch: Batch, written: Sequence[Any]) -> None:
        """From here on the batch is visible."""
        rows = self._rows()
        with rows.lock:
            assert rows.taken is not None, "what is settled was taken"
            assert rows.taken[0] is batch, "a run settles what it has taken itself"
            if len(rows.taken[1]):  # a busy job has many batches that give nothing
                rows.batches[batch.number] = rows.taken[1]
            rows.taken = None

    def _rows(self) -> _Rows:
        if self.name not in _named:
            raise errors.memory_without_rows(self.name, _named)
        return _named[self.name]
