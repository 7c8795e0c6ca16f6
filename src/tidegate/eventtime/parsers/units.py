"""Units: a count of seconds, milliseconds, microseconds or nanoseconds as an instant.

Each kind of number (whole, floating, decimal) is read by one rule, for one value and for a column.
Parts of a microsecond are rounded down, also before 1970. A float nearly always lies a little
beside what was written, so it counts as the last microsecond that, written as a float, is not after
it: 8.2 s is 8200000 us, though 8.2 * 1e6 is 8199999.999999999.

>>> SECOND.of_float(8.2), SECOND.of_float(-1e-9), NANOSECOND.of_int(-1)
(8200000, -1, -1)
>>> SECOND.of_decimal(Decimal("1.9999999")), SECOND.of_float(float("inf"))
(1999999, <BadReason.OUT_OF_RANGE: 'out of range'>)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.lateness import Instants
from tidegate.eventtime.parsers.column import BadReason, Parsed

Inside = npt.NDArray[np.bool_]
_Floats = TypeVar("_Floats", float, npt.NDArray[np.float64])

# Digits enough that rounding down twice (to 60 digits, then to a whole number) is rounding once.
_WIDE: Final = Context(prec=60, rounding=ROUND_FLOOR, traps=[])
# Up to the year 2239 floats of seconds tell every microsecond from the next; beyond, several are
# one float, and the nearest is taken.
_TOLD_APART: Final = 8_500_000_000_000_000
# A decimal256 has 76 digits; the product with a factor of ten digits may take eleven more.
_FACTOR: Final = pa.decimal256(10, 3)
_WIDEST: Final = 65
_WHOLE: Final = pa.decimal256(76, 0)


@dataclass(frozen=True)
class Unit:
    """`multiple / part` microseconds; one of the two is 1."""

    multiple: int = 1
    part: int = 1

    # ---- one value ----

    def of_int(self, count: int) -> Parsed:
        """A whole number of units."""
        return _inside(count * self.multiple // self.part)

    def of_float(self, count: float) -> Parsed:
        """A floating number of units; NaN says nothing."""
        if count != count:
            return BadReason.MISSING
        scaled = count * self.multiple / self.part
        if not abs(scaled) < LIMIT:
            return BadReason.OUT_OF_RANGE
        nearest = round(scaled)
        if abs(nearest) < _TOLD_APART and self._written(float(nearest + 1)) <= count:
            return nearest + 1
        return nearest - (self._written(float(nearest)) > count)

    def of_decimal(self, count: Decimal) -> Parsed:
        """A decimal number of units; NaN says nothing."""
        if count.is_nan():
            return BadReason.MISSING
        if count.is_infinite() or count.adjusted() > 30:
            return BadReason.OUT_OF_RANGE
        scaled = _WIDE.multiply(count, self._factor)
        return _inside(int(scaled.to_integral_value(ROUND_FLOOR)))

    # ---- columns without nulls: the times, and which of them are inside the range ----

    def of_ints(self, counts: npt.NDArray[Any]) -> tuple[Instants, Inside]:
        """Whole numbers of any width, signed or not."""
        lowest = -((LIMIT - 1) * self.part // self.multiple)
        highest = (LIMIT * self.part - 1) // self.multiple
        inside = (counts >= lowest) & (counts <= highest)
        if self.part > 1:
            return (counts // self.part).astype(np.int64), inside
        return np.where(inside, counts, 0).astype(np.int64) * self.multiple, inside

    def of_floats(self, counts: npt.NDArray[np.float64]) -> tuple[Instants, Inside]:
        """Floating numbers without NaN."""
        with np.errstate(over="ignore"):
            scaled = counts * self.multiple / self.part
        inside = np.abs(scaled) < LIMIT
        nearest = np.rint(np.where(inside, scaled, 0.0)).astype(np.int64)
        before = self._written((nearest + 1).astype(np.float64)) <= counts
        before &= np.abs(nearest) < _TOLD_APART
        after = self._written(nearest.astype(np.float64)) > counts
        return nearest + before - after, inside

    def of_decimals(self, counts: pa.Array) -> tuple[Instants, Inside] | None:
        """Decimals of any width; None when there is no room for the product."""
        precision, scale = counts.type.precision, counts.type.scale
        if precision > _WIDEST:
            return None
        wide = counts.cast(pa.decimal256(precision, scale))
        scaled = pc.multiply(wide, pa.scalar(self._factor, _FACTOR))
        whole = pc.floor(scaled).cast(_WHOLE)
        limit = pa.scalar(Decimal(LIMIT), _WHOLE)
        inside = pc.and_(pc.greater(whole, pc.negate(limit)), pc.less(whole, limit))
        times = pc.if_else(inside, whole, pa.scalar(Decimal(0), _WHOLE)).cast(pa.int64())
        return times.to_numpy(), inside.to_numpy(zero_copy_only=False)

    def _written(self, instant: _Floats) -> _Floats:
        """An instant as a float of this unit."""
        return instant * self.part / self.multiple

    @property
    def _factor(self) -> Decimal:
        return Decimal(self.multiple) / Decimal(self.part)


SECOND: Final = Unit(multiple=1_000_000)
MILLISECOND: Final = Unit(multiple=1_000)
MICROSECOND: Final = Unit()
NANOSECOND: Final = Unit(part=1_000)
DAY: Final = Unit(multiple=86_400_000_000)

UNITS: Final = {"s": SECOND, "ms": MILLISECOND, "us": MICROSECOND, "ns": NANOSECOND}


def _inside(instant: int) -> Parsed:
    return instant if -LIMIT < instant < LIMIT else BadReason.OUT_OF_RANGE
