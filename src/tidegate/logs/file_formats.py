"""File formats: how Parquet, JSON lines and CSV files give their columns and rows.

A format says which columns a file has, and reads some of them in batches with the row number at
which each batch begins. Columns a file lacks are null, columns nobody declared are left out; a file
that does not fit the schema otherwise is an error of pyarrow, for the caller to report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from tidegate import errors
from tidegate.eventtime.parsers.parser import EventTimeParser, Notation
from tidegate.eventtime.parsers.units import UNITS

Batches = Iterator[tuple[int, pa.RecordBatch]]
Wanted = Callable[[int], bool]
"""Whether the span with this number in its file is to be read."""

_BLOCK: Final = 8 << 20  # A line must fit into a block.
_PARQUET_UNITS: Final = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


class FileFormat(Protocol):
    """One way to write rows into a file."""

    def columns(self, source: pa.NativeFile, event_column: str | None) -> pa.Schema:
        """The columns of a file."""

    def check(self, log: str, schema: pa.Schema, event_column: str | None) -> None:
        """Refuse a declared schema in which a bad event time would be fatal."""

    def spans(self, source: pa.NativeFile) -> list[tuple[int, int]] | None:
        """(rows, bytes) of the spans of a file, where that is known without reading it."""

    def bounds(
        self, source: pa.NativeFile, column: str, parser: EventTimeParser
    ) -> list[tuple[int, int]] | None:
        """(min, max) of the times of every span, where that is known without reading it."""

    def read(
        self, source: pa.NativeFile, schema: pa.Schema, wanted: Wanted = lambda span: True
    ) -> Batches:
        """The rows of the wanted spans, in batches."""


class ParquetFormat:
    """A span is a row group; its times are often in the footer."""

    def columns(self, source: pa.NativeFile, event_column: str | None) -> pa.Schema:
        """The columns of a file, without pandas' remarks."""
        return pq.read_schema(source).remove_metadata()

    def check(self, log: str, schema: pa.Schema, event_column: str | None) -> None:
        """Types are the file's own: nothing to refuse."""

    def spans(self, source: pa.NativeFile) -> list[tuple[int, int]] | None:
        """One per row group."""
        footer = pq.read_metadata(source)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        return [(group.num_rows, group.total_byte_size) for group in groups if group.num_rows]

    def bounds(
        self, source: pa.NativeFile, column: str, parser: EventTimeParser
    ) -> list[tuple[int, int]] | None:
        """From the footer, when all groups have statistics of a timestamp without nulls."""
        if not isinstance(parser, Notation):  # another parser may read a timestamp as it likes
            return None
        footer = pq.read_metadata(source)
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        if column not in names:
            return None
        found = []
        for i in range(footer.num_row_groups):
            if footer.row_group(i).num_rows == 0:
                continue
            chunk = footer.row_group(i).column(names.index(column))
            told = chunk.statistics
            if told is None or not told.has_min_max or told.null_count != 0:
                return None
            kind: dict[str, Any] = json.loads(told.logical_type.to_json())
            unit = UNITS.get(_PARQUET_UNITS.get(kind.get("timeUnit", ""), ""))
            if unit is None or told.physical_type != "INT64":
                return None
            low, high = unit.of_int(told.min_raw), unit.of_int(told.max_raw)
            if not isinstance(low, int) or not isinstance(high, int):
                return None
            found.append((low, high))
        return found

    def read(
        self, source: pa.NativeFile, schema: pa.Schema, wanted: Wanted = lambda span: True
    ) -> Batches:
        """Row group by row group."""
        file = pq.ParquetFile(source)
        there = [name for name in schema.names if name in file.schema_arrow.names]
        first = span = 0
        for i in range(file.num_row_groups):
            rows = file.metadata.row_group(i).num_rows
            if not rows:
                continue
            if wanted(span):
                # Without any column a batch would not know how many rows it has.
                part = file.read_row_group(i, columns=there)
                yield first, _fitted(part, schema, rows)
            first += rows
            span += 1


