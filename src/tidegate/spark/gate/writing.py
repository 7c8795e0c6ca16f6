"""Writing what Spark's operators give: the same sinks, once, with the output frontier.

    job = write_stream(sessions, sink=StreamSink("sessions"), query="sessions", store="shop")
    job.run()

Every batch of the streaming query is one batch of the sink, committed in one catalog transaction
that moves the query's record from the batch before; the same batch again changes nothing. The note
for a derived stream is the watermark that Spark was sent for the *start* of the batch: by it the
operators have given out what they will, and no later result is before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidegate import errors
from tidegate.eventtime.instants import micros, parse_duration
from tidegate.spark.arrow_types import arrow_schema
from tidegate.spark.gate.batches import GateRun, fresh_runner, runner_of
from tidegate.spark.running import (
    RunningJob,
    Startable,
    checkpoint_of,
    refuse_finished,
    started,
)
from tidegate.spark.shape import EVENT_TIME, WINDOW_END, WINDOW_START
from tidegate.spark.sinks.sink import Sink, TaskSink, refuse_connect
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

Mode = Literal["append", "update", "complete"]
Duration = timedelta | str
WINDOWS = ("window", "session_window")
"""What Spark calls the column of its windows."""


@dataclass(frozen=True)
class GateJob(Startable):
    """A streaming query with a sink, that may be started: on this checkpoint."""

    rows: DataFrame
    job: GateRun
    mode: Mode

    def start(
        self, *, available_now: bool = False, every: Duration | None = None, tell: bool = True
    ) -> RunningJob:
        """Start it: for good, or until everything that is there now has been looked at.

        `every` is the least time between two batches; without it a batch follows the last at once.
        Its figures are told in one line at its end: see `tell` in `Startable.start`.
        """
        refuse_finished(self.job)
        store, name, columns = self.job.store(), self.job.name, self.job.columns
        runner = fresh_runner(self.job)
        runner.session = self.rows.sparkSession
        event_time = EVENT_TIME if EVENT_TIME in columns.names else None
        self.job.sink.prepare(store, name, columns, event_time)
        writer = (
            self.rows.writeStream.queryName(name)
            .outputMode(self.mode)
            .option("checkpointLocation", self.job.checkpoint)
            .foreachBatch(_batch_function(self.job))
        )
        return started(
            writer,
            self.job,
            available_now=available_now,
            every=every,
            tell=tell,
            at_end=[runner.tell_last],
        )


def write_stream(
    rows: DataFrame,
    *,
    sink: Sink,
    query: str,
    store: Store | str | Path,
    data: str | Path | None = None,
    mode: Mode = "append",
    checkpoint: str | Path | None = None,
    event_time: str | None = None,
    time_behind: Duration | None = None,
) -> GateJob:
    """Have a streaming DataFrame written to a sink, each batch once.

    `query` and `store` are those of its sources. A result of a window has the time `end - 1 us`; a
    column `_event_time`, or the one named by `event_time`, decides otherwise. `time_behind`: how
    far before the watermark the time of a result may lie, as when joins hold rows back. It must be
    said where we cannot know: when the query chooses the time, or has several sources.
    """
    if mode == "complete" and isinstance(sink, TaskSink):
        raise errors.complete_needs_frames(sink.kind)
    refuse_connect(sink, rows.sparkSession)
    home = store if isinstance(store, Store) else shared_store(store, data)
    catalog, place = home.addresses
    if time_behind is None and (event_time is not None or EVENT_TIME in rows.columns):
        raise errors.time_behind_missing(query, "its results have a time of their own choice")
    made = _with_time(rows, event_time)
    behind = parse_duration(time_behind) if isinstance(time_behind, str) else time_behind
    job = GateRun(
        name=query,
        catalog=catalog,
        data=place,
        sink=sink,
        columns=_columns(made.schema),
        time_behind=None if behind is None else micros(behind),
        checkpoint=str(checkpoint or checkpoint_of(home, query)),
    )
    return GateJob(made, job, mode)


def _batch_function(job: GateRun) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls; on Spark Connect it is pickled, and runs beside the server."""

    def run(rows: DataFrame, batch: int) -> None:
        runner_of(job).run(rows, batch)

    return run


def _with_time(rows: DataFrame, event_time: str | None) -> DataFrame:
    """Windows as the two columns that slices have, and the time of a result."""
    for name in WINDOWS:
        if name in rows.columns and isinstance(rows.schema[name].dataType, StructType):
            others = [F.col(f"`{column}`") for column in rows.columns if column != name]
            rows = rows.select(
                F.col(f"{name}.start").alias(WINDOW_START),
                F.col(f"{name}.end").alias(WINDOW_END),
                *others,
            )
    if event_time is not None:
        return rows.withColumn(EVENT_TIME, F.col(event_time))
    if EVENT_TIME in rows.columns or WINDOW_END not in rows.columns:
        return rows
    last = F.timestamp_micros(F.unix_micros(WINDOW_END) - F.lit(1))
    return rows.withColumn(EVENT_TIME, last)


def _columns(schema: StructType) -> pa.Schema:
    return arrow_schema(schema).remove_metadata()
