"""The parser: one notation of time, read from single values and from whole Arrow columns.

Both faces agree on every value. Whatever already is an instant (a datetime, a date, an Arrow
timestamp or date, whatever the unit and zone; without a zone it is UTC) is taken as it is. Null,
NaN and blank text are missing. A kind of notation says only how it reads texts and numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.eventtime.instants import from_datetime
from tidegate.eventtime.lateness import Instants
from tidegate.eventtime.parsers.column import (
    BadReason,
    Draft,
    Parsed,
    ParsedColumn,
    Rows,
    present,
)
from tidegate.eventtime.parsers.units import DAY, MILLISECOND, SECOND, UNITS, Inside

BLANKS: Final = " \t\r\n"
"""What may stand around a text; the same characters for both faces."""

TEXT: Final = pa.large_string()
"""Texts are widened to this before they are read: putting them together cannot overflow it."""


@runtime_checkable
class EventTimeParser(Protocol):
    """What every event time type is, built in or the user's own."""

    @property
    def reads(self) -> str:
        """What it can read, in words, for error texts."""

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether a column of this Arrow type can hold such times at all."""

    def parse(self, value: object) -> Parsed:
        """The instant of one value, or why there is none."""

    def parse_column(self, column: pa.Array | pa.ChunkedArray) -> ParsedColumn:
        """`parse` for every row, at once."""


class Swift(NamedTuple):
    """The texts of a column that were read all at once.

    Their positions, their times, and which of these are inside the range.
    """

    rows: Rows
    times: Instants
    inside: Inside


class Notation(ABC):
    """The part all built-in parsers share: everything but the notation itself."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """What it can read, in words."""

    @abstractmethod
    def read_text(self, text: str) -> Parsed:
        """One text, neither blank nor with blanks around it."""

    @abstractmethod
    def read_texts(self, texts: pa.Array) -> Swift:
        """The texts (TEXT, no nulls, stripped) that can be read at once.

        Exactly as `read_text` would; it may leave out any text: those are read one by one.
        """

    def read_number(self, number: int | float | Decimal) -> Parsed:
        """One number; a notation of texts has none."""
        return BadReason.UNPARSABLE

    def read_numbers(self, column: pa.Array, rows: Rows, draft: Draft) -> None:
        """The numbers at `rows`, neither null nor NaN; a notation of texts has none."""
        draft.reject(rows, BadReason.UNPARSABLE)

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether a column of this Arrow type can hold such times at all."""
        if pa.types.is_dictionary(kind):
            return self.accepts(kind.value_type)
        return _is_instant(kind) or _is_text(kind) or pa.types.is_null(kind)

    # ---- one value ----

    def parse(self, value: object) -> Parsed:
        """The instant of one value, or why there is none."""
        if isinstance(value, np.generic):
            value = _from_numpy(value)
        if isinstance(value, str):
            text = value.strip(BLANKS)
            return self.read_text(text) if text else BadReason.MISSING
        if value is None or is_nan(value):
            return BadReason.MISSING
        if isinstance(value, _Counted):
            return value.parsed
        if isinstance(value, datetime):
            return int(from_datetime(value))
        if isinstance(value, date):
            return from_datetime(datetime.combine(value, time(), UTC))
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return self.read_number(value)
        return BadReason.UNPARSABLE

    # ---- a column ----

    def parse_column(self, column: pa.Array | pa.ChunkedArray) -> ParsedColumn:
        """`parse` for every row, at once."""
        return by_chunks(column, self._parse_array)

    def _parse_array(self, column: pa.Array) -> ParsedColumn:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        draft = Draft(column)
        rows = present(column)
        if _is_instant(kind):
            settle_instants(column, rows, draft)
        elif _is_text(kind):
            self._settle_texts(column, rows, draft)
        elif pa.types.is_floating(kind):
            counts = column.cast(pa.float64())
            nan = np.isnan(counts.fill_null(0).to_numpy())[rows]
            draft.reject(rows[nan], BadReason.MISSING)
            self.read_numbers(counts, rows[~nan], draft)
        elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            self.read_numbers(column, rows, draft)
        return draft.finish()

    def _settle_texts(self, column: pa.Array, rows: Rows, draft: Draft) -> None:
        texts = pc.utf8_trim(column.cast(TEXT).drop_null(), characters=BLANKS)
        blank = pc.equal(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
        draft.reject(rows[blank], BadReason.MISSING)
        swift = self.read_texts(texts)
        draft.settle(rows[swift.rows], swift.times, swift.inside)
        slow = ~blank
        slow[swift.rows] = False
        for row in np.flatnonzero(slow):
            draft.set(rows[row], self.read_text(texts[row].as_py()))


def by_chunks(
    column: pa.Array | pa.ChunkedArray, parse: Callable[[pa.Array], ParsedColumn]
) -> ParsedColumn:
    """Parse a chunked column chunk by chunk, so that no chunk has to be copied."""
    if not isinstance(column, pa.ChunkedArray):
        return parse(column)
    parts = [parse(chunk) for chunk in column.chunks] or [parse(pa.array([], column.type))]
    return ParsedColumn(
        pa.concat_arrays([part.times for part in parts]),
        pa.concat_arrays([part.reasons for part in parts]),
    )


def settle_instants(column: pa.Array, rows: Rows, draft: Draft) -> None:
    """A column of timestamps or dates: only the unit has to change."""
    kind = column.type
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    counts: npt.NDArray[Any] = column.view(width).fill_null(0).to_numpy()[rows]
    if pa.types.is_timestamp(kind):
        unit = UNITS[kind.unit]
    else:
        unit = DAY if pa.types.is_date32(kind) else MILLISECOND
    # Days are 32 bits wide: they must be widened before they are multiplied.
    draft.settle(rows, *unit.of_ints(counts.astype(np.int64)))


def is_nan(value: object) -> bool:
    """Whether a value is one of those that are not equal to themselves: NaN, NaT."""
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | datetime) and value != value


class _Counted(NamedTuple):
    """A numpy datetime64, counted out."""

    parsed: Parsed


def _from_numpy(value: np.generic) -> object:
    """The Python value of a numpy scalar; `item()` gives a bare number for nanoseconds."""
    if not isinstance(value, np.datetime64):
        return value.item()
    if np.isnat(value):
        return None
    name, _ = np.datetime_data(value)
    unit = DAY if name == "D" else UNITS.get(name)
    if unit is None:  # years, hours and the like
        name, unit = "s", SECOND
    count = value.astype(f"datetime64[{name}]").astype(np.int64)
    return _Counted(unit.of_int(int(count)))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
