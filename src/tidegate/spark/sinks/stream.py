"""The stream sink: results become a stream of the store, with marks of its own.

Tasks write chunk files, the batch's catalog transaction makes them visible and notes the output
frontier, as a writer like any other. So the derived stream carries exact time, and the next job
needs no tolerance. The writer is the job: it stays known until the input has ended, however long
the job stands still.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.spark.shape import EVENT_TIME
from tidegate.spark.sinks.sink import Batch, TaskSink
from tidegate.store.catalog import streams, writers
from tidegate.store.chunk_file import EVENT_TIME_TYPE
from tidegate.store.staging import Staged, publish_staged, reroute, stage
from tidegate.store.store import Store

RESULT_TIME = "event_time"
"""The event-time column of a stream that a sink creates: system names are not the user's."""


@dataclass(frozen=True)
class StreamSink(TaskSink):
    """Append to a stream of the job's store; it is created when it is not there.

    `routing_key` and `segments` are those of a stream that is created.
    """

    stream: str
    routing_key: tuple[str, ...] = ()
    segments: int = 1
    kind: ClassVar[str] = "stream"

    @property
    def node(self) -> str:
        """Its name among the nodes of the job."""
        return f"sink:{self.stream}"

    def prepare(self, store: Store, job: str, schema: pa.Schema, event_time: str | None) -> None:
        """Create the stream, or check that the results fit it; announce the job as its writer."""
        if event_time is None:
            raise errors.result_without_time(job)
        wanted = stream_schema(schema)
        if self.stream not in store.list_streams():
            store.create_stream(
                self.stream,
                wanted,
                exist_ok=True,
                event_column=RESULT_TIME,
                routing_key=self.routing_key,
                segments=self.segments,
                max_future=None,
            )
        record = store.describe(self.stream)
        missing = [name for name in wanted.names if name not in record.config.schema.names]
        if record.config.event_column == RESULT_TIME and missing:
            fields = [wanted.field(name).with_nullable(True) for name in missing]
            record = store.alter_stream(self.stream, add_columns=fields)
        for name in wanted.names:
            if name not in record.config.schema.names:
                raise errors.unknown_column(self.stream, name, record.config.schema.names)

        def announce(on: Connection) -> None:
            writers.schedule(on, record.id)
            writers.open_writer(
                on, record.id, _writer(job), notes_time=True, sink=True, now=store.clock()
            )

        store.database.write(announce)

    def write(
        self, batches: Iterator[pa.RecordBatch], store: Store, batch: Batch, task: int
    ) -> Staged | None:
        """Write the rows to files that nobody sees yet."""
        table = pa.Table.from_batches(batches, schema=batch.columns)
        if not len(table):
            return None
        place = f"{batch.job}/{batch.number}"
        return stage(store, self.stream, as_stream(table), place, writer=_writer(batch.job))

    def rerouted(
        self, store: Store, written: Sequence[Staged | None], sealed: Any
    ) -> Sequence[Staged | None]:
        """The same rows for the segments that followed."""
        return reroute(store, [one for one in written if one is not None], sealed)

    def commit(
        self,
        on: Connection,
        store: Store,
        batch: Batch,
        written: Sequence[Staged | None],
        now: Instant,
    ) -> None:
        """Make the rows visible, and note the frontier."""
        record = streams.get(on, self.stream)
        writers.schedule(on, record.id)
        row = writers.look(on, record.id, _writer(batch.job))
        if row is None:
            raise errors.writer_fenced(_writer(batch.job), 0)
        publish_staged(on, store, [one for one in written if one is not None], now)
        place, lineage = writers.position(on, record.id)
        if batch.frontier is not UNKNOWN and (
            row.notes.highest is UNKNOWN or batch.frontier > row.notes.highest
        ):
            noted = row.notes.note(batch.frontier, place, lineage)
            row = writers.put(on, row, noted, notes_time=True)
        if batch.finished:
            parted = row.notes.mark.goodbye(place, lineage)
            writers.put(on, row, replace(row.notes, mark=parted))

    def noted(self, store: Store) -> None:
        """Tell whoever waits for notes of the stream."""
        store.noted(self.stream)

    def rows_of(self, written: Sequence[Staged | None]) -> int:
        """How many rows were written."""
        return sum(one.rows for one in written if one is not None)


def stream_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a stream of these results: system columns get names that a user may have."""
    return pa.schema(
        [
            field.with_name(_named(field.name)).with_type(
                EVENT_TIME_TYPE if field.name == EVENT_TIME else field.type
            )
            for field in schema
        ]
    )


def as_stream(table: pa.Table) -> pa.Table:
    """Results as rows of that stream."""
    return table.rename_columns([_named(name) for name in table.column_names])


def _named(name: str) -> str:
    if name == EVENT_TIME:
        return RESULT_TIME
    return name.removeprefix("_") if name in ("_window_start", "_window_end") else name


def _writer(job: str) -> str:
    return f"job:{job}"
