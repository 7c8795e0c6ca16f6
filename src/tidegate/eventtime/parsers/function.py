"""Times read by a function of the user's own.

The function gets one value and gives an instant in microseconds, a datetime, or None when there is
no time in it; what it raises makes a bad row, never a failed job. A second function may read whole
Arrow columns; where that one fails, the rows are read one by one.

>>> FunctionTime(lambda row: row["at"] * 1000).parse({"at": 5})
5000
>>> FunctionTime(int).parse("soon")
<BadReason.UNPARSABLE: 'unparsable'>
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate import errors
from tidegate.eventtime.instants import Instant, from_datetime
from tidegate.eventtime.parsers.column import BadReason, Draft, Parsed, ParsedColumn, present
from tidegate.eventtime.parsers.parser import by_chunks, is_nan, settle_instants
from tidegate.eventtime.parsers.units import MICROSECOND

ReadValue = Callable[[Any], Instant | datetime | BadReason | None]
ReadColumn = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class FunctionTime:
    """`function` reads a value that is neither null nor NaN; `column`, if given, whole columns.

    `column` gets an array and gives one of the same length: int64 microseconds or timestamps, null
    where a row is bad.
    """

    function: ReadValue
    column: ReadColumn | None = None

    @property
    def reads(self) -> str:
        """What it can read, in words."""
        return "whatever its function reads"

    def accepts(self, kind: pa.DataType) -> bool:
        """Only the function knows."""
        return True

    def parse(self, value: object) -> Parsed:
        """The instant of one value, or why there is none."""
        if value is None or is_nan(value):
            return BadReason.MISSING
        try:
            return _understood(self.function(value))
        except Exception:  # a user's function may raise anything, and a bad row is never fatal
            return BadReason.UNPARSABLE

    def parse_column(self, column: pa.Array | pa.ChunkedArray) -> ParsedColumn:
        """`parse` for every row; at once if there is a function for columns."""
        return by_chunks(column, self._parse_array)

    def _parse_array(self, column: pa.Array) -> ParsedColumn:
        times = self._whole(column)
        draft = Draft(column)
        if times is not None:
            # A row that is missing stays so, whatever the function makes of it.
            rows = present(column)
            rows = rows[times.is_valid().to_numpy(zero_copy_only=False)[rows]]
            if pa.types.is_timestamp(times.type):
                settle_instants(times, rows, draft)
            else:
                draft.settle(rows, *MICROSECOND.of_ints(times.fill_null(0).to_numpy()[rows]))
            return draft.finish()
        for row, value in enumerate(_floored(column)):
            draft.set(row, self._parse_scalar(value))
        return draft.finish()

    def _whole(self, column: pa.Array) -> pa.Array | None:
        """What the function for columns says; None when there is none or it failed."""
        if self.column is None:
            return None
        try:
            times = self.column(column)
        except Exception:  # one odd row must not make all the others bad
            return None
        if isinstance(times, pa.ChunkedArray):
            times = times.combine_chunks()
        if not isinstance(times, pa.Array) or len(times) != len(column):
            raise errors.column_parser_broken(_described(times), len(column))
        if not (pa.types.is_int64(times.type) or pa.types.is_timestamp(times.type)):
            raise errors.column_parser_broken(_described(times), len(column))
        return times

    def _parse_scalar(self, value: pa.Scalar) -> Parsed:
        try:
            python = value.as_py()
        except (ValueError, OverflowError):  # a timestamp that no datetime can hold
            return BadReason.OUT_OF_RANGE
        return self.parse(python)


def _understood(answer: object) -> Parsed:
    if answer is None:
        return BadReason.MISSING
    if isinstance(answer, BadReason):
        return answer
    if isinstance(answer, datetime):
        return int(from_datetime(answer))
    if isinstance(answer, int | np.integer) and not isinstance(answer, bool):
        return MICROSECOND.of_int(int(answer))
    return BadReason.UNPARSABLE


def _floored(column: pa.Array) -> pa.Array:
    """Nanoseconds cut down to what a datetime can hold."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "ns":
        return column
    counts = column.view(pa.int64()).fill_null(0).to_numpy() // 1000
    absent = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(counts, mask=absent).cast(pa.timestamp("us", column.type.tz))


def _described(answer: object) -> str:
    if isinstance(answer, pa.Array):
        return f"{len(answer)} values of type {answer.type}"
    return f"a {type(answer).__name__}"
