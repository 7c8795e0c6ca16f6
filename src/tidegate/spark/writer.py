"""Writes by `format("tidegate")`: tasks write files, the driver makes them visible at once.

A job that fails, or is aborted, leaves nothing that can be seen; of a task that ran twice only the
files count that Spark commits. So a batch write appears once or not at all. A streaming write with
a `writer_id` is exactly once over restarts and replays: the catalog keeps the last batch of the
writer, under the name that Spark gives the query and keeps in its checkpoint. Without one a batch
may appear twice after a crash between the commit and Spark's own record of it.

`note_time` promises that the writer's later rows will not be before that time: an instant, or `max`
for the largest event time of the batch. A batch write then says goodbye to the marks; a streaming
query stays known until the stream's `mark_timeout` finds it silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.spark.source_options import WriteOptions
from tidegate.store.catalog.writer_batches import Batch
from tidegate.store.staged_commit import commit_staged
from tidegate.store.staging import Staged, discard, stage

ROWS: Final = 1_000_000
BYTES: Final = 128 * 1024 * 1024
"""How much a task stages at once: a file per segment each time."""

_QUERY: Final = "sql.streaming.queryId"
"""Where Spark tells tasks which query they work for; its checkpoint keeps the name."""

_Planned = TypeVar("_Planned", bound="_Writes")


@dataclass
class Written(WriterCommitMessage):
    """What a task has staged, and for which query."""

    staged: list[Staged]
    query: str | None = None


@dataclass
class _Writes:
    """What both kinds of write do. It travels to the tasks."""

    options: WriteOptions

    @classmethod
    def planned(
        cls: type[_Planned], options: WriteOptions, columns: Sequence[str], overwrite: bool
    ) -> _Planned:
        """A write of these columns; what cannot be is refused before any task runs."""
        if overwrite:
            raise errors.wrong_setting("mode", "overwrite or complete", ["append", "update"])
        place = options.place
        declared = place.open().describe(place.stream).config.schema.names
        for name in columns:
            if name not in declared:
                raise errors.unknown_column(place.stream, name, declared)
        return cls(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: write rows to files that nobody can see yet."""
        store = self.options.place.open()
        staged: list[Staged] = []
        try:
            for table in _gathered(iterator):
                staged.append(
                    stage(
                        store,
                        self.options.place.stream,
                        table,
                        # Without a routing key: each time to another segment.
                        uuid4().hex,
                        bad_rows=self.options.bad_rows,
                        writer=self.options.writer_id,
                    )
                )
        except BaseException:
            discard(store, staged)
            raise
        context = TaskContext.get()
        return Written(staged, None if context is None else context.getLocalProperty(_QUERY))

    def _discard(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        staged = _staged(messages)
        if staged:
            discard(self.options.place.open(), staged)

    def _commit(self, staged: Sequence[Staged], batch: Batch | None, *, goodbye: bool) -> bool:
        options = self.options
        return commit_staged(
            options.place.open(),
            options.place.stream,
            staged,
            writer_id=options.writer_id,
            batch=batch if options.writer_id is not None else None,
            note=self._note(staged),
            goodbye=goodbye,
        )

    def _note(self, staged: Sequence[Staged]) -> Instant | None:
        if self.options.note_time != "max":
            return self.options.note_time
        return max((one.max_time for one in staged if one.max_time is not None), default=None)


class BatchWriter(_Writes, DataSourceArrowWriter):
    """`df.write.format("tidegate")`."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver: all of it appears."""
        self._commit(_staged(messages), None, goodbye=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver: none of it appears."""
        self._discard(messages)


class StreamWriter(_Writes, DataSourceStreamArrowWriter):
    """`df.writeStream.format("tidegate")`."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: a batch appears, unless it has before."""
        told = [one.query or "" for one in messages if isinstance(one, Written)]
        # A batch without tasks has no rows, and no name is needed to write none of them once.
        self._commit(_staged(messages), Batch(told[0], batchId) if told else None, goodbye=False)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: none of it appears."""
        self._discard(messages)


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    """What the tasks have staged, in their order."""
    return [one for told in messages if isinstance(told, Written) for one in told.staged]


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in tables that are worth a file."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS or size >= BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
