"""The reader's time window: between which two numbers a place in the log lies.

`lower` is the last mark the position has passed: no row before it, of the writers in that mark, is
still to come. `upper` is the first mark that lies wholly ahead: whatever was noted before any row
that has been read is at most that. Either may be None: no mark passed yet, none ahead yet.

>>> from tidegate.marks.ancestry import FLAT
>>> marks = [Mark(10, 19, Cut({"0": 1, "1": 1})), Mark(20, 29, Cut({"0": 3, "1": 3}))]
>>> time_window(Cut({"0": 1, "1": 2}), marks, FLAT)
TimeWindow(lower=10, upper=29)
>>> time_window(Cut({"0": 0, "1": 5}), marks, FLAT)          # astride of both
TimeWindow(lower=None, upper=None)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from tidegate.eventtime.instants import Instant
from tidegate.marks.ancestry import Ancestry
from tidegate.marks.cut import Cut
from tidegate.marks.mark import Mark


class Side(IntEnum):
    """On which side of a cut a position lies."""

    BEFORE = -1
    ASTRIDE = 0
    PAST = 1


class TimeWindow(NamedTuple):
    """Two numbers around a position."""

    lower: Instant | None
    upper: Instant | None


def side_of(position: Cut, cut: Cut, lineage: Ancestry) -> Side:
    """On which side of `cut` a position lies: at it is past it.

    Only what the two have to do with each other counts: a reader that owns some of the segments is
    compared on those.

    >>> from tidegate.marks.ancestry import FLAT
    >>> side_of(Cut({"0": 1}), Cut({"0": 1, "1": 9}), FLAT).name
    'PAST'
    """
    shared = position.keys() & cut.keys()
    if any(position[name] < cut[name] for name in shared) or lineage.followed(
        position.keys() - shared, by=cut.keys()
    ):
        ahead = any(position[name] > cut[name] for name in shared) or lineage.followed(
            cut.keys() - shared, by=position.keys()
        )
        return Side.ASTRIDE if ahead else Side.BEFORE
    return Side.PAST


def time_window(position: Cut, marks: Sequence[Mark], lineage: Ancestry) -> TimeWindow:
    """The window at a position, from the marks in their order.

    Cuts of marks never go back, so along them the position is first past, then astride, then
    before: two binary searches. A reader without segments has no window.
    """
    if not position:
        return TimeWindow(None, None)
    done = _first(marks, position, lineage, below=Side.PAST)
    ahead = _first(marks, position, lineage, below=Side.ASTRIDE)
    return TimeWindow(
        lower=marks[done - 1].lower if done else None,
        upper=marks[ahead].upper if ahead < len(marks) else None,
    )


def _first(marks: Sequence[Mark], position: Cut, lineage: Ancestry, *, below: Side) -> int:
    """The place of the first mark to which the position is on a side below this one."""
    return bisect_left(marks, True, key=lambda mark: side_of(position, mark.cut, lineage) < below)
