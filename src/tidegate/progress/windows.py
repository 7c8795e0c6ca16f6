"""Windows: rows gathered by time, given out when their time is complete.

A window is `[start, end)`. It closes when the number reaches `end` (that is `W >= end - 1 us`), and
the row it gives out has the time `end - 1 us`. Windows close in the order of their ends. A row that
no open or coming window can use is lost: it leaves by the output `late`, and is counted.

>>> node = Aggregate(Tumbling(timedelta(microseconds=1000)), into=sum).build(Plan())
>>> node.on_data(Data(1, 100)), node.on_data(Data(2, 500))
([], [])
>>> closed, number, _ = node.on_watermark(1000)
>>> closed.message
Data(item=WindowRow(start=0, end=1000, value=3, key=None), time=999)
>>> number.message              # the next window to close, whatever still comes, ends at 2000
1999
>>> node.on_data(Data(4, 50))
[Emit(message=Data(item=4, time=50), output='late')]

What a window node says after a number N is the smallest time it may still give out: 1 us before the
smallest end that is not closed. Tumbling and sliding windows end on a grid, so that is the first
end after N. A session may end at any time after N, for a late row keeps one open until `t + gap`,
and so a session node says N itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from operator import itemgetter
from typing import Any, ClassVar, Final, TypeAlias

from tidegate import errors
from tidegate.eventtime.instants import ceil_to, floor_to, micros
from tidegate.eventtime.lateness import InSession, InWindows, LastUse, is_late
from tidegate.eventtime.watermark import UNKNOWN, Known, claim
from tidegate.progress.messages import Data, Ending, LogicalTime
from tidegate.progress.node import OUT, Emit, Emits, Node, NodeConfig, Plan

LATE: Final = "late"
"""The output for lost rows."""

Span: TypeAlias = tuple[LogicalTime, LogicalTime]
"""`[start, end)`."""


class Windows(ABC):
    """Which windows there are: a frozen value; what is open is kept elsewhere."""

    @property
    @abstractmethod
    def use(self) -> LastUse:
        """How long a row can be used: the one definition of lost."""

    @abstractmethod
    def spans(self, time: LogicalTime) -> Iterator[Span]:
        """The windows of a row at `time`, the earliest end first."""

    @abstractmethod
    def first_end_after(self, number: LogicalTime) -> LogicalTime:
        """The smallest end that a window still open, or to come, can have."""

    def joins(self, left: Span, right: Span) -> bool:
        """Whether two spans of one key are the same window."""
        return left == right


@dataclass(frozen=True)
class Sliding(Windows):
    """Windows of `size`, one every `slide`, aligned to the epoch.

    >>> list(Sliding(timedelta(microseconds=10), timedelta(microseconds=4)).spans(9))
    [(0, 10), (4, 14), (8, 18)]
    """

    size: timedelta
    slide: timedelta

    def __post_init__(self) -> None:
        for name, duration in (("size", self.size), ("slide", self.slide)):
            if duration <= timedelta(0):
                raise errors.not_a_positive_duration(name, duration)
        if self.slide > self.size:
            raise errors.slide_exceeds_size(self.slide, self.size)

    @property
    def use(self) -> LastUse:
        """A row can be used until its last window ends."""
        return InWindows(self.size, self.slide)

    def spans(self, time: LogicalTime) -> Iterator[Span]:
        """All windows with `start <= time < end`."""
        size, slide = micros(self.size), micros(self.slide)
        first = ceil_to(time - size + 1, slide)
        return ((start, start + size) for start in range(first, time + 1, slide))

    def first_end_after(self, number: LogicalTime) -> LogicalTime:
        """The next end on the grid: every such window holds times at or after `number`."""
        size, slide = micros(self.size), micros(self.slide)
        return floor_to(number - size, slide) + slide + size


@dataclass(frozen=True)
class Tumbling(Sliding):
    """Windows of `size`, one after the other, aligned to the epoch: they slide by their size."""

    slide: timedelta = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide", self.size)
        super().__post_init__()


@dataclass(frozen=True)
class Session(Windows):
    """Windows of rows that follow each other within less than `gap`; the end is the last + `gap`.

    A row exactly `gap` after the last one opens the next session: the session before it is complete
    at its end, like every window, and need not wait for a row at that very time.
    """

    gap: timedelta

    def __post_init__(self) -> None:
        if self.gap <= timedelta(0):
            raise errors.not_a_positive_duration("gap", self.gap)

    @property
    def use(self) -> LastUse:
        """A row keeps its session open for `gap`."""
        return InSession(self.gap)

    def spans(self, time: LogicalTime) -> Iterator[Span]:
        """What a row is by itself, before it meets others."""
        return iter([(time, time + micros(self.gap))])

    def first_end_after(self, number: LogicalTime) -> LogicalTime:
        """A late row that is not lost can end a session at any time past `number`."""
        return number + 1

    def joins(self, left: Span, right: Span) -> bool:
        """Whether two spans overlap; to touch is not to overlap."""
        return left[0] < right[1] and right[0] < left[1]


@dataclass(frozen=True)
class WindowRow:
    """What a window gives out."""

    start: LogicalTime
    end: LogicalTime
    value: Any
    key: Hashable = None


@dataclass(frozen=True)
class Aggregate(NodeConfig):
    """Gather rows by window, and by key when `by` gives one; `into` makes the value.

    `into` is handed the rows of a window in the order in which they came; by default it keeps them
    as a list. A late row counts in what is still open, like any other.
    """

    windows: Windows
    into: Callable[[list[Any]], Any] = list
    by: Callable[[Any], Hashable] | None = None
    outputs: ClassVar[tuple[str, ...]] = (OUT, LATE)

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs."""
        return _Aggregating(self)


