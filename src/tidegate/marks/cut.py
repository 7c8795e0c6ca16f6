"""The cut: one offset per partition, a place in the whole log.

Cuts are partially ordered. The join of two takes the larger offset per partition, and successors
replace their predecessors; it is the least cut at or after both. The meet is the greatest at or
before both. A partition that a cut leaves out is not reached yet, unless one that follows it is in.

>>> from tidegate.marks.lineage import Lineage
>>> lineage = Lineage.start(2).scale(["1.e0"], [("1/2", "3/4"), ("3/4", 1)])
>>> early, split = Cut({"0.e0": 7, "1.e0": 9}), Cut({"0.e0": 5, "2.e1": 1, "3.e1": 0})
>>> early.join(split, lineage)
Cut(0.e0=7, 2.e1=1, 3.e1=0)
>>> early.meet(split, lineage)
Cut(0.e0=5, 1.e0=9)
>>> early.less_equal(split, lineage), early.join(split, lineage).is_whole(lineage)
(False, True)
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView

from tidegate import errors
from tidegate.marks.ancestry import Ancestry


class Cut(Mapping[str, int]):
    """An immutable mapping from partition to offset.

    What a cut means depends on who follows whom, so that comparing and joining take the lineage:
    `FLAT` where partitions stand side by side.
    """

    __slots__ = ("_offsets",)

    def __init__(self, offsets: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        self._offsets = dict(offsets)
        if self._offsets and min(self._offsets.values()) < 0:
            raise errors.negative_offset(*next(pair for pair in self.items() if pair[1] < 0))

    # ---- a mapping; the views are the dictionary's own, for speed ----

    def __getitem__(self, partition: str) -> int:
        return self._offsets[partition]

    def __contains__(self, partition: object) -> bool:
        return partition in self._offsets

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def keys(self) -> KeysView[str]:
        """The partitions."""
        return self._offsets.keys()

    def items(self) -> ItemsView[str, int]:
        """Partitions with their offsets."""
        return self._offsets.items()

    def values(self) -> ValuesView[int]:
        """The offsets."""
        return self._offsets.values()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cut) and self._offsets == other._offsets

    def __hash__(self) -> int:
        return hash(frozenset(self._offsets.items()))

    def __repr__(self) -> str:
        return f"Cut({', '.join(f'{name}={offset}' for name, offset in self._offsets.items())})"

    # ---- the order ----

    def less_equal(self, other: Cut, lineage: Ancestry) -> bool:
        """Whether every row before this cut lies before the other."""
        apart = [
            name for name, offset in self._offsets.items() if offset > other._offsets.get(name, -1)
        ]
        return len(lineage.followed(apart, by=other.keys())) == len(apart)

    def less_than(self, other: Cut, lineage: Ancestry) -> bool:
        """Whether the other lies after this one."""
        return self.less_equal(other, lineage) and not other.less_equal(self, lineage)

    def join(self, other: Cut, lineage: Ancestry) -> Cut:
        """The least cut at or after both."""
        return join_all((self, other), lineage)

    def meet(self, other: Cut, lineage: Ancestry) -> Cut:
        """The greatest cut at or before both.

        Whole cuts always have one. Two partial ones have none, and that is an error, when they lie
        in different successors of a segment: before both lies its end, which only the log knows.
        """
        mine, theirs = self._offsets, other._offsets
        behind_mine = lineage.followed(theirs.keys(), by=mine.keys())
        behind_theirs = lineage.followed(mine.keys(), by=theirs.keys())
        common = {
            name: min(offset, theirs.get(name, offset))
            for name, offset in mine.items()
            if name in theirs or name in behind_theirs
        }
        common.update((name, theirs[name]) for name in behind_mine)
        passed = lineage.ancestors_of(mine) & lineage.ancestors_of(theirs)
        undecided = passed - lineage.ancestors_of(common)
        if undecided:
            raise errors.cuts_do_not_meet(undecided)
        return Cut(common)

    # ---- over the key space ----

    def reduced(self, lineage: Ancestry) -> Cut:
        """Without the partitions that another one in the cut follows: they are passed."""
        return join_all((self,), lineage)

    def is_whole(self, lineage: Ancestry) -> bool:
        """Whether it covers the key space, each key exactly once."""
        return lineage.is_whole(self.keys())

    def completed(self, lineage: Ancestry) -> Cut:
        """Gaps filled with partitions at offset 0, until the key space is whole.

        >>> from tidegate.marks.lineage import Lineage
        >>> lineage = Lineage.start(3).scale(["0.e0", "1.e0", "2.e0"], [(0, "1/2"), ("1/2", 1)])
        >>> Cut({"3.e1": 100, "2.e0": 400}).completed(lineage)    # 4.e1 follows 2.e0
        Cut(3.e1=100, 4.e1=0)
        """
        names = lineage.complete(self.keys())
        kept = [(name, offset) for name, offset in self.items() if name in names]
        return Cut([*kept, *((name, 0) for name in sorted(names - self.keys()))])

    # ---- as a value ----

    def to_json(self) -> dict[str, int]:
        """A plain mapping."""
        return dict(self._offsets)

    @staticmethod
    def from_json(value: Mapping[str, int]) -> Cut:
        """The inverse of `to_json`."""
        return Cut(value)


def join_all(cuts: Iterable[Cut], lineage: Ancestry) -> Cut:
    """The least cut at or after all of them, in one pass; of none: the empty one."""
    highest: dict[str, int] = {}
    for cut in cuts:
        for name, offset in cut.items():
            if offset > highest.get(name, -1):
                highest[name] = offset
    for name in lineage.followed(highest.keys(), by=highest.keys()):
        del highest[name]
    return Cut(highest)
