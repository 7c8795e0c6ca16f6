"""Reading: the rows of a segment between two offsets, as Arrow record batches.

An offset never changes its row. A read names offsets and finds the files that hold them now, so
compaction changes nothing: a bound that falls inside a chunk is a filter, and a file that was
replaced while reading is found again under its new name. What cannot be read is an error that names
the stream, the segment and the offsets; nothing is left out silently.

With `times` only row groups whose statistics reach into the interval are touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.lineage import Lineage
from tidegate.planning.facts import Offsets
from tidegate.store.catalog import chunk_rows, streams
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.catalog.spans import between
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord
from tidegate.store.catalog.time_index import first_readable

if TYPE_CHECKING:
    from tidegate.store.store import Store

Times = tuple[Known, Instant]
"""An interval [a, b) of event time; UNKNOWN: from the beginning."""

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
SYSTEM_COLUMNS: Final = {
    "_event_time": _TIMESTAMP,
    "_partition": pa.string(),
    "_offset": pa.int64(),
    "_timestamp": _TIMESTAMP,
}
"""What every row has beside its own columns: its time, its place, and when it was committed."""

_BATCH: Final = 65_536
_PAGE: Final = 1_000
"""Chunks that are looked up at once."""

_Ints = npt.NDArray[np.int64]


def read(
    store: Store,
    stream: str,
    segment: str,
    start: int,
    end: int,
    columns: Sequence[str] | None = None,
    times: Times | None = None,
    system_columns: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows [start, end) of a segment, as far as there are any; with `times`, those inside.

    What is truncated, or a column that is not there, is an error at once; a chunk that cannot be
    read is one when its turn comes.
    """
    return _Reading(store, stream, segment, columns, times, system_columns).batches(start, end)


