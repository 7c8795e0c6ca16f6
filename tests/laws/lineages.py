"""Random histories of a stream's segments, and what they mean, told naively."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from tidegate.marks import Cut, Lineage, Segment

END = 100
"""Beyond every offset that is drawn: a segment that is read to its end."""


@st.composite
def scaled(draw: st.DrawFn, lineage: Lineage) -> Lineage:
    """One scale: a run of neighbours is sealed, and its keys are divided anew."""
    segments = lineage.open_in(lineage.epoch)
    first = draw(st.integers(0, len(segments) - 1))
    last = draw(st.integers(first, min(first + 2, len(segments) - 1)))
    low, high = segments[first].low, segments[last].high
    inner = draw(st.sets(st.integers(1, 5), max_size=2))
    bounds = [low, *(low + (high - low) * Fraction(n, 6) for n in sorted(inner)), high]
    sealed = [segment.name for segment in segments[first : last + 1]]
    return lineage.scale(sealed, pairwise(bounds))


@st.composite
def lineages(draw: st.DrawFn, scales: int = 4) -> Lineage:
    """A stream that was scaled a few times."""
    lineage = Lineage.start(draw(st.integers(1, 4)))
    for _ in range(draw(st.integers(0, scales))):
        lineage = draw(scaled(lineage))
    return lineage


def offsets() -> st.SearchStrategy[int]:
    """Few different ones, so that cuts often agree."""
    return st.integers(0, 3)


@st.composite
def partial_cuts(draw: st.DrawFn, lineage: Lineage) -> Cut:
    """Any places in any segments, also in a segment and in its successor."""
    names = st.sampled_from(sorted(lineage.segments))
    return Cut(draw(st.dictionaries(names, offsets(), max_size=5)))


@st.composite
def whole_cuts(draw: st.DrawFn, lineage: Lineage) -> Cut:
    """A place every reader can come to."""
    done = draw(st.sets(st.sampled_from(sorted(lineage.segments))))
    return Cut({name: draw(offsets()) for name in lineage.frontier(done.__contains__)})


# ---- the oracle: a cut is the set of all steps a reader has taken to come there ----


def predecessors(lineage: Lineage, segment: Segment) -> list[Segment]:
    """Whoever was sealed when the segment was opened, and shared a key with it."""
    return [
        other
        for other in lineage.segments.values()
        if other.sealed_in == segment.id.epoch
        and other.low < segment.high
        and segment.low < other.high
    ]


def ancestors(lineage: Lineage, name: str) -> set[str]:
    """Predecessors, and theirs, and so on."""
    found: set[str] = set()
    for before in predecessors(lineage, lineage.segments[name]):
        found |= {before.name} | ancestors(lineage, before.name)
    return found


def steps(lineage: Lineage, cut: Mapping[str, int]) -> set[tuple[str, int]]:
    """Entering a segment is step 0, its n-th row is step n; a segment passed has them all."""
    taken = {(name, step) for name, offset in cut.items() for step in range(offset + 1)}
    for name in cut:
        for before in ancestors(lineage, name):
            taken |= {(before, step) for step in range(END + 1)}
    return taken


def owners(lineage: Lineage, names: Collection[str]) -> list[int]:
    """How many of these own each key; one key between any two bounds is enough to know."""
    everything = lineage.segments.values()
    bounds = sorted({s.low for s in everything} | {s.high for s in everything})
    keys = [(low + high) / 2 for low, high in pairwise(bounds)]
    chosen = [lineage.segments[name] for name in names]
    return [sum(s.low <= key < s.high for s in chosen) for key in keys]


def covers_exactly_once(lineage: Lineage, names: Collection[str]) -> bool:
    """Whether every key has one owner, and no owner comes before another."""
    related = any(ancestors(lineage, name) & set(names) for name in names)
    return set(owners(lineage, names)) == {1} and not related