@dataclass(eq=False)
class _Open:
    """A window that is still open: its span, and its rows with their place in the arrival order."""

    span: Span
    rows: list[tuple[int, Any]]


class _Aggregating:
    def __init__(self, config: Aggregate) -> None:
        self._config = config
        self._windows = config.windows
        self._number: Known = UNKNOWN
        self._open: dict[Hashable, list[_Open]] = {}
        self._counts = {"rows": 0, "late": 0, "lost": 0, "dropped": 0}

    def on_data(self, row: Data[Any]) -> Emits:
        self._counts["rows"] += 1
        if is_late(row.time, claim(self._number)):
            self._counts["late"] += 1
        if self._windows.use.is_lost(row.time, closed=self._number):
            self._counts["lost"] += 1
            return [Emit(row, LATE)]
        key = None if self._config.by is None else self._config.by(row.item)
        for span in self._windows.spans(row.time):
            if self._number is UNKNOWN or span[1] > self._number:
                self._put(key, span, (self._counts["rows"], row.item))
        return []

    def on_watermark(self, number: LogicalTime) -> Emits:
        self._number = number
        closed = self._close(lambda window: window.span[1] <= number)
        frontier = self._windows.first_end_after(number) - 1
        return [*closed, Emit(frontier), Emit(number, LATE)]

    def on_end(self, ending: Ending) -> Emits:
        if ending is Ending.GRACEFUL:
            return self._close(lambda window: True)
        self._counts["dropped"] = len(
            {place for mine in self._open.values() for window in mine for place, _ in window.rows}
        )
        self._open.clear()
        return []

    def counts(self) -> dict[str, int]:
        """Rows, the late ones of them, those lost, and those dropped by a quick end."""
        return dict(self._counts)

    def _put(self, key: Hashable, span: Span, row: tuple[int, Any]) -> None:
        mine = self._open.setdefault(key, [])
        joined = [window for window in mine if self._windows.joins(window.span, span)]
        if not joined:
            mine.append(_Open(span, [row]))
            return
        first, *others = joined
        if others:  # the row bridges sessions: they become one, in the order of arrival
            held = (row for window in joined for row in window.rows)
            first.rows = sorted(held, key=itemgetter(0))
            mine[:] = [window for window in mine if window not in others]
        first.rows.append(row)
        spans = [span, *(window.span for window in joined)]
        first.span = min(start for start, _ in spans), max(end for _, end in spans)

    def _close(self, due: Callable[[_Open], bool]) -> list[Emit]:
        closing: list[tuple[_Open, Hashable]] = []
        for key, mine in list(self._open.items()):
            closing.extend((window, key) for window in mine if due(window))
            still = [window for window in mine if not due(window)]
            if still:
                self._open[key] = still
            else:
                del self._open[key]
        # By end, then start, then the first arrival: keys need not be comparable.
        closing.sort(key=lambda pair: (*reversed(pair[0].span), pair[0].rows[0][0]))
        return [Emit(self._result(window, key)) for window, key in closing]

    def _result(self, window: _Open, key: Hashable) -> Data[WindowRow]:
        start, end = window.span
        value = self._config.into([item for _, item in window.rows])
        return Data(WindowRow(start, end, value, key), end - 1)