class _TextFormat:
    """A span is a file: a text cannot be entered in the middle."""

    def spans(self, source: pa.NativeFile) -> list[tuple[int, int]] | None:
        """Nobody knows before it is read."""
        return None

    def bounds(
        self, source: pa.NativeFile, column: str, parser: EventTimeParser
    ) -> list[tuple[int, int]] | None:
        """Nobody knows before it is read."""
        return None

    def read(
        self, source: pa.NativeFile, schema: pa.Schema, wanted: Wanted = lambda span: True
    ) -> Batches:
        """The file, block by block."""
        if not wanted(0):
            return
        first = 0
        for batch in self._batches(source, schema):
            table = pa.Table.from_batches([batch])
            yield first, _fitted(table, schema, batch.num_rows)
            first += batch.num_rows

    def _batches(self, source: pa.NativeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        raise AssertionError("a subclass says how it is read")


class JsonLines(_TextFormat):
    """An object per line; the event time is a text or a number."""

    def columns(self, source: pa.NativeFile, event_column: str | None) -> pa.Schema:
        """Inferred from a file; an event time that looks like one stays a text."""
        found = pa.json.read_json(source, read_options=_JSON).schema
        return _as_text(found, event_column, pa.types.is_temporal)

    def check(self, log: str, schema: pa.Schema, event_column: str | None) -> None:
        """A text that cannot be read must be a bad row, not a broken file."""
        kind = _type_of(schema, event_column)
        if kind is not None and pa.types.is_temporal(kind):
            raise errors.file_event_column_typed(
                log, str(event_column), str(kind), "string, a number"
            )

    def _batches(self, source: pa.NativeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        fields = [schema.field(name) for name in schema.names]
        yield from pa.json.open_json(
            source,
            read_options=_JSON,
            parse_options=pa.json.ParseOptions(
                # Without a single field the reader would see no rows: then all are looked at.
                explicit_schema=pa.schema(fields) if fields else None,
                unexpected_field_behavior="ignore" if fields else "infer",
            ),
        )


class Csv(_TextFormat):
    """A header, then a row per line; the event time is read as a text."""

    def columns(self, source: pa.NativeFile, event_column: str | None) -> pa.Schema:
        """Inferred from a file; the event time stays a text."""
        found = pa.csv.read_csv(source, parse_options=_CSV).schema
        return _as_text(found, event_column, lambda kind: True)

    def check(self, log: str, schema: pa.Schema, event_column: str | None) -> None:
        """Whatever cannot be read must be a bad row, not a broken file."""
        kind = _type_of(schema, event_column)
        if kind is not None and not pa.types.is_string(kind):
            raise errors.file_event_column_typed(log, str(event_column), str(kind), "string")

    def _batches(self, source: pa.NativeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        # Columns are chosen afterwards: without any the reader would count no rows.
        yield from pa.csv.open_csv(
            source,
            read_options=pa.csv.ReadOptions(block_size=_BLOCK),
            parse_options=_CSV,
            convert_options=pa.csv.ConvertOptions(
                column_types={field.name: field.type for field in schema},
                include_columns=schema.names or None,
                include_missing_columns=bool(schema.names),
            ),
        )


_JSON: Final = pa.json.ReadOptions(block_size=_BLOCK)
_CSV: Final = pa.csv.ParseOptions(newlines_in_values=True)

FORMATS: Final[dict[str, FileFormat]] = {
    "parquet": ParquetFormat(),
    "jsonl": JsonLines(),
    "csv": Csv(),
}


def _type_of(schema: pa.Schema, column: str | None) -> pa.DataType | None:
    return schema.field(column).type if column in schema.names else None


def _as_text(
    schema: pa.Schema, column: str | None, when: Callable[[pa.DataType], bool]
) -> pa.Schema:
    kind = _type_of(schema, column)
    if kind is None or not when(kind):
        return schema
    return schema.set(schema.get_field_index(column), pa.field(column, pa.string()))


def _fitted(table: pa.Table, schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """The columns of the schema, in its order and types; null where the file has none."""
    arrays: Sequence[pa.Array] = [
        table.column(field.name).cast(field.type).combine_chunks()
        if field.name in table.column_names
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    flat = [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays]
    return pa.RecordBatch.from_arrays(flat, schema=schema)
