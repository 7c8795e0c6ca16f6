"""Where a case's convention differs from ours: all of it, in one place.

The cases come from several systems. Most of what they say we say too; where they only write it
differently, this table translates, and nothing else in the runner does.

| in a case | with us |
|---|---|
| plain integers, milliseconds or seconds | the same integers, taken as microseconds |
| MIN, as a lane's value | UNKNOWN |
| null, as a watermark or a frontier | UNKNOWN; null as a result: None, nothing moved |
| 0, as a frontier before its first advance | UNKNOWN; less_than and less_equal are true then |
| a watermark that begins at 0 (ordered release) | `OrderedRelease(watermark=0)` |
| a rejected note: INVALID_TIME, INVALID_POSITION | an error with the code below |
| `error:...` | an error with the code below |
| segments 0 to 3 of the reader cases | 0.e0, 1.e0, 2.e1 (follows the first), 3.e2 (the second) |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known

CODES = {
    "error:exists": "partition-exists",
    "error:unknown": "unknown-partition",
    "error:unknown_partition": "unknown-partition",
    "error:unknown_source": "unknown-source",
    "error:out_of_range": "partition-out-of-range",
    "error:conflict": "writer-mark-changed",
    "INVALID_TIME": "time-went-back",
    "INVALID_POSITION": "position-went-back",
}

START_OF_RELEASE = 0
"""Where the watermark of the ordered release cases begins."""


def duration(value: int) -> timedelta:
    """A case's duration: its unit is our microsecond."""
    return timedelta(microseconds=value)


def known(value: Any) -> Known:
    """A case's watermark as ours."""
    if value is None or value == "MIN":
        return UNKNOWN
    assert isinstance(value, int)
    return value


def frontier(value: int) -> Known:
    """A case's frontier as ours, before anything was advanced."""
    return UNKNOWN if value == 0 else value


def plain(value: Any) -> Any:
    """What one of our calls returned, as a case writes it: UNKNOWN and IDLE are null."""
    return None if value is UNKNOWN or value is IDLE else value


def outcome(act: Callable[[], Any]) -> Any:
    """What a call returns, or the code of its error."""
    try:
        return act()
    except TidegateError as error:
        return error.code


def expected(value: Any) -> Any:
    """A case's expected return, with its errors as our codes."""
    return CODES.get(value, value) if isinstance(value, str) else value
