"""The time index: from a time to a cut, and from a cut to a time.

`cut_at(t)` is, per partition, the start of the first span whose running maximum is at or after t:
every row at or after t lies behind it. `time_at(cut)` is the number of the last mark that the cut
has passed. Both are binary searches.

>>> index = TimeIndex()
>>> index.append("0", 0, 10, latest=50)
>>> index.append("0", 10, 20, latest=40)          # all of it lies behind the maximum
>>> index.append("0", 20, 30, latest=90)
>>> index.cut_at(50), index.cut_at(51), index.cut_at(91)
(Cut(0=0), Cut(0=20), Cut(0=30))
>>> from tidegate.marks.ancestry import FLAT
>>> time_at(Cut({"0": 20}), [Mark(45, 60, Cut({"0": 12}))], FLAT)
45
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.ancestry import Ancestry
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.marks.mark import Mark


class _Rises:
    """Where the running maximum of one partition rises; other spans answer no question."""

    __slots__ = ("end", "maxima", "starts")

    def __init__(self, start: int) -> None:
        self.maxima = array("q")
        self.starts = array("q")
        self.end = start

    def append(self, start: int, end: int, latest: Known) -> None:
        if latest is not UNKNOWN and (not self.maxima or latest > self.maxima[-1]):
            self.maxima.append(latest)
            self.starts.append(start)
        self.end = end

    def offset_at(self, time: Instant) -> int:
        place = bisect_left(self.maxima, time)
        return self.starts[place] if place < len(self.starts) else self.end


class TimeIndex:
    """The spans of all partitions, by time; O(log n) per question and partition."""

    __slots__ = ("_partitions",)

    def __init__(self) -> None:
        self._partitions: dict[str, _Rises] = {}

    def add(self, partition: str, start: int = 0) -> None:
        """A partition whose first offset is `start`; it may have no rows yet."""
        self._partitions.setdefault(partition, _Rises(start))

    def append(self, partition: str, start: int, end: int, latest: Known) -> None:
        """The next span of a partition; `latest` is the largest time of its good rows, if any."""
        self.add(partition, start)
        rises = self._partitions[partition]
        if not rises.end <= start <= end:
            raise errors.span_out_of_order(partition, start, end, rises.end)
        rises.append(start, end, latest)

    def cut_at(self, time: Instant, lineage: Lineage | None = None) -> Cut:
        """The cut that has every row at or after `time` behind it.

        With a lineage it is whole: successors take the place of segments that end before `time`,
        where all that share them do. Without one it has every partition.
        """
        if lineage is None:
            return Cut((name, rises.offset_at(time)) for name, rises in self._partitions.items())
        offsets = {name: 0 for name in lineage.segments}
        ends = dict(offsets)
        for name, rises in self._partitions.items():
            offsets[lineage.segment(name).name] = rises.offset_at(time)
            ends[name] = rises.end
        return Cut(
            (name, offsets[name])
            for name in lineage.frontier(lambda name: offsets[name] == ends[name])
        )


def passed(cut: Cut, marks: Sequence[Mark], lineage: Ancestry) -> int:
    """How many of the marks, in their order, have a cut that lies at or before this one.

    Cuts of marks never go back, so those that are passed come first.
    """
    return bisect_left(marks, True, key=lambda mark: not mark.cut.less_equal(cut, lineage))


def time_at(cut: Cut, marks: Sequence[Mark], lineage: Ancestry) -> Known:
    """The lower number of the last mark, in their order, whose cut lies at or before this one."""
    done = passed(cut, marks, lineage)
    return marks[done - 1].lower if done else UNKNOWN
