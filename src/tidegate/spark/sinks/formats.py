"""File formats of a files sink: Parquet, CSV and JSON lines, written in a stream and read back.

What is written is read back with the same types and values, in the same order. Parquet holds every
type; CSV has no lists, structs, maps and bytes; JSON writes instants, dates and decimals as texts,
bytes in base64, and a number that JSON does not have as "NaN", "Infinity" or "-Infinity".

>>> import io
>>> rows = pa.table({"n": [1, None], "x": [float("nan"), 0.5]})
>>> out = io.BytesIO()
>>> with FORMATS["json"].writer(out, rows.schema) as file:
...     file.write(rows)
>>> print(out.getvalue().decode(), end="")
{"n":1,"x":"NaN"}
{"n":null,"x":0.5}
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from tidegate import errors


class RowWriter(Protocol):
    """A file that is being written."""

    def write(self, rows: pa.Table) -> None:
        """Append rows."""

    def __enter__(self) -> RowWriter: ...

    def __exit__(self, *_: object) -> None: ...


class Format(Protocol):
    """One way to write results into a file."""

    suffix: str

    def check(self, schema: pa.Schema) -> None:
        """Refuse a column that it cannot hold."""

    def writer(self, out: Any, schema: pa.Schema) -> RowWriter:
        """Begin a file."""

    def read(self, source: Any, schema: pa.Schema) -> pa.Table:
        """The rows of a file; columns it was written without are missing."""


class ParquetFiles:
    """Every type, compressed, with statistics per row group."""

    suffix = "parquet"

    def check(self, schema: pa.Schema) -> None:
        """Nothing to refuse but months as a length, which nobody stores."""
        _refuse("parquet", schema, kinds.is_interval)

    def writer(self, out: Any, schema: pa.Schema) -> RowWriter:
        """Begin a file; each call of `write` is a row group."""
        made: RowWriter = pq.ParquetWriter(out, schema, compression="zstd")
        return made

    def read(self, source: Any, schema: pa.Schema) -> pa.Table:
        """The rows in their order."""
        return pq.read_table(source)


class CsvFiles:
    """A header and lines. Nothing between commas is null; an empty text is two quotes."""

    suffix = "csv"

    def check(self, schema: pa.Schema) -> None:
        """No nested columns, no bytes."""
        _refuse("csv", schema, lambda kind: kinds.is_nested(kind) or _is_bytes(kind))
        _refuse("csv", schema, kinds.is_interval)

    def writer(self, out: Any, schema: pa.Schema) -> RowWriter:
        """Begin a file with its header."""
        made: RowWriter = pc.CSVWriter(out, schema)
        return made

    def read(self, source: Any, schema: pa.Schema) -> pa.Table:
        """The rows in their order, with the types of `schema`."""
        return pc.read_csv(
            source,
            # Values with line breaks in them are found only when blocks are read one by one.
            read_options=pc.ReadOptions(use_threads=False, block_size=16 << 20),
            parse_options=pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pc.ConvertOptions(
                column_types=schema,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


class JsonFiles:
    """An object per line, with every column in it."""

    suffix = "jsonl"

    def check(self, schema: pa.Schema) -> None:
        """Nothing to refuse but months as a length, which nobody stores."""
        _refuse("json", schema, kinds.is_interval)

    def writer(self, out: Any, schema: pa.Schema) -> RowWriter:
        """Begin a file."""
        return _JsonWriter(out)

    def read(self, source: Any, schema: pa.Schema) -> pa.Table:
        """The rows in their order, with the types of `schema`."""
        rows = [json.loads(line) for line in source.read().splitlines()]
        there = [field for field in schema if not rows or field.name in rows[0]]
        arrays = [_array([row[field.name] for row in rows], field.type) for field in there]
        return pa.table(arrays, schema=pa.schema(there))


FORMATS: Final[dict[str, Format]] = {
    "parquet": ParquetFiles(),
    "csv": CsvFiles(),
    "json": JsonFiles(),
}


def format_of(name: str) -> Format:
    """A format by its name."""
    if name not in FORMATS:
        raise errors.unknown_file_format(name, FORMATS)
    return FORMATS[name]


class _JsonWriter:
    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, rows: pa.Table) -> None:
        columns = [_plain_column(column) for column in rows.columns]
        names, encode = rows.column_names, json.JSONEncoder(separators=(",", ":")).encode
        lines = [encode(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
        self._out.write("".join(f"{line}\n" for line in lines).encode())

    def __enter__(self) -> _JsonWriter:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _plain_column(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if kinds.is_duration(kind):
        column = column.cast(pa.int64())
    elif kinds.is_temporal(kind) or kinds.is_decimal(kind):
        column = column.cast(pa.string())
    found: list[Any] = column.to_pylist()
    if kinds.is_nested(kind) or kinds.is_floating(kind) or _is_bytes(kind):
        return [_plain(value, kind) for value in found]
    return found


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON has it."""
    if value is None:
        return None
    if kinds.is_map(kind):
        pairs = [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in value]
        return dict(pairs) if kinds.is_string(kind.key_type) else pairs
    if kinds.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if kinds.is_nested(kind):
        return [_plain(one, kind.value_type) for one in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return str(value) if isinstance(value, date | time | Decimal) else value


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The inverse of `_plain_column`."""
    if kinds.is_duration(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if kinds.is_temporal(kind) or kinds.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if kinds.is_nested(kind) or kinds.is_floating(kind) or _is_bytes(kind):
        values = [_value(value, kind) for value in values]
    return pa.array(values, kind)


def _value(plain: Any, kind: pa.DataType) -> Any:
    """The inverse of `_plain`."""
    if plain is None:
        return None
    if kinds.is_map(kind):
        pairs = plain.items() if isinstance(plain, dict) else plain
        return [(_value(k, kind.key_type), _value(v, kind.item_type)) for k, v in pairs]
    if kinds.is_struct(kind):
        return {field.name: _value(plain[field.name], field.type) for field in kind}
    if kinds.is_nested(kind):
        return [_value(one, kind.value_type) for one in plain]
    if _is_bytes(kind):
        return b64decode(plain)
    if kinds.is_floating(kind):
        return float(plain)
    if kinds.is_duration(kind) or kinds.is_temporal(kind) or kinds.is_decimal(kind):
        return _array([plain], kind)[0].as_py()
    return plain


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind)
    )


def _refuse(name: str, schema: pa.Schema, cannot: Callable[[pa.DataType], bool]) -> None:
    for field in schema:
        if cannot(field.type):
            raise errors.type_not_for_format(name, field.name, str(field.type))
