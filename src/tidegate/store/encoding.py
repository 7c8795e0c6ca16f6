"""Encoding: what a caller hands in, as rows of the stream's schema with their event time.

Every row is good or bad, and bad for the first reason found: a value of the wrong type, a missing
value or key, an event time that is missing, cannot be read or lies too far in the future of `now`.
Good rows keep their order. Values are never bent to fit: a text is not a number, 1.5 is not 1; only
ISO texts are taken for timestamps and dates, because JSON has none.

>>> from tidegate.store.config import StreamConfig
>>> config = StreamConfig(pa.schema([("id", pa.int64()), ("at", pa.string())]), event_column="at")
>>> rows = [{"id": 1, "at": "1970-01-01T00:00:01Z"}, {"id": "x"}, {"id": 2, "at": "soon"}]
>>> encoded = encode(rows, config, EventTimeRegistry(), now=0, stream="orders")
>>> encoded.table.num_rows, [(bad.row, bad.reason, bad.column) for bad in encoded.bad]
(1, [(1, 'wrong type', 'id'), (2, 'unparsable', 'at')])
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.parsers.column import BadReason
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.store.chunk_file import EVENT_TIME, EVENT_TIME_TYPE
from tidegate.store.config import StreamConfig

Rows = Any
"""Dicts, an Arrow table or record batch, a pandas or polars frame."""

Numbers = npt.NDArray[np.int64]

WRONG_TYPE: Final = "wrong type"
MISSING: Final = BadReason.MISSING.value
FUTURE: Final = BadReason.FUTURE.value


@dataclass(frozen=True)
class BadRow:
    """A row that cannot enter the stream: its place among those handed in, and why."""

    row: int
    reason: str
    column: str
    value: str | None
    original: str
    """The whole row as it came, JSON."""


@dataclass(frozen=True)
class Encoded:
    """The good rows, where each of them stood, the bad ones, and how many came in all."""

    table: pa.Table
    places: Numbers
    bad: tuple[BadRow, ...]
    rows: int


def encode(
    rows: Rows,
    config: StreamConfig,
    registry: EventTimeRegistry,
    now: Instant,
    *,
    stream: str,
    skip: int = 0,
) -> Encoded:
    """Judge rows by the clock `now` and bring them into the schema of the stream.

    The first `skip` rows are left out, and not looked at.
    """
    source: _Source = _frame(rows, skip) if not _is_dicts(rows) else _Dicts(list(rows)[skip:])
    for name in source.names:
        if name not in config.schema.names:
            raise errors.unknown_column(stream, name, config.schema.names)
    judged = _Judged(len(source))
    columns = []
    for field in config.schema:
        column, wrong = source.column(field.name, field.type)
        is_time = field.name == config.event_column
        judged.reject(wrong, BadReason.UNPARSABLE.value if is_time else WRONG_TYPE, field.name)
        if column.null_count and (not field.nullable or field.name in config.routing_key):
            judged.reject(_true(pc.is_null(column)), MISSING, field.name)
        columns.append(column)
    times = _times(columns, config, registry, now, judged, stream)
    schema = config.schema.remove_metadata()
    if times is not None:
        schema = schema.append(pa.field(EVENT_TIME, EVENT_TIME_TYPE))
        columns.append(times)
    return _parted(pa.Table.from_arrays(columns, names=schema.names), schema, judged, source)


def _times(
    columns: Sequence[pa.Array],
    config: StreamConfig,
    registry: EventTimeRegistry,
    now: Instant,
    judged: _Judged,
    stream: str,
) -> pa.Array | None:
    declared = config.declaration
    if declared is None:
        return None
    column = columns[config.schema.get_field_index(declared.column)]
    parsed = declared.resolve(registry, stream=stream).parse_column(column)
    if parsed.times.null_count:
        for reason in (BadReason.MISSING, BadReason.UNPARSABLE, BadReason.OUT_OF_RANGE):
            found = _true(pc.equal(parsed.reasons.dictionary_decode(), reason.value))
            judged.reject(found, reason.value, declared.column)
    if config.max_future is not None:
        latest = now + micros(config.max_future)
        judged.reject(_true(pc.greater(parsed.times, latest)), FUTURE, declared.column)
    return parsed.times.view(EVENT_TIME_TYPE)


def _parted(table: pa.Table, schema: pa.Schema, judged: _Judged, source: _Source) -> Encoded:
    if not judged.found:
        return Encoded(table.cast(schema), np.arange(len(table), dtype=np.int64), (), len(table))
    places = np.flatnonzero(judged.good).astype(np.int64)
    bad = []
    for row in sorted(judged.found):
        reason, column = judged.found[row]
        original = source.original(row)
        value = original.get(column)
        bad.append(
            BadRow(
                row,
                reason,
                column,
                None if value is None else str(value),
                json.dumps(original, default=str),
            )
        )
    good = table.take(pa.array(places)).cast(schema)
    return Encoded(good, places, tuple(bad), len(table))


class _Judged:
    """Which rows are good; for a bad one the first reason."""

    def __init__(self, rows: int) -> None:
        self.good = np.ones(rows, dtype=np.bool_)
        self.found: dict[int, tuple[str, str]] = {}

    def reject(self, rows: Iterable[int], reason: str, column: str) -> None:
        for row in rows:
            self.good[row] = False
            self.found.setdefault(int(row), (reason, column))


# ---- what a caller may hand in ----


class _Dicts:
    """Rows as mappings from column to value; what is left out is null."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.names = dict.fromkeys(name for row in rows for name in row)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str, kind: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
        values = [row.get(name) for row in self.rows]
        found = set(map(type, values)) - {NoneType}
        if len(found) > 1 and not found <= {int, float}:
            # Left to guess, pyarrow takes a number between timestamps for one of them.
            return _one_by_one(values, kind)
        try:
            # A nested type cannot be guessed from its values. A plain one is: pyarrow, told the
            # type, makes 1 of 1.5 without a word.
            guessed = pa.array(values, kind) if kinds.is_nested(kind) else pa.array(values)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            return _one_by_one(values, kind)
        return _cast(guessed, kind)

    def original(self, row: int) -> dict[str, Any]:
        return dict(self.rows[row])


