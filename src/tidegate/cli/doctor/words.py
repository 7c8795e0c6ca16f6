"""Figures in words: shares, durations and counts, as the doctor says them."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from tidegate.eventtime.instants import format_duration


def percent(share: float) -> str:
    """A share for people; one that is not none is never shown as none.

    >>> percent(0.5), percent(0.00001), percent(0), percent(0.99999)
    ('50.0%', 'under 0.1%', '0%', 'over 99.9%')
    """
    if share == 0 or share == 1:
        return f"{share:.0%}"
    if share < 0.001:
        return "under 0.1%"
    return "over 99.9%" if 0.999 < share < 1 else f"{share:.1%}"


def shown(duration: timedelta) -> str:
    """A duration for people: its two largest parts, rounded up below them.

    >>> shown(timedelta(hours=2, minutes=10, seconds=3)), shown(timedelta(seconds=10))
    ('2h 11m', '10s')
    >>> shown(timedelta(milliseconds=240_001)), shown(timedelta(milliseconds=1500))
    ('4m 1s', '1s 500ms')
    """
    units = [timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)]
    units.append(timedelta(milliseconds=1))
    for unit, smaller in pairwise(units):
        if duration >= unit:
            # A delay that is rounded down would not be enough.
            whole = -(-duration // smaller) * smaller
            parts = [whole // unit * unit, whole % unit]
            return " ".join(format_duration(part) for part in parts if part)
    return format_duration(duration)


def counted(count: int, one: str, several: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "batch", "batches")
    ('1 row', '2,000 rows', '0 batches')
    """
    return f"1 {one}" if count == 1 else f"{count:,} {several or one + 's'}"
