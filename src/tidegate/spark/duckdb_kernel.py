"""The duckdb kernel: a query inside a task, before any row enters the JVM.

A task has an interval of complete event time, the rows of every stream for it, and SQL in DuckDB's
words. Arrow comes out. Files are opened by DuckDB itself where it can; when that fails for whatever
reason (a file was compacted meanwhile, a column was added later) the same rows are read through the
log, and only if that fails too is it an error.

One connection per Python worker, one thread per task: the cores are Spark's to share out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import duckdb
import pyarrow as pa

from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.slices import Interval
from tidegate.spark.rows import FileRows, StreamRows
from tidegate.spark.shape import EVENT_TIME, Shape

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

    def run(self) -> Iterator[pa.RecordBatch]:
        """The result, with the types of `schema`."""
        try:
            result = self._result(by_files=True)
        except duckdb.Error:
            if not any(rows.files for reads in self.reads.values() for rows in reads):
                raise
            result = self._result(by_files=False)
        return iter(_cast(result, self.schema).to_batches(BATCH))

    def _result(self, *, by_files: bool) -> pa.Table:
        cursor = _connection(os.getpid()).cursor()
        try:
            for stream, reads in self.reads.items():
                parts = []
                for number, rows in enumerate(reads):
                    if by_files and rows.files and not rows.ordered:
                        source = _from_files(rows)
                    else:
                        # What was put in order is kept as a table: scans keep the order of one.
                        in_order = by_files and bool(rows.files)
                        table = _sorted(cursor, rows) if in_order else rows.table()
                        cursor.register(f"_{stream}_{number}", table)
                        source = f'SELECT * FROM "_{stream}_{number}"'
                    parts.append(self.shape.in_duckdb(source, self.interval, self.origin, rows.at))
                union = " UNION ALL ".join(f"({part})" for part in parts)
                cursor.execute(f'CREATE OR REPLACE TEMP VIEW "{stream}" AS {union}')
            return cursor.sql(self.text).to_arrow_table()
        finally:
            cursor.close()


@lru_cache(maxsize=1)
def _connection(process: int) -> duckdb.DuckDBPyConnection:
    """The connection of this process; a forked one opens its own."""
    made = duckdb.connect(config={"threads": 1})
    made.execute("SET TimeZone = 'UTC'")
    made.execute("SET preserve_insertion_order = true")
    return made


def _sorted(cursor: duckdb.DuckDBPyConnection, rows: StreamRows) -> pa.Table:
    columns = ", ".join(f'"{name}"' for name in rows.columns)
    wanted = replace(rows, columns=tuple(dict.fromkeys((*rows.columns, EVENT_TIME, "_offset"))))
    return cursor.sql(
        f"SELECT {columns} FROM ({_from_files(wanted)}) ORDER BY {EVENT_TIME}, _offset"
    ).to_arrow_table()


def _from_files(rows: StreamRows) -> str:
    assert rows.files is not None
    columns = ", ".join(f'"{name}"' for name in rows.columns)
    a, b = rows.times
    inside = f"_event_time < make_timestamptz({b})"
    if a is not UNKNOWN:
        inside += f" AND _event_time >= make_timestamptz({a})"
    if rows.system:
        # A file by itself: what a row has by its place in it is then a sum, not a look-up.
        return " UNION ALL ".join(_partly(file, rows.columns, inside) for file in rows.files)
    parts = [_partly(file, rows.columns, inside) for file in rows.files if not file.whole]
    for all_inside, where in ((True, ""), (False, f" WHERE {inside}")):
        whole = [file for file in rows.files if file.whole and file.inside is all_inside]
        if whole:
            paths = ", ".join(f"'{_quoted(file.path)}'" for file in whole)
            parts.append(f"SELECT {columns} FROM read_parquet([{paths}]){where}")
    return " UNION ALL ".join(parts)


def _partly(file: FileRows, columns: Sequence[str], inside: str) -> str:
    system = {
        "_offset": f"file_row_number + {file.offset - file.first} AS _offset",
        "_partition": f"'{_quoted(file.partition)}' AS _partition",
        "_timestamp": f"make_timestamptz({file.committed_at}) AS _timestamp",
    }
    chosen = ", ".join(system.get(name, f'"{name}"') for name in columns)
    return (
        f"SELECT {chosen} FROM read_parquet('{_quoted(file.path)}', file_row_number = true)"
        f" WHERE {inside} AND file_row_number >= {file.first} AND file_row_number < {file.last}"
    )


def _quoted(path: str) -> str:
    return path.replace("'", "''")


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    arrays = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
