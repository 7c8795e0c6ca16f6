"""What travels along an edge of the graph: rows with their time, watermarks, and one end.

A row carries its event time through every node. A watermark message *is* the value of
`tidegate.eventtime.watermark`: a number, UNKNOWN or IDLE. The number is an N: "nothing before N is
still to come", rows equal to N may be. So a window `[start, end)` closes when the number reaches
`end`, which is the same as `W >= end - 1 us` for the claim `W = N - 1 us`.

>>> messages: list[StreamMessage[str]] = [Data("tea", time=7), 10, IDLE]
>>> [message.item if isinstance(message, Data) else message for message in messages]
['tea', 10, IDLE]

The words that are no numbers: IDLE says "do not wait for me", UNKNOWN takes that back ("wait for me
again; I claim nothing new"). The end is a signal of its own, not a very large time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Watermark

__all__ = [
    "IDLE",
    "UNKNOWN",
    "Data",
    "Ending",
    "LogicalTime",
    "StreamMessage",
    "combined_ending",
]

T = TypeVar("T")

LogicalTime: TypeAlias = Instant
"""The time by which a graph orders its rows: event time, or the clock at arrival, as planned."""


@dataclass(frozen=True, slots=True)
class Data(Generic[T]):
    """A row and the time it carries."""

    item: T
    time: LogicalTime


StreamMessage: TypeAlias = Data[T] | Watermark
"""A row or a watermark: told apart by `isinstance(message, Data)`."""


class Ending(Enum):
    """How a stream ends."""

    GRACEFUL = "graceful"
    """Everything has come: what is open is flushed, in order."""

    QUICK = "quick"
    """Stop now: what is open is dropped and counted, nothing is flushed, no frontier moves."""

    def __repr__(self) -> str:
        return self.name


def combined_ending(endings: Iterable[Ending | None]) -> Ending | None:
    """The end of several streams: none while one goes on, graceful only if all were.

    A window that has lost one of its streams to a quick end is not whole; to flush it would pass
    off a part as the whole.

    >>> combined_ending([Ending.GRACEFUL, None]), combined_ending([Ending.GRACEFUL, Ending.QUICK])
    (None, QUICK)
    """
    seen = set(endings)
    if not seen or None in seen:
        return None
    return Ending.QUICK if Ending.QUICK in seen else Ending.GRACEFUL
