"""Rows to read: small values that tell a task, on any machine, which rows are its own.

A `StreamRows` names ranges of offsets of one log, the columns, and the event time [a, b) that is
wanted of them. Where the rows lie in Parquet files that an engine can open by itself, it names
these too, with the numbers of the rows inside each file; offsets remain the truth, and whoever
cannot read a file (it was compacted meanwhile, a column was added later) goes by them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pt
from sqlalchemy import Connection

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import EVENT_TIME, OFFSET, Description, Log, open_log, read_schema
from tidegate.logs.store_log import StoreLog
from tidegate.planning.facts import Spans
from tidegate.store.catalog import chunk_rows, streams
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.reading import SYSTEM_COLUMNS

PARTITION: Final = "_partition"
TIMESTAMP: Final = "_timestamp"


@dataclass(frozen=True)
class FileRows:
    """Rows [first, last) of a file; the whole of it when `whole`."""

    path: str
    first: int
    last: int
    whole: bool
    partition: str
    offset: int
    """The offset of row `first`."""
    committed_at: Instant
    """When its rows were committed, if they were so at once."""
    inside: bool = False
    """All its rows have times that are wanted: nobody needs to look at each."""


@dataclass(frozen=True)
class StreamRows:
    """Which rows of a stream."""

    log: Description
    ranges: tuple[tuple[str, int, int], ...]
    columns: tuple[str, ...]
    times: tuple[Known, Instant]
    files: tuple[FileRows, ...] | None = None
    at: Instant | None = None
    """They count as if this were their time; in a full join, as if they had come then."""
    ordered: bool = False
    """They are wanted in the order of their time, and of their offset where that is equal."""

    def open(self) -> Log:
        """The log, on whatever machine this is."""
        return open_log(self.log)

    @property
    def system(self) -> tuple[str, ...]:
        """The system columns among them that are not in a file."""
        return tuple(c for c in self.columns if c in SYSTEM_COLUMNS and c != EVENT_TIME)

    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        log = self.open()
        return frame_schema(log, self.columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, range by range, read through the log."""
        if self.ordered:
            yield from self.table().to_batches()
            return
        for _, batch in self.by_partition():
            yield batch

    def by_partition(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows as they lie in the log, with the partition of each batch."""
        log = self.open()
        for partition, start, end in self.ranges:
            for batch in read_rows(log, partition, start, end, self.columns, self.times):
                yield partition, batch

    def table(self) -> pa.Table:
        """All of them at once."""
        if not self.ordered:
            return pa.Table.from_batches(self.batches(), schema=self.schema())
        # The sort is stable, so partitions of one offset come in the order of the ranges.
        wanted = replace(self, ordered=False, columns=tuple({*self.columns, EVENT_TIME, OFFSET}))
        keys = [(EVENT_TIME, "ascending"), (OFFSET, "ascending")]
        return wanted.table().sort_by(keys).select(list(self.columns))


def frame_schema(log: Log, columns: Sequence[str]) -> pa.Schema:
    """The schema of these columns, system columns of every kind among them."""
    known = {c: pa.field(c, kind) for c, kind in SYSTEM_COLUMNS.items()}
    own = read_schema(log.name, log.schema, [c for c in columns if c not in known])
    return pa.schema([known[c] if c in known else own.field(c) for c in columns])


def read_rows(
    log: Log,
    partition: str,
    start: int,
    end: int,
    columns: Sequence[str],
    times: tuple[Known, Instant] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a range, with system columns of every kind, whatever log it is."""
    schema = frame_schema(log, columns)
    ours = [c for c in columns if c in (PARTITION, TIMESTAMP)]
    if not ours or isinstance(log, StoreLog):
        yield from log.read(partition, start, end, list(columns), times)
    else:
        asked = [c for c in columns if c not in ours] or [OFFSET]
        for batch in log.read(partition, start, end, asked, times):
            # Who has no clock of arrivals cannot say when a row came.
            known = {PARTITION: pa.repeat(partition, batch.num_rows)}
            arrays = [
                known.get(c, pa.nulls(batch.num_rows, SYSTEM_COLUMNS[c]))
                if c in ours
                else batch.column(c)
                for c in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows_of(
    log: Log,
    spans: Spans,
    columns: Sequence[str],
    times: tuple[Known, Instant],
    *,
    at: Instant | None = None,
    ordered: bool = False,
) -> StreamRows:
    """The rows of some spans, with neighbours joined into one range."""
    ranges = _joined(spans)
    return StreamRows(log.describe(), ranges, tuple(columns), times, at=at, ordered=ordered)


def with_files(wanted: Sequence[StreamRows], log: Log) -> list[StreamRows]:
    """The same with the files that hold them now, where an engine may open these by itself.

    That is so for a stream of the store in a local folder, whose columns have types that Parquet
    readers agree on, and whose event time is in the file: rows that are timed by their commit have
    it in the catalog. All are looked up in one consistent read, each chunk once.
    """
    if not isinstance(log, StoreLog) or not log.store.files.is_local:
        return list(wanted)
    config = log.store.describe(log.name).config
    columns = {column for rows in wanted for column in rows.columns}
    if config.event_column is None or not all(_is_plain(config.schema, c) for c in columns):
        return list(wanted)

    def work(on: Connection) -> list[StreamRows]:
        chunks = _Chunks(on, streams.get(on, log.name).id, log.store.files.full)
        chunks.look_up([range_ for rows in wanted for range_ in rows.ranges])
        return [chunks.with_files(rows) for rows in wanted]

    return log.store.database.read(work)


class _Chunks:
    """The chunks of a stream that hold some ranges, as files."""

    def __init__(self, on: Connection, stream_id: int, full: Callable[[str], str]) -> None:
        self._on, self._id, self._full = on, stream_id, full
        records = streams.segment_records(on, stream_id)
        self._numbers = {record.name: record.segment.id.number for record in records}
        self._found: dict[str, list[ChunkRow]] = {}

    def look_up(self, ranges: Iterable[tuple[str, int, int]]) -> None:
        """Ask for what holds these; pieces of time share chunks, so ranges overlap."""
        together: list[tuple[str, int, int]] = []
        for partition, start, end in sorted(ranges):
            if together and together[-1][0] == partition and start <= together[-1][2]:
                last = together.pop()
                together.append((partition, last[1], max(last[2], end)))
            else:
                together.append((partition, start, end))
        for partition, start, end in together:
            number = self._numbers[partition]
            found = self._found.setdefault(partition, [])
            for chunk in chunk_rows.between(self._on, self._id, number, start, end):
                # One chunk may reach from one of them into the next.
                if not found or found[-1].start < chunk.start:
                    found.append(chunk)

    def with_files(self, rows: StreamRows) -> StreamRows:
        """These rows with their files."""
        files: list[FileRows] = []
        for partition, start, end in rows.ranges:
            chunks = self._found[partition]
            first = bisect_right(chunks, start, key=lambda chunk: chunk.end)
            last = bisect_left(chunks, end, key=lambda chunk: chunk.start)
            for chunk in chunks[first:last]:
                if not _reaches(chunk.min_time, chunk.max_time, rows.times):
                    continue
                if TIMESTAMP in rows.columns and self._commits(partition, chunk, start) > 1:
                    # Rows of several commits in one file have their instants in the catalog only.
                    return rows
                files.append(self._file(partition, chunk, start, end, rows.times))
        return replace(rows, files=tuple(files))

    def _commits(self, partition: str, chunk: ChunkRow, start: int) -> int:
        begin = max(start, chunk.start)
        number = self._numbers[partition]
        return len(chunk_rows.runs(self._on, self._id, number, begin, chunk.end))

    def _file(
        self, partition: str, chunk: ChunkRow, start: int, end: int, times: tuple[Known, Instant]
    ) -> FileRows:
        first = chunk.skip + max(start - chunk.start, 0)
        last = chunk.skip + min(end, chunk.end) - chunk.start
        return FileRows(
            path=self._full(chunk.path),
            first=first,
            last=last,
            whole=first == 0 and last == chunk.skip + chunk.rows,
            partition=partition,
            offset=max(start, chunk.start),
            committed_at=chunk.committed_at,
            inside=_lies_in(chunk.min_time, chunk.max_time, times),
        )


def _joined(spans: Spans) -> tuple[tuple[str, int, int], ...]:
    ranges: list[tuple[str, int, int]] = []
    for place, start, end in zip(
        spans.partition.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True
    ):
        name = spans.names[place]
        if ranges and ranges[-1][0] == name and ranges[-1][2] == start:
            ranges[-1] = (name, ranges[-1][1], end)
        else:
            ranges.append((name, start, end))
    return tuple(ranges)


def _reaches(low: int | None, high: int | None, times: tuple[Known, Instant]) -> bool:
    if low is None or high is None:
        return False
    a, b = times
    return low < b and (a is UNKNOWN or high >= a)


def _lies_in(low: int | None, high: int | None, times: tuple[Known, Instant]) -> bool:
    a, b = times
    return low is not None and high is not None and high < b and (a is UNKNOWN or low >= a)


def _is_plain(schema: pa.Schema, column: str) -> bool:
    if column in SYSTEM_COLUMNS:
        return True
    kind = schema.field(column).type
    return bool(
        pt.is_signed_integer(kind)
        or pt.is_float32(kind)
        or pt.is_float64(kind)
        or pt.is_boolean(kind)
        or pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_date32(kind)
        or pt.is_decimal128(kind)
        or (pt.is_timestamp(kind) and kind.unit == "us")
    )


Reads = Mapping[str, tuple[StreamRows, ...]]
"""By stream; several where some of the rows count as if at another time."""
