"""The duckdb kernel: a query inside a task, before any row enters the JVM.

A task has an interval of complete event time, the rows of every stream for it, and SQL in DuckDB's
words. Arrow comes out. Files are opened by DuckDB itself where it can; when that fails for whatever
reason (a file was compacted meanwhile, a column was added later) the same rows are read through the
log, and only if that fails too is it an error. Nor is it one when panes fail and rows do not: a
pane may hold rows that the query has no use for.

One connection per Python worker, one thread per task: the cores are Spark's to share out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import duckdb
import pyarrow as pa

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import OFFSET
from tidegate.planning.slices import Interval
from tidegate.spark.rows import PARTITION, TIMESTAMP, FileRows, StreamRows
from tidegate.spark.shape import BOUNDS, EVENT_TIME, Shape, Windows, panes_of

BATCH = 65_536


@dataclass(frozen=True)
class DuckTask:
    """What one task computes."""

    interval: Interval
    origin: Known
    reads: Mapping[str, tuple[StreamRows, ...]]
    shape: Shape
    text: str
    schema: pa.Schema
    row_by_row: str | None = None
    """The same without panes, where `text` has some."""

    def run(self) -> Iterator[pa.RecordBatch]:
        """The result, with the types of `schema`."""
        plain = self.text if self.row_by_row is None else self.row_by_row
        ways = [(text, True) for text in dict.fromkeys((self.text, plain))]
        if any(rows.files for reads in self.reads.values() for rows in reads):
            ways.append((plain, False))
        for text, by_files in ways[:-1]:
            with suppress(duckdb.Error):
                return self._batches(text, by_files=by_files)
        text, by_files = ways[-1]
        return self._batches(text, by_files=by_files)

    def _batches(self, text: str, *, by_files: bool) -> Iterator[pa.RecordBatch]:
        found = self._result(text, by_files=by_files)
        return iter(_cast(found, self.schema).to_batches(BATCH))

    def _result(self, text: str, *, by_files: bool) -> pa.Table:
        cursor = _connection(os.getpid()).cursor()
        try:
            for stream, reads in self.reads.items():
                sources = [
                    (_source(cursor, f"_{stream}_{number}", rows, by_files=by_files), rows.at)
                    for number, rows in enumerate(reads)
                ]
                for name, sql in self.views(text, stream, sources).items():
                    cursor.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {sql}')
            return cursor.sql(text).to_arrow_table()
        finally:
            cursor.close()

    def views(
        self, text: str, stream: str, sources: Sequence[tuple[str, Instant | None]]
    ) -> dict[str, str]:
        """What a text reads of a stream: rows in their windows, rows in their panes, or both.

        `sources`: its rows as SQL, each with the time as if at which they count. To make a view of
        files opens them all, so only what is read is made.
        """
        panes, found = panes_of(stream), {}
        has_panes = self.row_by_row is not None and text == self.text
        by_pane = has_panes and f'FROM "{panes}"' in text
        if isinstance(self.shape, Windows) and by_pane:
            low, high = self.shape.starts(self.interval, self.origin)
            found[BOUNDS] = f"SELECT {low}::BIGINT AS low, {high}::BIGINT AS high"
            found[panes] = _union(
                self.shape.panes_in_duckdb(sql, self.interval, self.origin, at)
                for sql, at in sources
            )
        if not by_pane or f'FROM "{stream}")' in text:
            found[stream] = _union(
                self.shape.in_duckdb(sql, self.interval, self.origin, at) for sql, at in sources
            )
        return found


def _union(parts: Iterable[str]) -> str:
    return " UNION ALL ".join(f"({part})" for part in parts)


@lru_cache(maxsize=1)
def _connection(process: int) -> duckdb.DuckDBPyConnection:
    """The connection of this process; a forked one opens its own."""
    # Its threads that fetch files ahead of a scan would take the cores of other tasks.
    made = duckdb.connect(config={"threads": 1, "async_threads": 0})
    made.execute("SET TimeZone = 'UTC'")
    made.execute("SET preserve_insertion_order = true")
    return made


def _source(
    cursor: duckdb.DuckDBPyConnection, name: str, rows: StreamRows, *, by_files: bool
) -> str:
    """The rows as SQL; what is not read from files by DuckDB itself is known to it by this name."""
    if by_files and rows.files and not rows.ordered:
        return _from_files(rows)
    # What was put in order is kept as a table: scans keep the order of one.
    in_order = by_files and bool(rows.files)
    cursor.register(name, _sorted(cursor, rows) if in_order else rows.table())
    return f'SELECT * FROM "{name}"'


def _sorted(cursor: duckdb.DuckDBPyConnection, rows: StreamRows) -> pa.Table:
    columns = ", ".join(f'"{name}"' for name in rows.columns)
    wanted = replace(rows, columns=tuple(dict.fromkeys((*rows.columns, EVENT_TIME, OFFSET))))
    return cursor.sql(
        f"SELECT {columns} FROM ({_from_files(wanted)}) ORDER BY {EVENT_TIME}, {OFFSET}"
    ).to_arrow_table()


def _from_files(rows: StreamRows) -> str:
    assert rows.files is not None
    a, b = rows.times
    inside = f"_event_time < make_timestamptz({b})"
    if a is not UNKNOWN:
        inside += f" AND _event_time >= make_timestamptz({a})"
    parts = []
    for file in rows.files:
        if not file.whole:
            some = f"file_row_number >= {file.first} AND file_row_number < {file.last}"
            parts.append(_read([file], rows, f" WHERE {inside} AND {some}"))
    for all_inside, where in ((True, ""), (False, f" WHERE {inside}")):
        whole = [file for file in rows.files if file.whole and file.inside is all_inside]
        if whole:
            parts.append(_read(whole, rows, where))
    return " UNION ALL ".join(parts)


def _read(files: Sequence[FileRows], rows: StreamRows, where: str) -> str:
    """Some files in one scan: a scan of its own for each would cost more than its columns.

    What a row has by its file stands in a list, at the place of that file.
    """
    known = _by_file(files, rows) if rows.system else {}
    chosen = ", ".join(
        f'{known[name]} AS "{name}"' if name in known else f'"{name}"' for name in rows.columns
    )
    paths = ", ".join(_text(file.path) for file in files)
    # Only where it is needed: a user may have a column of that name.
    number = ", file_row_number = true" if known or not files[0].whole else ""
    return f"SELECT {chosen} FROM read_parquet([{paths}]{number}){where}"


def _by_file(files: Sequence[FileRows], rows: StreamRows) -> dict[str, str]:
    place = "[file_index::BIGINT + 1]"
    # As strings they would be compared letter by letter; the same order, as numbers.
    names = ", ".join(_text(name) for name in sorted({f.partition for f in rows.files or ()}))
    first = ", ".join(f"{file.offset - file.first}" for file in files)
    partition = ", ".join(_text(file.partition) for file in files)
    committed = ", ".join(f"make_timestamptz({file.committed_at})" for file in files)
    return {
        OFFSET: f"file_row_number + ([{first}]::BIGINT[]){place}",
        PARTITION: f"([{partition}]::ENUM({names})[]){place}",
        TIMESTAMP: f"([{committed}]){place}",
    }


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    arrays = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
