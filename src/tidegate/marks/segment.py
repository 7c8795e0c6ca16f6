"""A segment: one key range of a stream, from the epoch that opened it to the one that sealed it.

Key ranges are half open, `[low, high)` inside `[0, 1)`, and exact: two ranges meet or they do not,
never nearly. A segment's name, `number.eEPOCH`, is its partition key in a cut.

>>> half = Segment(SegmentId(epoch=1, number=3), Fraction(0), Fraction(1, 2))
>>> half.name, half.is_open
('3.e1', True)
>>> SegmentId.parse("3.e1") < SegmentId.parse("4.e1") < SegmentId.parse("0.e2")
True
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from tidegate import errors

Bound: TypeAlias = Fraction | int | float | str
"""An end of a key range as people write it: `0`, `0.5`, `"1/3"`; taken exactly as it is."""

KeyRange: TypeAlias = tuple[Fraction, Fraction]

_NAME: Final = re.compile(r"(\d+)\.e(\d+)")


class SegmentId(NamedTuple):
    """Who a segment is: ordered by epoch, then by number; printed as `number.eEPOCH`."""

    epoch: int
    number: int

    @staticmethod
    def parse(name: str) -> SegmentId:
        """Read the short form.

        >>> SegmentId.parse("12.e3")
        SegmentId(epoch=3, number=12)
        """
        found = _NAME.fullmatch(name)
        if not found:
            raise errors.segment_name_not_parsed(name)
        return SegmentId(epoch=int(found[2]), number=int(found[1]))

    def __str__(self) -> str:
        return f"{self.number}.e{self.epoch}"


@dataclass(frozen=True)
class Segment:
    """A key range that rows are appended to, until the epoch `sealed_in`."""

    id: SegmentId
    low: Fraction
    high: Fraction
    sealed_in: int | None = None

    @cached_property
    def name(self) -> str:
        """Its partition key in cuts and positions."""
        return str(self.id)

    @property
    def is_open(self) -> bool:
        """Whether it still takes rows."""
        return self.sealed_in is None

    def to_json(self) -> list[str | int | None]:
        """Name, range, sealing epoch."""
        return [self.name, str(self.low), str(self.high), self.sealed_in]

    @staticmethod
    def from_json(value: list[str | int | None]) -> Segment:
        """The inverse of `to_json`.

        >>> Segment.from_json(["0.e0", "0", "1/3", None]).high
        Fraction(1, 3)
        """
        name, low, high, sealed_in = value
        return Segment(
            SegmentId.parse(str(name)),
            Fraction(str(low)),
            Fraction(str(high)),
            None if sealed_in is None else int(sealed_in),
        )


def key_range(low: Bound, high: Bound) -> KeyRange:
    """An exact range.

    A range that is empty or leaves `[0, 1)` is an error.

    >>> key_range(0, "1/3"), key_range(0.5, 1)[0]
    ((Fraction(0, 1), Fraction(1, 3)), Fraction(1, 2))
    """
    try:
        exact = Fraction(low), Fraction(high)
    except (ValueError, OverflowError):
        raise errors.not_a_key_range(low, high) from None
    if not 0 <= exact[0] < exact[1] <= 1:
        raise errors.not_a_key_range(low, high)
    return exact


def equal_ranges(count: int) -> list[KeyRange]:
    """The key space in `count` equal parts.

    >>> [str(low) for low, _ in equal_ranges(3)]
    ['0', '1/3', '2/3']
    """
    bounds = [Fraction(i, count) for i in range(count + 1)] if count > 0 else []
    return list(pairwise(bounds))


def places(segments: Collection[Segment]) -> dict[str, tuple[int, int]]:
    """Every range as two places among all bounds: small integers are cheap to compare.

    Fractions are slow to hash and to compare. Their parts hash fast, floats compare fast and never
    in the wrong order, and the fraction decides where two floats are equal.
    """
    bounds = {(b.numerator, b.denominator) for s in segments for b in (s.low, s.high)}
    ordered = sorted((n / d, Fraction(n, d), n, d) for n, d in bounds)
    place = {(n, d): at for at, (_, _, n, d) in enumerate(ordered)}
    return {
        s.name: (
            place[s.low.numerator, s.low.denominator],
            place[s.high.numerator, s.high.denominator],
        )
        for s in segments
    }
