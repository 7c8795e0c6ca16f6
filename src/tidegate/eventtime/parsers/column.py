"""A parsed column: an instant for every good row, a reason for every bad one.

Each row has exactly one of the two: where the time is null there is a reason, and nowhere else.

>>> draft = Draft(pa.array(["5", None, "x"]))          # every row is unparsable until it is read
>>> draft.put(np.array([0]), np.array([5]))
>>> parsed = draft.finish()
>>> parsed.times.to_pylist(), parsed.reasons.to_pylist()
([5, None, None], [None, 'missing', 'unparsable'])
>>> parsed.counts()
{<BadReason.MISSING: 'missing'>: 1, <BadReason.UNPARSABLE: 'unparsable'>: 1}
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.eventtime.instants import LIMIT, Instant
from tidegate.eventtime.lateness import Instants

Rows = npt.NDArray[np.intp]
"""Positions in a column."""


class BadReason(Enum):
    """Why a row is a bad row."""

    MISSING = "missing"
    UNPARSABLE = "unparsable"
    OUT_OF_RANGE = "out of range"
    FUTURE = "future"
    """Dated too far past the clock at which it entered the log; judged by the guard."""


Parsed: TypeAlias = Instant | BadReason
"""What one value gives."""

_REASONS: Final = tuple(BadReason)
_CODES: Final = {reason: code for code, reason in enumerate(_REASONS)}
_GOOD: Final = -1


class ParsedColumn(NamedTuple):
    """Two Arrow columns as long as the one that was read.

    `times`: int64 microseconds, null where the row is bad. `reasons`: dictionary-encoded text,
    null where the row is good.
    """

    times: pa.Array
    reasons: pa.Array

    def counts(self) -> dict[BadReason, int]:
        """How many rows are bad, by reason; reasons that do not occur are left out."""
        codes = self.reasons.indices.drop_null().to_numpy()
        found = np.bincount(codes, minlength=len(_REASONS)).tolist()
        return {reason: n for reason, n in zip(_REASONS, found, strict=True) if n}

    def at(self, row: int) -> Parsed:
        """What one row gives, as `parse` would say it."""
        time = self.times[row]
        return int(time.as_py()) if time.is_valid else BadReason(self.reasons[row].as_py())


class Draft:
    """A column while it is being read: each way of reading settles the rows it understands."""

    def __init__(self, column: pa.Array) -> None:
        self.times: Instants = np.zeros(len(column), dtype=np.int64)
        self._codes = np.full(len(column), _CODES[BadReason.UNPARSABLE], dtype=np.int8)
        if column.null_count:
            absent: Rows = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            self.reject(absent, BadReason.MISSING)

    def put(self, rows: Rows, times: Instants) -> None:
        """These rows have these times; those beyond what we can order are out of range."""
        inside = (times > -LIMIT) & (times < LIMIT)
        self.settle(rows, times, inside)

    def settle(self, rows: Rows, times: Instants, inside: npt.NDArray[np.bool_]) -> None:
        """These rows have these times where they are inside the range, and are bad elsewhere."""
        if inside.all():
            self.times[rows] = times
            self._codes[rows] = _GOOD
            return
        self.times[rows[inside]] = times[inside]
        self._codes[rows[inside]] = _GOOD
        self.reject(rows[~inside], BadReason.OUT_OF_RANGE)

    def reject(self, rows: Rows, reason: BadReason) -> None:
        """These rows are bad."""
        self._codes[rows] = _CODES[reason]

    def set(self, row: int, parsed: Parsed) -> None:
        """One row, read by itself."""
        if isinstance(parsed, BadReason):
            self._codes[row] = _CODES[parsed]
        else:
            self.times[row] = parsed
            self._codes[row] = _GOOD

    def finish(self) -> ParsedColumn:
        """The result."""
        good = self._codes == _GOOD
        return ParsedColumn(
            pa.array(self.times, mask=~good),
            pa.DictionaryArray.from_arrays(
                pa.array(self._codes, mask=good), pa.array([reason.value for reason in _REASONS])
            ),
        )


def present(column: pa.Array) -> Rows:
    """The positions of the rows that are not null."""
    if not column.null_count:
        return np.arange(len(column), dtype=np.intp)
    found: Rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return found
