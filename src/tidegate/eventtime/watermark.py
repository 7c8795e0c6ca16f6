"""What can be known of time: an instant, or one of two words that are no numbers.

A watermark is UNKNOWN (nothing is known yet), IDLE (no claim, and nobody need wait for one) or an
instant. The end of a bounded input is none of these: it is a signal beside the watermark, not a
very large time.

>>> wm = Monotone()
>>> wm.advance(5), wm.value
(True, 5)
>>> wm.advance(3), wm.value        # time never goes back
(False, 5)
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from tidegate.eventtime.instants import Instant


class Unknown(Enum):
    """The type of UNKNOWN."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class Idle(Enum):
    """The type of IDLE."""

    IDLE = "idle"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


UNKNOWN: Final = Unknown.UNKNOWN
IDLE: Final = Idle.IDLE

Watermark: TypeAlias = Instant | Unknown | Idle
Known: TypeAlias = Instant | Unknown
"""What a combined watermark or a frontier can be: an instant, once there is one."""


def later(left: Known, right: Known) -> Known:
    """The later of two; UNKNOWN lies before every instant.

    >>> later(UNKNOWN, -5), later(3, 2)
    (-5, 3)
    """
    if left is UNKNOWN:
        return right
    if right is UNKNOWN:
        return left
    return max(left, right)


def claim(number: Known) -> Known:
    """W of a number: nothing before N is to come, so all at or before N - 1 us has been seen.

    >>> claim(5), claim(UNKNOWN)
    (4, UNKNOWN)
    """
    return UNKNOWN if number is UNKNOWN else number - 1


def to_json(value: Watermark) -> int | str:
    """An instant as a number, a word as a word."""
    return value if isinstance(value, int) else value.value


def from_json(value: int | str) -> Watermark:
    """The inverse of `to_json`.

    >>> from_json(to_json(UNKNOWN)), from_json(to_json(IDLE)), from_json(to_json(7))
    (UNKNOWN, IDLE, 7)
    """
    if isinstance(value, int):
        return value
    return UNKNOWN if value == UNKNOWN.value else Idle(value)


class Monotone:
    """A watermark that can only advance: the one variable in which time is kept."""

    __slots__ = ("_value",)

    def __init__(self, value: Known = UNKNOWN) -> None:
        self._value: Known = value

    @property
    def value(self) -> Known:
        """Where it stands."""
        return self._value

    def advance(self, to: Known) -> bool:
        """Advance to `to` if that is later; return whether it moved."""
        if to is UNKNOWN or (self._value is not UNKNOWN and to <= self._value):
            return False
        self._value = to
        return True

    def __repr__(self) -> str:
        return f"Monotone({self._value!r})"