def read_between(
    store: Store,
    stream: str,
    start: Offsets | None = None,
    end: Offsets | None = None,
    columns: Sequence[str] | None = None,
    times: Times | None = None,
    system_columns: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows between two cuts; by default from the first readable one to the last row.

    Segments come after those that they follow, so rows of one key come in their order.
    """

    def ranges(on: Connection) -> list[tuple[str, int, int]]:
        records = streams.segment_records(on, streams.get(on, stream).id)
        lineage = Lineage(record.segment for record in records)
        begin = first_readable(records, lineage) if start is None else start
        here = lineage.open_in(lineage.epoch)
        last = {record.name: record.end for record in records}
        stop = {segment.name: last[segment.name] for segment in here} if end is None else end
        found = between(records, lineage, begin, stop)
        ordered = sorted(records, key=lambda record: record.segment.id)
        return [
            (record.name, *found[record.segment.id.number])
            for record in ordered
            if record.segment.id.number in found
        ]

    readings = [
        read(store, stream, segment, first, last, columns, times, system_columns)
        for segment, first, last in store.database.read(ranges)
    ]
    for reading in readings:
        yield from reading


class _Reading:
    """What is read of one segment, and how."""

    def __init__(
        self,
        store: Store,
        stream: str,
        segment: str,
        columns: Sequence[str] | None,
        times: Times | None,
        system_columns: Sequence[str],
    ) -> None:
        self.store = store
        self.segment = segment
        self.times = times
        self.stream: StreamRecord = store.describe(stream)
        declared = self.stream.config.schema
        self.columns = tuple(declared.names if columns is None else columns)
        self.system = tuple(system_columns)
        for name, known in [
            *((name, declared.names) for name in self.columns),
            *((name, SYSTEM_COLUMNS) for name in self.system),
        ]:
            if name not in known:
                raise errors.unknown_column(stream, name, known)
        self.schema = pa.schema(
            [declared.field(name) for name in self.columns]
            + [pa.field(name, SYSTEM_COLUMNS[name]) for name in self.system]
        )
        self.by_commit = self.stream.config.event_column is None
        """Whether the time of a row is the instant of its commit."""
        timed = times is not None or "_event_time" in self.system
        self.needs_times = timed and not self.by_commit
        self.needs_runs = "_timestamp" in self.system or (timed and self.by_commit)

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Look the first chunks up at once, read when asked to."""
        return self._batches(start, end, self._page(start, end))

    def _batches(self, at: int, end: int, page: _Page) -> Iterator[pa.RecordBatch]:
        while page.chunks:
            for chunk in page.chunks:
                if chunk.start > at:
                    reason = "no chunk holds these offsets"
                    raise self._unreadable(chunk, reason, start=at, end=chunk.start)
                try:
                    for offset, batch in self._of_chunk(chunk, at, end, page):
                        at = offset
                        yield batch
                    at = chunk.end
                except FileNotFoundError as failure:
                    again = self._page(at, end)
                    if not again.chunks or again.chunks[0].path == chunk.path:
                        raise self._unreadable(chunk, "the file is missing") from failure
                    # It was compacted, and the old file has outlived its grace.
                    page = again
                    break
                except (OSError, pa.ArrowException) as failure:
                    raise self._unreadable(chunk, str(failure).rstrip(".")) from failure
            else:
                if at >= end:
                    return
                page = self._page(at, end)

    def _page(self, start: int, end: int) -> _Page:
        """The next chunks, with the runs of their commits where these matter."""

        def work(on: Connection) -> _Page:
            records = streams.segment_records(on, self.stream.id)
            lineage = Lineage(record.segment for record in records)
            number = lineage.segment(self.segment).id.number
            record = next(r for r in records if r.name == self.segment)
            if start < record.start and start < end:
                raise self._truncated(record, start, records, lineage)
            found = chunk_rows.between(on, self.stream.id, number, start, end, most=_PAGE)
            if not found or not self.needs_runs:
                return _Page(found, [])
            last = found[-1].end
            return _Page(found, chunk_rows.runs(on, self.stream.id, number, start, last))

        return self.store.database.read(work)

    # ---- one chunk ----

    def _of_chunk(
        self, chunk: ChunkRow, at: int, end: int, page: _Page
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches, each with the offset behind its last row."""
        if not self._reaches(chunk.min_time, chunk.max_time):
            return
        begin, stop = max(chunk.start, at), min(chunk.end, end)
        with self.store.files.open(chunk.path) as handle:
            file = pq.ParquetFile(handle, page_checksum_verification=True)
            held = file.metadata.num_rows
            if held != chunk.skip + chunk.rows:
                reason = f"it has {held} rows, {chunk.skip + chunk.rows} were written"
                raise self._unreadable(chunk, reason)
            physical = [name for name in self.columns if name in file.schema_arrow.names]
            if self.needs_times:
                physical.append("_event_time")
            # Something must be read to be counted.
            physical = physical or file.schema_arrow.names[:1]
            for first, groups in self._groups(file, chunk, begin, stop, page):
                offset = first
                for batch in file.iter_batches(_BATCH, row_groups=groups, columns=physical):
                    low = max(begin - offset, 0)
                    high = min(stop - offset, batch.num_rows)
                    made = None
                    if low < high:
                        # Batches do not begin where row groups do: one can lie past the end.
                        made = self._finished(batch.slice(low, high - low), offset + low, page)
                    offset += batch.num_rows
                    if made is not None:
                        yield min(offset, stop), made

    def _groups(
        self, file: pq.ParquetFile, chunk: ChunkRow, begin: int, stop: int, page: _Page
    ) -> list[tuple[int, list[int]]]:
        """Runs of row groups that have to be read, each with the offset of its first row."""
        metadata, found = file.metadata, list[tuple[int, list[int]]]()
        column = file.schema_arrow.get_field_index("_event_time") if self.needs_times else -1
        first = chunk.start - chunk.skip
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            last = first + group.num_rows
            if first < stop and last > begin and self._may_hold(group, column, first, last, page):
                if found and found[-1][1][-1] == number - 1:
                    found[-1][1].append(number)
                else:
                    found.append((first, [number]))
            first = last
        return found

    def _may_hold(self, group: Any, column: int, first: int, last: int, page: _Page) -> bool:
        if self.times is None:
            return True
        if self.by_commit:
            return self._reaches(*page.committed_between(first, last))
        place = _leaf(group, "_event_time") if column >= 0 else None
        statistics = None if place is None else group.column(place).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        return self._reaches(statistics.min_raw, statistics.max_raw)

    def _reaches(self, lowest: Instant | None, highest: Instant | None) -> bool:
        if self.times is None or lowest is None or highest is None:
            return True
        a, b = self.times
        return lowest < b and (a is UNKNOWN or highest >= a)

    def _finished(self, batch: pa.RecordBatch, start: int, page: _Page) -> pa.RecordBatch | None:
        """The rows that were asked for, with the columns that were asked for; none: no batch."""
        rows = batch.num_rows
        offsets: _Ints = np.arange(start, start + rows, dtype=np.int64)
        committed = page.committed(offsets) if self.needs_runs else offsets
        times = committed
        if self.needs_times:
            times = batch.column("_event_time").cast(pa.int64()).to_numpy()
        if self.times is not None:
            a, b = self.times
            kept = times < b if a is UNKNOWN else (times >= a) & (times < b)
            if not kept.all():
                batch = batch.filter(pa.array(kept))
                offsets, committed, times = offsets[kept], committed[kept], times[kept]
                rows = len(offsets)
        if not rows:
            return None
        system = {
            "_event_time": times,
            "_offset": offsets,
            "_timestamp": committed,
        }
        arrays = [
            _column(batch, field, rows) for field in self.schema if field.name in self.columns
        ]
        for name in self.system:
            if name == "_partition":
                arrays.append(pa.repeat(self.segment, rows))
            else:
                arrays.append(pa.array(system[name]).cast(SYSTEM_COLUMNS[name]))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # ---- errors ----

    def _unreadable(
        self, chunk: ChunkRow, reason: str, *, start: int | None = None, end: int | None = None
    ) -> errors.DataError:
        first = chunk.start if start is None else start
        last = chunk.end if end is None else end
        return errors.chunk_unreadable(
            self.stream.name, self.segment, first, last, chunk.path, reason
        )

    def _truncated(
        self, record: SegmentRecord, start: int, records: list[SegmentRecord], lineage: Lineage
    ) -> errors.DataError:
        cut = first_readable(records, lineage)
        return errors.rows_truncated(self.stream.name, record.name, start, record.start, cut=cut)


@dataclass(frozen=True)
class _Page:
    """Some chunks of a segment, and (first offset, commit instant) of the runs in them."""

    chunks: list[ChunkRow]
    runs: list[tuple[int, Instant]]

    @cached_property
    def _columns(self) -> tuple[_Ints, _Ints]:
        starts, instants = np.array(self.runs, dtype=np.int64).reshape(-1, 2).T
        return starts, instants

    def committed(self, offsets: _Ints) -> _Ints:
        """The commit instant of every offset."""
        starts, instants = self._columns
        found: _Ints = instants[np.searchsorted(starts, offsets, side="right") - 1]
        return found

    def committed_between(self, first: int, last: int) -> tuple[Instant, Instant]:
        """The first and the last commit instant of a range of rows: commits come in order."""
        low, high = self.committed(np.array([first, last - 1], dtype=np.int64))
        return int(low), int(high)


def _leaf(group: Any, name: str) -> int | None:
    """The place of a flat column among the leaves of a row group; structs have several."""
    for place in range(group.num_columns - 1, -1, -1):
        if group.column(place).path_in_schema == name:
            return place
    return None


def _column(batch: pa.RecordBatch, field: pa.Field, rows: int) -> pa.Array:
    """A column of a batch; null where it was added to the stream later."""
    place = batch.schema.get_field_index(field.name)
    if place < 0:
        return pa.nulls(rows, field.type)
    found = batch.column(place)
    return found if found.type == field.type else found.cast(field.type)
