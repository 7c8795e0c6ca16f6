"""The mark: what all writers of a stream promise together, and from where on it holds.

Every row before `lower`, of the writers in the mark, lies before its cut; none of them has noted
more than `upper`. Neither the numbers nor the cut ever go back, and the cut covers the key space
exactly once.

>>> from tidegate.marks.lineage import Lineage
>>> lineage = Lineage.start(2)
>>> west = WriterMark("west", 100, Cut({"0.e0": 7}))
>>> east = WriterMark("east", 105, Cut({"0.e0": 3}))
>>> first = combined([west, east], None, lineage)
>>> first.lower, first.upper, first.cut
(100, 105, Cut(0.e0=7, 1.e0=0))
>>> combined([east], first, lineage).cut           # superimposed on the last one
Cut(0.e0=7, 1.e0=0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks.ancestry import Ancestry
from tidegate.marks.cut import Cut, join_all
from tidegate.marks.writer_mark import WriterMark


@dataclass(frozen=True)
class Mark:
    """(lower number, upper number, cut, writers)."""

    lower: Instant
    upper: Instant
    cut: Cut
    writers: frozenset[str] = field(default_factory=frozenset)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "cut": self.cut.to_json(),
            "writers": sorted(self.writers),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Mark:
        """The inverse of `to_json`."""
        return Mark(
            value["lower"],
            value["upper"],
            Cut.from_json(value["cut"]),
            frozenset(value["writers"]),
        )


def combined(
    generation: Iterable[WriterMark],
    last: Mark | None,
    lineage: Ancestry,
    *,
    parting: Cut | None = None,
) -> Mark:
    """The mark of a generation: writers that have all noted a time past the last mark.

    Its cut is the least upper bound of their positions, with gaps filled from the highest epoch at
    offset 0, superimposed on the last cut. `parting` is where writers stood that have left since
    then: their last rows lie before the cut too.
    """
    members = list(generation)
    times = [member.time for member in members if member.time is not UNKNOWN]
    lower, upper = min(times), max(times)
    positions = [member.position for member in members]
    cut = join_all(positions if parting is None else [*positions, parting], lineage)
    cut = cut.completed(lineage)
    if last is not None:
        cut = cut.join(last.cut, lineage)
        # A fast writer may have been removed by hand; what it noted stands all the same.
        lower, upper = max(lower, last.lower), max(upper, last.upper)
    return Mark(lower, upper, cut, frozenset(member.writer for member in members))
