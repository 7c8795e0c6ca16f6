"""A log of files: a folder per partition with Parquet, JSON lines or CSV files in it.

The files of a partition, in the order of their names, are its rows in order; a file never changes
and new ones sort after all others, so an offset never changes its row. Files and folders whose name
begins with `_` or a dot are nobody's rows; a file `_END` says that a partition gets no more. Files
must appear whole: write them elsewhere and move them in. What cannot be read (yet) makes its
partition unreadable, with the reason, and holds no other partition up.

    log = FileLog("orders", "/data/orders", format="csv", event_column="at")
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from tidegate import errors
from tidegate.eventtime.declaration import EventTimeDeclaration
from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.file_facts import (
    FileFacts,
    Reading,
    TimedBatch,
    facts_of_file,
    timed_batches,
)
from tidegate.logs.file_formats import FORMATS
from tidegate.logs.file_listing import Folder, ListedFile, list_folders, said
from tidegate.logs.log import (
    EVENT_TIME,
    OFFSET,
    REASON,
    SYSTEM,
    Description,
    Times,
    bad_schema,
    check_partition,
    check_range,
    instants,
    open_log,
    read_schema,
)
from tidegate.logs.span_table import SpanTable
from tidegate.planning.facts import Offsets, Partitions, Spans, StreamFacts


@dataclass
class _Held:
    """A partition as far as its files are known: each with its first offset and its facts."""

    files: list[tuple[ListedFile, int, FileFacts]] = field(default_factory=list)
    unreadable: str | None = None


class FileLog:
    """Folders of files as one stream. Not thread safe; every reader opens its own.

    Without an `event_column` the time of a row is the modification time of its file. Rows dated
    more than `max_future` past that are bad rows; None: none are. Without a `schema` the columns
    are those of the first file. `ended`: the files that are there are all there will be.
    """

    def __init__(
        self,
        name: str,
        address: str | Path,
        *,
        format: str = "parquet",
        event_column: str | None = None,
        event_type: str = "iso8601",
        schema: pa.Schema | None = None,
        max_future: timedelta | None = timedelta(minutes=5),
        ended: bool = False,
        registry: EventTimeRegistry | None = None,
    ) -> None:
        self.name = name
        self.address = str(address)
        if format not in FORMATS:
            raise errors.wrong_setting("format", format, FORMATS)
        if "://" in self.address:
            self._system, self._root = fs.FileSystem.from_uri(self.address)
        else:
            self._system, self._root = fs.LocalFileSystem(), str(Path(address).resolve())
        self._format, self._ended = format, ended
        self._event = (event_column, event_type)
        self._max_future = max_future
        self._table = SpanTable()
        self._held: dict[str, _Held] = {}
        self.schema: pa.Schema = self._columns() if schema is None else schema
        self._reading = self._way_of_reading(registry)

    # ---- what a planner asks ----

    @property
    def bounded(self) -> bool:
        """Whether it was said that no more files will come."""
        if self._ended:
            return True
        folders = self._listing()
        return bool(folders) and all(folder.ended for folder in folders.values())

    def snapshot(self, after: Offsets) -> StreamFacts:
        """The partitions, and the spans behind a cut."""
        folders = self._refresh()
        for name in folders:
            self._tell_disorder(name, after.get(name, 0))
        held = {name: self._held[name] for name in folders}
        arrivals = {name: folder.modified_at for name, folder in folders.items()}
        return StreamFacts(
            Partitions.of(
                {name: self._table.rows(name) for name in folders},
                ended=[name for name, folder in folders.items() if folder.ended or self._ended],
                arrived_at={name: at for name, at in arrivals.items() if at is not None},
                unreadable={n: part.unreadable for n, part in held.items() if part.unreadable},
            ),
            self._table.spans(after=after, names=folders),
        )

    def overlapping(self, a: Known, b: Instant, start: Offsets, below: Offsets) -> Spans:
        """The spans between two cuts that can hold a time in [a, b)."""
        self._know(below)
        return self._table.spans(after=start, below=below, times=(a, b))

    def cut_at(self, time: Instant) -> Offsets:
        """Per partition an offset that has every row at or after `time` behind it."""
        self._refresh()
        return self._table.cut_at(time)

    def version(self) -> int:
        """A sum over the listing: it differs when a file has come, and is the same elsewhere."""
        folders = sorted(self._listing().items())
        told = repr([(n, f.ended, [tuple(file) for file in f.files]) for n, f in folders])
        return crc32(told.encode())

    # ---- rows ----

    def read(
        self,
        partition: str,
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
        times: Times | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The good rows with offsets in [start, end), those in [a, b) of event time if asked."""
        schema = read_schema(self.name, self.schema, columns)
        for offset, rows in self._rows(partition, start, end, schema.names, times):
            keep = rows.times.is_valid()
            if times is not None:
                a, b = times
                keep = pc.and_(keep, pc.less(rows.times, b).fill_null(False))
                if a is not UNKNOWN:
                    keep = pc.and_(keep, pc.greater_equal(rows.times, a).fill_null(False))
            given = _chosen(rows, offset, schema).filter(keep)
            if given.num_rows:
                yield given

    def bad_rows(self, partition: str, start: int, end: int) -> pa.Table:
        """The bad rows with offsets in [start, end), each with its reason."""
        schema = bad_schema(self.schema)
        found = []
        if self.bad_count(partition, start, end):
            for offset, rows in self._rows(partition, start, end, self.schema.names, None):
                found.append(_chosen(rows, offset, schema).filter(rows.times.is_null()))
        return pa.Table.from_batches(found, schema=schema)

    def bad_count(self, partition: str, start: int, end: int) -> int:
        """How many rows are bad in the spans that [start, end) touches; costs no reading."""
        count = 0
        for _, first, facts in self._files_in(partition, start, end):
            ends = first + np.cumsum(facts.stretch.rows)
            touched = (ends > start) & (ends - facts.stretch.rows < end)
            count += int(facts.bad[touched].sum())
        return count

    def _rows(
        self, partition: str, start: int, end: int, names: list[str], times: Times | None
    ) -> Iterator[tuple[int, TimedBatch]]:
        """Batches cut to the range, each with the offset of its first row."""
        for file, first, facts in self._files_in(partition, start, end):
            wanted = _wanted(facts, first, start, end, times)
            try:
                for batch in timed_batches(self._reading, file, names, wanted):
                    at = first + batch.first
                    low = min(max(start - at, 0), len(batch.times))
                    length = min(end - at, len(batch.times)) - low
                    if length > 0:
                        yield at + low, _cut(batch, low, length)
            except (pa.ArrowException, OSError) as failure:
                reason = said(failure)
                raise errors.file_unreadable(self.name, partition, file.name, reason) from failure

    def _files_in(
        self, partition: str, start: int, end: int
    ) -> list[tuple[ListedFile, int, FileFacts]]:
        self._know({partition: end})
        check_partition(self.name, partition, list(self._held))
        check_range(self.name, partition, start, end, latest=self._table.rows(partition))
        return [
            (file, first, facts)
            for file, first, facts in self._held[partition].files
            if first < end and first + int(facts.stretch.rows.sum()) > start
        ]

    # ---- to be opened elsewhere ----

    def describe(self) -> Description:
        """What `open_log` needs."""
        future = self._max_future
        return {
            "kind": "files",
            "name": self.name,
            "address": self.address if "://" in self.address else self._root,
            "format": self._format,
            "event_column": self._event[0],
            "event_type": self._event[1],
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "max_future": None if future is None else micros(future),
            "ended": self._ended,
        }

    @staticmethod
    def opened(description: Mapping[str, Any]) -> FileLog:
        """The log that was described."""
        options = {k: v for k, v in description.items() if k not in ("kind", "name", "address")}
        encoded = base64.b64decode(options["schema"])
        options["schema"] = pa.ipc.read_schema(pa.py_buffer(encoded))
        if options["max_future"] is not None:
            options["max_future"] = timedelta(microseconds=options["max_future"])
        return FileLog(description["name"], description["address"], **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (self.describe(),)

    # ---- files ----

    def _columns(self) -> pa.Schema:
        files = [file for folder in self._listing().values() for file in folder.files]
        if not files:
            raise errors.files_without_schema(self.name, self.address)
        try:
            with self._system.open_input_file(files[0].path) as source:
                return FORMATS[self._format].columns(source, self._event[0])
        except (pa.ArrowException, OSError) as failure:
            raise errors.files_unreachable(self.name, files[0].path, said(failure)) from failure

    def _way_of_reading(self, registry: EventTimeRegistry | None) -> Reading:
        for column in self.schema.names:
            if column in SYSTEM:
                raise errors.column_reserved(self.name, column, SYSTEM)
        column, kind = self._event
        parser = None
        if column is not None:
            declared = EventTimeDeclaration(column, kind)
            parser = declared.validate(
                self.schema, registry or EventTimeRegistry(), stream=self.name
            )
            FORMATS[self._format].check(self.name, self.schema, column)
        future = None if self._max_future is None else micros(self._max_future)
        # A registry of the user's own may read the same type in another way.
        whose = id(registry) if registry else 0
        key = f"{self._system.type_name} {self._format} {column} {kind} {future} {whose}"
        return Reading(
            self._system, FORMATS[self._format], self.schema, column, parser, future,
            f"{key} {self.schema}",
        )  # fmt: skip

    def _listing(self) -> dict[str, Folder]:
        return list_folders(self.name, self._system, self._root)

    def _know(self, wanted: Offsets) -> None:
        """List the files again if some offsets are not known here."""
        for name, offset in wanted.items():
            if name not in self._held or self._table.rows(name) < offset:
                self._refresh()
                return

    def _refresh(self) -> dict[str, Folder]:
        folders = self._listing()
        for name, folder in folders.items():
            held = self._held.setdefault(name, _Held())
            self._table.add(name)
            self._refuse_changes(name, [file for file, _, _ in held.files], folder.files)
            held.unreadable = None
            for file in folder.files[len(held.files) :]:
                try:
                    facts = facts_of_file(self._reading, file)
                except (pa.ArrowException, OSError) as failure:
                    held.unreadable = f'file "{file.name}" cannot be read: {said(failure)}'
                    break
                held.files.append((file, self._table.rows(name), facts))
                self._table.append(name, facts.stretch)
        return folders

    def _refuse_changes(
        self, partition: str, known: list[ListedFile], listed: list[ListedFile]
    ) -> None:
        names = {file.name for file in listed}
        for place, file in enumerate(known):
            if file.name not in names:
                raise errors.file_changed(self.name, partition, file.name, "is gone")
            if listed[place].name != file.name:
                raise errors.file_out_of_order(
                    self.name, partition, listed[place].name, known[-1].name
                )
            if listed[place] != file:
                how = f"had {file.size} bytes, now has {listed[place].size} or a later date"
                raise errors.file_changed(self.name, partition, file.name, how)

    def _tell_disorder(self, partition: str, after: int) -> None:
        held = self._held[partition]
        for place, (file, first, facts) in enumerate(held.files):
            if first + int(facts.stretch.rows.sum()) > after and not facts.disorder_told:
                told = facts_of_file(self._reading, file, disorder=True)
                held.files[place] = (file, first, told)
                self._table.tell_disorder(partition, first, told.stretch.inner)


def _wanted(facts: FileFacts, first: int, start: int, end: int, times: Times | None) -> Any:
    """Which spans of a file have to be read for these offsets and times."""
    spans = facts.stretch
    ends = first + np.cumsum(spans.rows)
    chosen = (ends > start) & (ends - spans.rows < end)
    if times is not None:
        a, b = times
        chosen &= spans.timed & (spans.min_time < b)
        if a is not UNKNOWN:
            chosen &= spans.max_time >= a
    return lambda span: bool(chosen[span])


def _cut(rows: TimedBatch, low: int, length: int) -> TimedBatch:
    return TimedBatch(
        rows.first + low,
        rows.batch.slice(low, length),
        rows.times.slice(low, length),
        rows.reasons.slice(low, length),
    )


def _chosen(rows: TimedBatch, offset: int, schema: pa.Schema) -> pa.RecordBatch:
    count = len(rows.times)
    system = {
        EVENT_TIME: lambda: instants(rows.times),
        OFFSET: lambda: pa.array(np.arange(offset, offset + count, dtype=np.int64)),
        REASON: lambda: rows.reasons,
    }
    arrays = [system[n]() if n in system else rows.batch.column(n) for n in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
