"""The lineage: which segments an epoch has, and which follow which.

Scaling seals segments and opens others over exactly the same keys, in a new epoch. So the open
segments of every epoch cover the key space exactly once, and a segment is read only after every
segment it follows has been read to its end.

>>> lineage = Lineage.start(2).scale(["1.e0"], [("1/2", "3/4"), ("3/4", 1)])
>>> [segment.name for segment in lineage.open_in(1)]
['0.e0', '2.e1', '3.e1']
>>> lineage.successors_of("1.e0"), lineage.predecessors_of("3.e1")
(('2.e1', '3.e1'), ('1.e0',))
>>> lineage.is_ancestor("1.e0", "3.e1"), lineage.is_ancestor("0.e0", "3.e1")
(True, False)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tidegate import errors
from tidegate.marks.segment import (
    Bound,
    KeyRange,
    Segment,
    SegmentId,
    equal_ranges,
    key_range,
    places,
)


class Lineage:
    """The segments of one stream over all epochs; a value: `scale` gives a new one.

    Building it costs O(n log n) in all its segments; every question after that is at most linear.
    """

    __slots__ = ("_after", "_before", "_open_in", "_parts", "_place", "epoch", "segments")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.segments: Mapping[str, Segment] = {
            segment.name: segment for segment in sorted(segments, key=lambda s: s.id)
        }
        self.epoch: int = max((s.id.epoch for s in self.segments.values()), default=0)
        self._before: dict[str, list[str]] = defaultdict(list)
        self._after: dict[str, list[str]] = defaultdict(list)
        self._parts: list[tuple[set[str], set[str]]] = []
        self._open_in: dict[int, tuple[Segment, ...]] = {}
        self._place = places(self.segments.values())
        self._settle()

    @staticmethod
    def start(ranges: int | Iterable[tuple[Bound, Bound]]) -> Lineage:
        """A stream's beginning: that many equal ranges, or these, which must cover the key space.

        >>> [segment.name for segment in Lineage.start(3).open_in(0)]
        ['0.e0', '1.e0', '2.e0']
        """
        given = equal_ranges(ranges) if isinstance(ranges, int) else ranges
        exact = sorted(key_range(low, high) for low, high in given)
        return Lineage(Segment(SegmentId(0, n), *keys) for n, keys in enumerate(exact))

    def scale(self, sealed: Iterable[str], opened: Iterable[tuple[Bound, Bound]]) -> Lineage:
        """Seal open segments and open these ranges, which must cover exactly the same keys.

        The new segments are numbered on, in key order.
        """
        closing = set(sealed)
        for name in sorted(closing):
            if not self.segment(name).is_open:
                raise errors.segment_not_open(name, (s.name for s in self.open_in(self.epoch)))
        epoch, first = self.epoch + 1, 1 + max(s.id.number for s in self.segments.values())
        kept = (
            replace(s, sealed_in=epoch) if s.name in closing else s for s in self.segments.values()
        )
        exact = sorted(key_range(low, high) for low, high in opened)
        if not closing and not exact:
            raise errors.ranges_do_not_cover(epoch, [], [])
        fresh = (Segment(SegmentId(epoch, first + n), *keys) for n, keys in enumerate(exact))
        return Lineage([*kept, *fresh])

    # ---- asking ----

    def segment(self, name: str) -> Segment:
        """The segment of that name; an unknown one is an error."""
        try:
            return self.segments[name]
        except KeyError:
            raise errors.unknown_segment(name, self.epoch) from None

    def open_in(self, epoch: int) -> tuple[Segment, ...]:
        """The segments that were open in an epoch, in key order: they cover the key space."""
        if epoch not in self._open_in:
            found = (
                s
                for s in self.segments.values()
                if s.id.epoch <= epoch and (s.sealed_in is None or s.sealed_in > epoch)
            )
            self._open_in[epoch] = tuple(sorted(found, key=lambda s: self._place[s.name]))
        return self._open_in[epoch]

    def successors_of(self, name: str) -> tuple[str, ...]:
        """The segments that took over its keys; none while it is open."""
        return tuple(self._after.get(self.segment(name).name, ()))

    def predecessors_of(self, name: str) -> tuple[str, ...]:
        """The segments whose keys it took over."""
        return tuple(self._before.get(self.segment(name).name, ()))

    def is_ancestor(self, name: str, of: str) -> bool:
        """Whether `name` must be read to its end before `of`."""
        return bool(self.followed([name], by=[of]))

    def ancestors_of(self, names: Iterable[str]) -> set[str]:
        """Every segment that must be read to its end before one of these."""
        return self._climb(names, down_to=0, seen=set())

    def followed(self, names: Collection[str], by: Collection[str]) -> set[str]:
        """Those of `names` that come before one of `by`."""
        if not names:
            return set()
        oldest = min(self.segment(name).id.epoch for name in names)
        return self._climb(by, down_to=oldest, seen=set()).intersection(names)

    def is_whole(self, names: Collection[str]) -> bool:
        """Whether these cover the key space, each key exactly once, and none follows another."""
        meeting = all(end == start for end, start in self._seams(names))
        return meeting and not self.followed(names, by=names)

    def complete(self, names: Collection[str]) -> set[str]:
        """Fill the gaps from the highest epoch among `names`, until the key space is whole.

        A segment that fills a gap replaces what it follows, which may open new gaps; each one comes
        and goes at most once. Without any names: the beginning of the stream. None of `names` may
        follow another.
        """
        if not names:
            return {segment.name for segment in self.open_in(0)}
        epochs = [self.segment(name).id.epoch for name in names]
        tiles = [segment.name for segment in self.open_in(max(epochs))]
        starts = [self._place[tile][0] for tile in tiles]
        oldest = min(epochs)
        kept, added, seen = set(names), set[str](), set[str]()
        gaps = [(end, start) for end, start in self._seams(names) if end < start]
        while gaps:
            low, high = gaps.pop()
            first = bisect_right(starts, low) - 1
            for tile in tiles[first : bisect_right(starts, high - 1)]:
                if tile not in added:
                    added.add(tile)
                    replaced = kept & self._climb([tile], down_to=oldest, seen=seen)
                    kept -= replaced
                    gaps.extend(self._place[name] for name in replaced)
        return kept | added

    def frontier(self, is_done: Callable[[str], bool]) -> list[str]:
        """The segments of the furthest whole cut, when only those that are done may be passed.

        Segments sealed in one step that share successors are passed together or not at all.
        """
        here = {segment.name for segment in self.open_in(0)}
        for sealed, opened in self._parts:
            if sealed <= here and all(is_done(name) for name in sealed):
                here -= sealed
                here |= opened
        return sorted(here, key=lambda name: self._place[name])

    # ---- as a value ----

    def to_json(self) -> list[list[str | int | None]]:
        """One row per segment."""
        return [segment.to_json() for segment in self.segments.values()]

    @staticmethod
    def from_json(value: Sequence[list[str | int | None]]) -> Lineage:
        """The inverse of `to_json`."""
        return Lineage(Segment.from_json(row) for row in value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lineage) and self.segments == other.segments

    def __hash__(self) -> int:
        return hash(tuple(self.segments.values()))

    def __repr__(self) -> str:
        return f"Lineage(epoch={self.epoch}, segments={len(self.segments)})"

    # ---- inside ----

    def _climb(self, names: Iterable[str], *, down_to: int, seen: set[str]) -> set[str]:
        """The ancestors of `names` from epoch `down_to` on that were not seen yet; now they are."""
        found: set[str] = set()
        pending = [self.segment(name).name for name in names]
        while pending:
            for name in self._before.get(pending.pop(), ()):
                if name not in seen and self.segments[name].id.epoch >= down_to:
                    seen.add(name)
                    found.add(name)
                    pending.append(name)
        return found

    def _seams(self, names: Iterable[str]) -> list[tuple[int, int]]:
        """Where, in key order, each range ends and the next begins, with both ends of the space."""
        ranges = sorted(self._place[self.segment(name).name] for name in names)
        last = self._place[self.open_in(0)[-1].name][1]
        ends = [0, *(end for _, end in ranges)]
        return list(zip(ends, [*(start for start, _ in ranges), last], strict=True))

    def _settle(self) -> None:
        """Check every epoch's change, and note who follows whom."""
        opened, sealed = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
        for name in sorted(self.segments, key=self._place.__getitem__):
            segment = self.segments[name]
            opened[segment.id.epoch].append(name)
            if segment.sealed_in is not None:
                sealed[segment.sealed_in].append(name)
        if self._covered(opened[0]) != [key_range(0, 1)]:
            raise errors.ranges_do_not_cover(0, [key_range(0, 1)], self._covered(opened[0]))
        for epoch in sorted((opened.keys() | sealed.keys()) - {0}):
            wanted, given = self._covered(sealed[epoch]), self._covered(opened[epoch])
            if wanted != given:
                raise errors.ranges_do_not_cover(epoch, wanted, given)
            self._link(sealed[epoch], opened[epoch])

    def _covered(self, names: Iterable[str]) -> list[KeyRange]:
        """The keys of segments in key order, as few ranges as possible; none may own one twice."""
        ranges: list[KeyRange] = []
        reached = -1
        for name in names:
            segment, (low, high) = self.segments[name], self._place[name]
            if low < reached:
                raise errors.key_ranges_overlap(name, segment.low, ranges[-1][1])
            start = ranges.pop()[0] if low == reached else segment.low
            ranges.append((start, segment.high))
            reached = high
        return ranges

    def _link(self, sealed: list[str], opened: list[str]) -> None:
        """One epoch's change, both sides in key order, divided where both have a bound."""
        i = j = 0
        new_part = True
        while i < len(sealed) and j < len(opened):
            old, new = sealed[i], opened[j]
            if new_part:
                self._parts.append((set(), set()))
            self._parts[-1][0].add(old)
            self._parts[-1][1].add(new)
            self._after[old].append(new)
            self._before[new].append(old)
            old_end, new_end = self._place[old][1], self._place[new][1]
            i += old_end <= new_end
            j += new_end <= old_end
            new_part = old_end == new_end