class _Arrow:
    """Rows as an Arrow table; a column that is left out is null."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.names = dict.fromkeys(table.column_names)
        if len(self.names) < table.num_columns:
            raise errors.column_given_twice("the rows", table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str, kind: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
        if name not in self.names:
            return pa.nulls(len(self), kind), ()
        column = self.table.column(name)
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, kind)
        return _cast(whole, kind)

    def original(self, row: int) -> dict[str, Any]:
        return dict(self.table.slice(row, 1).to_pylist()[0])


_Source = _Dicts | _Arrow


def _is_dicts(rows: Rows) -> bool:
    if isinstance(rows, Mapping):
        raise errors.rows_not_understood("a single mapping")
    listed = isinstance(rows, list | tuple)
    return listed and all(isinstance(row, Mapping) for row in rows)


def _frame(rows: Rows, skip: int) -> _Arrow:
    home = type(rows).__module__.split(".")[0]
    if isinstance(rows, pa.Table):
        table = rows
    elif isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif home == "pandas" and hasattr(rows, "columns"):
        table = pa.Table.from_pandas(rows, preserve_index=False)
    elif hasattr(rows, "__arrow_c_stream__"):
        table = pa.table(rows)
    else:
        raise errors.rows_not_understood(type(rows).__name__)
    return _Arrow(table.slice(skip))


# ---- types ----


def _cast(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
    """The column in the type of the schema, null where that cannot be, and where that is."""
    if column.type == kind:
        return column, ()
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_dictionary(kind):
        plain, wrong = _cast(column, kind.value_type)
        return plain.dictionary_encode().cast(kind), wrong
    if not _may_become(column.type, kind):
        return pa.nulls(len(column), kind), _true(pc.is_valid(column))
    try:
        return column.cast(kind), ()
    except pa.ArrowException:
        return _halves(column, kind)


def _halves(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
    """Find the values that cannot be cast: halve the column until they stand alone."""
    if len(column) == 1:
        return pa.nulls(1, kind), (0,)
    middle = len(column) // 2
    left, wrong_left = _cast(column.slice(0, middle), kind)
    right, wrong_right = _cast(column.slice(middle), kind)
    return (
        pa.concat_arrays([left, right]),
        [*wrong_left, *(middle + row for row in wrong_right)],
    )


def _one_by_one(values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
    """Values of mixed types: each is judged by itself."""
    wrong: list[int] = []
    parts = []
    for row, value in enumerate(values):
        try:
            one = pa.array([value], kind) if kinds.is_nested(kind) else pa.array([value])
            part, bad = _cast(one, kind)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            part, bad = pa.nulls(1, kind), (0,)
        parts.append(part)
        wrong.extend(row for _ in bad)
    return pa.concat_arrays(parts), wrong


def _may_become(found: pa.DataType, kind: pa.DataType) -> bool:
    if kinds.is_null(found):
        return True
    if _is_number(kind):
        return _is_number(found)
    if _is_text(kind):
        return _is_text(found)
    if kinds.is_temporal(kind):
        same = kinds.is_temporal(found) and kinds.is_duration(found) == kinds.is_duration(kind)
        return bool(same or (_is_text(found) and not kinds.is_duration(kind)))
    if _is_bytes(kind):
        return _is_bytes(found)
    return bool(kinds.is_nested(kind) and kinds.is_nested(found))


def _is_number(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_fixed_size_binary(kind)
    )


def _true(mask: pa.Array) -> Sequence[int]:
    found: list[int] = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)).tolist()
    return found
