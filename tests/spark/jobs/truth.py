"""What a job in windows must give, told naively: every row is looked at, every time.

A row is put by hand into each of its windows that can still change: those that end after what is
closed when it comes. A window is given out when W has passed its end. Nothing here knows of spans,
cuts, slices or states.

>>> truth = Truth(size=10)
>>> truth.see([Row("p", 3), Row("p", 12)])
>>> truth.see([Row("p", 4), Row("p", 25)])     # 4 lies below 10, which has been given out
>>> [(window, [row.t for row in rows]) for window, rows in truth.given]
[((0, 10), [3]), ((10, 20), [12])]
>>> truth.late["orders", "p"], truth.lost["orders", "p"]
(1, 1)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Window = tuple[int, int]


class Row(NamedTuple):
    """A row: where it lies, and its time in microseconds."""

    partition: str
    t: int
    k: str = ""
    v: int = 0
    stream: str = "orders"


@dataclass
class Truth:
    """A job as it ought to be. Times are microseconds, or whatever the test counts in."""

    size: int
    slide: int = 0
    tolerance: int = 0
    allowed: int = 0
    late_policy: str = "route"
    streams: Sequence[str] = ("orders",)
    start: int | None = None
    """The first A of a query that starts at a time."""
    rows: dict[Window, list[Row]] = field(default_factory=dict)
    highest: dict[tuple[str, str], int] = field(default_factory=dict)
    w: int | None = None
    a: int | None = None
    releases: int = 0
    given: list[tuple[Window, list[Row]]] = field(default_factory=list)
    late: Counter[tuple[str, str]] = field(default_factory=Counter)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    lost_rows: list[Row] = field(default_factory=list)
    waiting: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slide = self.slide or self.size
        self.grid = math.gcd(self.size, self.slide)
        self.a = self.start

    def see(
        self,
        new: Iterable[Row] = (),
        *,
        numbers: Mapping[str, int] | None = None,
        idle: Iterable[tuple[str, str]] = (),
        ended: bool = False,
    ) -> None:
        """One batch: rows that came, numbers of streams that are read by marks, who is idle."""
        for row in new:
            self._take(row)
        number = self._number(numbers or {}, set(idle))
        if number is not None:
            self.w = number - 1 if self.w is None else max(self.w, number - 1)
        if ended:
            self._release(max((end for _, end in self.rows), default=None))
        elif self.w is not None:
            allowed = 0 if self.late_policy == "update" else self.allowed
            self._release((self.w + 1 - allowed) // self.grid * self.grid)

    def windows_of(self, t: int) -> list[Window]:
        """All windows that hold a time, found by trying."""
        first = (t - self.size) // self.slide * self.slide
        starts = range(first, t + 1, self.slide)
        return [(start, start + self.size) for start in starts if start <= t < start + self.size]

    def results(self, of: Callable[[Window, list[Row]], Iterable[Any]]) -> Counter[Any]:
        """What was given out, by a query that is told as a function of a window's rows."""
        return Counter(made for window, rows in self.given for made in of(window, rows))

    def view(self, of: Callable[[Window, list[Row]], Iterable[Any]]) -> Counter[Any]:
        """What holds after the last correction: the same over the rows as they are now."""
        closed = [
            window for window in sorted(self.rows) if self.a is not None and window[1] <= self.a
        ]
        return Counter(made for window in closed for made in of(window, self.rows[window]))

    # ---- inside ----

    def _take(self, row: Row) -> None:
        place = (row.stream, row.partition)
        self.highest[place] = max(self.highest.get(place, row.t), row.t)
        if self.start is not None and row.t < self.start:
            return
        closed = self.a
        if closed is not None and self.late_policy == "update":
            closed -= self.allowed
        self.late[place] += self.w is not None and row.t <= self.w
        windows = self.windows_of(row.t)
        if closed is not None and max(end for _, end in windows) <= closed:
            if self.late_policy == "next":
                self.waiting.append(row)
            else:
                self.lost[place] += 1
                self.lost_rows.append(row)
            return
        for window in windows:
            begun = self.start is None or window[0] >= self.start
            if begun and (closed is None or window[1] > closed):
                self.rows.setdefault(window, []).append(row)

    def _number(self, numbers: Mapping[str, int], idle: set[tuple[str, str]]) -> int | None:
        found = [numbers[stream] for stream in self.streams if stream in numbers]
        places = {
            place: top - self.tolerance
            for place, top in self.highest.items()
            if place[0] not in numbers
        }
        found += [number for place, number in places.items() if place not in idle]
        return min(found) if found else max(places.values(), default=None)

    def _release(self, b: int | None) -> None:
        if b is None or (self.a is not None and b <= self.a):
            return
        for row in self.waiting:
            assert self.a is not None
            self.rows.setdefault((self.a, self.a + self.size), []).append(row)
        self.waiting = []
        for window in sorted(self.rows):
            if (self.a is None or window[1] > self.a) and window[1] <= b:
                self.given.append((window, list(self.rows[window])))
        self.a = b
        self.releases += 1
