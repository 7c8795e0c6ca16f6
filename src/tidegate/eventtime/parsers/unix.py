"""Unix time: how many seconds (or finer units) have passed since 1970.

Numbers of every kind are read, and texts of digits as they stand in JSON and CSV; what is finer
than a microsecond is rounded down.

>>> UnixTime("s").parse(-0.5), UnixTime("ns").parse("1700000000000000999")
(-500000, 1700000000000000)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.eventtime.parsers.column import BadReason, Draft, Parsed, Rows
from tidegate.eventtime.parsers.parser import Notation, Swift
from tidegate.eventtime.parsers.units import UNITS, Unit

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")

# The plain ones among them, which fit into a decimal of 30 digits with 12 behind the point.
_PLAIN: Final = r"^[+-]?[0-9]{1,18}(?:\.[0-9]{1,12})?$"
_PLAIN_DECIMAL: Final = pa.decimal128(30, 12)


@dataclass(frozen=True)
class UnixTime(Notation):
    """A count of `unit`s since 1970-01-01T00:00:00Z."""

    unit: Literal["s", "ms", "us", "ns"] = "s"

    @property
    def reads(self) -> str:
        """What it can read, in words."""
        return "numbers, texts of digits, timestamps and dates"

    @property
    def _unit(self) -> Unit:
        return UNITS[self.unit]

    def accepts(self, kind: pa.DataType) -> bool:
        """Texts, instants, and numbers of every kind."""
        if pa.types.is_dictionary(kind):
            return self.accepts(kind.value_type)
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        return bool(number or pa.types.is_decimal(kind)) or super().accepts(kind)

    def read_number(self, number: int | float | Decimal) -> Parsed:
        """A count."""
        if isinstance(number, int):
            return self._unit.of_int(number)
        if isinstance(number, float):
            return self._unit.of_float(number)
        return self._unit.of_decimal(number)

    def read_numbers(self, column: pa.Array, rows: Rows, draft: Draft) -> None:
        """A column of counts."""
        if pa.types.is_decimal(column.type):
            self._read_decimals(column, rows, draft)
            return
        counts = column.fill_null(0).to_numpy()[rows]
        read = self._unit.of_floats if counts.dtype.kind == "f" else self._unit.of_ints
        draft.settle(rows, *read(counts))

    def _read_decimals(self, column: pa.Array, rows: Rows, draft: Draft) -> None:
        decimals = column.drop_null()
        read = self._unit.of_decimals(decimals)
        if read is not None:
            draft.settle(rows, *read)
            return
        for row, count in zip(rows, decimals.to_pylist(), strict=True):
            draft.set(row, self._unit.of_decimal(count))

    def read_text(self, text: str) -> Parsed:
        """Digits, with a sign, a point or an exponent."""
        if not _NUMBER.fullmatch(text):
            return BadReason.UNPARSABLE
        return self._unit.of_decimal(Decimal(text))

    def read_texts(self, texts: pa.Array) -> Swift:
        """The plain ones, as decimals."""
        plain = pc.match_substring_regex(texts, _PLAIN)
        read = self._unit.of_decimals(texts.filter(plain).cast(_PLAIN_DECIMAL))
        assert read is not None, "there is room for 30 digits"
        return Swift(np.flatnonzero(plain.to_numpy(zero_copy_only=False)), *read)
