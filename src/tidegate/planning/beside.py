"""Beside: streams of the same query that are planned elsewhere.

Where one planner plans all streams of a query it merges them itself. Where each has a planner of
its own, every one hears of the others what has become durable: a stream that is wholly idle goes
with the slowest active one, and none is at its end before all are.

>>> payments = Beside.of([Other(99, idle=False), Other(200, idle=True)])
>>> payments.number.tolist(), payments.ended, len(payments), payments.lowest(150)
([100, 201], False, 2, 99)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.planning.facts import Flags, Numbers, flags, numbers


@dataclass(frozen=True)
class Other:
    """One stream: its W, whether anybody waits for it, and the last use of what was seen of it."""

    watermark: Known
    idle: bool
    ended: bool = False
    closing: Known = UNKNOWN


@dataclass(frozen=True, eq=False)
class Beside:
    """All of them, as columns of a merge: a number is a W and a microsecond."""

    number: Numbers = field(default_factory=numbers)
    known: Flags = field(default_factory=flags)
    idle: Flags = field(default_factory=flags)
    ended: bool = True
    closing: Known = UNKNOWN

    @staticmethod
    def of(others: Iterable[Other]) -> Beside:
        """What is known of some streams."""
        listed = list(others)
        closing: Known = UNKNOWN
        for other in listed:
            closing = later(closing, other.closing)
        return Beside(
            numbers(0 if o.watermark is UNKNOWN else o.watermark + 1 for o in listed),
            flags(o.watermark is not UNKNOWN for o in listed),
            flags(o.idle for o in listed),
            all(o.ended for o in listed),
            closing,
        )

    def __len__(self) -> int:
        return len(self.number)

    def lowest(self, watermark: Known) -> Known:
        """The W of a query that has these streams and one more with this W."""
        if watermark is UNKNOWN or not self.known.all():
            return UNKNOWN
        lowest: int = min([watermark, *(number - 1 for number in self.number.tolist())])
        return lowest


ALONE = Beside()
"""There are none."""
