"""Instants: event time as integer microseconds since the epoch, UTC.

Instants are plain integers: totally ordered, exact, and negative before 1970. Durations are
`timedelta`. Everything that turns one notation into another, or rounds, stands here and nowhere
else.

>>> parse_instant("2026-01-31T12:00:00.5+01:00")
1769857200500000
>>> format_instant(1769857200500000)
'2026-01-31T11:00:00.500Z'
>>> floor_to_millis(-1)          # rounds down, also before 1970
-1
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from tidegate import errors

Instant: TypeAlias = int

# Two bits of an int64 are kept free, so that the merge can pack "unknown", "idle" and "absent"
# around the instants.
LIMIT: Final = 1 << 61

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ISO_LIKE: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")

_UNITS: Final[dict[str, timedelta]] = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_LONG_UNITS: Final[dict[str, str]] = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "sec": "s",
    "minute": "m",
    "min": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def checked(instant: Instant) -> Instant:
    """The instant itself, or an error when it is beyond what we can order and pack."""
    if -LIMIT < instant < LIMIT:
        return instant
    raise errors.instant_out_of_range(instant)


def parse_instant(text: str) -> Instant:
    """Read an ISO 8601 date and time; without a zone it is UTC.

    >>> parse_instant("1969-12-31T23:59:59.999999"), parse_instant("1970-01-01")
    (-1, 0)
    """
    stripped = text.strip()
    if not _ISO_LIKE.match(stripped):
        raise errors.instant_not_parsed(text)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise errors.instant_not_parsed(text) from None
    return from_datetime(moment)


def format_instant(instant: Instant) -> str:
    """Print as ISO 8601 in UTC, with as few digits as tell the instant exactly.

    >>> format_instant(0), format_instant(-1), format_instant(10**18)
    ('1970-01-01T00:00:00Z', '1969-12-31T23:59:59.999999Z', '1000000000000000000us')
    """
    try:
        moment = to_datetime(instant)
    except OverflowError:
        return f"{instant}us"
    digits = "microseconds" if instant % 1000 else "milliseconds" if instant % 10**6 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def from_datetime(moment: datetime) -> Instant:
    """The instant of a datetime; a naive one is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def to_datetime(instant: Instant) -> datetime:
    """The datetime in UTC; OverflowError beyond the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=instant)


def micros(duration: timedelta) -> int:
    """A duration in whole microseconds.

    >>> micros(timedelta(seconds=1.5))
    1500000
    """
    return duration // _MICROSECOND


def parse_duration(text: str) -> timedelta:
    """Read `500ms`, `5s`, `1.5 h`, `5 minutes`; an unknown unit is an error, never a guess.

    >>> parse_duration("500ms"), parse_duration("2 weeks").days
    (datetime.timedelta(microseconds=500000), 14)
    """
    found = _DURATION.fullmatch(text)
    if found:
        number, unit = found.groups()
        short = unit.lower()
        short = _LONG_UNITS.get(short.removesuffix("s"), short)
        if short in _UNITS:
            try:
                return (float(number) if "." in number else int(number)) * _UNITS[short]
            except (OverflowError, ValueError):  # longer than a timedelta can be
                raise errors.duration_not_parsed(text, _UNITS) from None
    raise errors.duration_not_parsed(text, _UNITS)


def format_duration(duration: timedelta) -> str:
    """Print a duration in the largest unit that tells it exactly.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(milliseconds=1500))
    ('90m', '1500ms')
    """
    total = micros(duration)
    for unit in reversed(_UNITS):
        length = micros(_UNITS[unit])
        if total and total % length == 0:
            return f"{total // length}{unit}"
    return "0s"


def floor_to_millis(instant: Instant) -> int:
    """Microseconds to milliseconds, rounded down: the only place where precision is given up."""
    return instant // 1000


def floor_to(instant: Instant, grid: int) -> Instant:
    """The last point of the grid at or before the instant.

    >>> floor_to(25, 10), floor_to(-1, 10)
    (20, -10)
    """
    return instant // grid * grid


def ceil_to(instant: Instant, grid: int) -> Instant:
    """The first point of the grid at or after the instant."""
    return -(-instant // grid) * grid
