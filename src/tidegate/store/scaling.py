"""Scaling by policy: which segments to split and which to merge, from their rates.

A segment above twice the target is split in the middle of its keys; two neighbours that are both
below half of it become one. What comes out lies between the two bounds if keys are spread evenly,
so no decision calls for its own undoing. There are never fewer segments than the minimum.

>>> from tidegate.marks.lineage import Lineage
>>> two = Lineage.start(2).open_in(0)
>>> decide(two, {"0.e0": 250.0, "1.e0": 90.0}, Scaling(target_rows=100)).sealed
('0.e0',)
>>> [str(bound) for bound in decide(two, {"0.e0": 10.0, "1.e0": 0.0}, Scaling(100)).opened[0]]
['0', '1']
>>> decide(two, {"0.e0": 10.0}, Scaling(100))          # the other one is not measured yet
Change(sealed=(), opened=())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate.marks.segment import KeyRange, Segment
from tidegate.store.config import Scaling


class Change(NamedTuple):
    """The segments to seal and the key ranges to open; none: leave it."""

    sealed: tuple[str, ...] = ()
    opened: tuple[KeyRange, ...] = ()


def decide(segments: Sequence[Segment], rates: Mapping[str, float], policy: Scaling) -> Change:
    """One change for the open segments of a stream, given in key order, by rows per second."""
    if policy.target_rows is None:
        return Change()
    sealed: list[str] = []
    opened: list[KeyRange] = []
    for segment in segments:
        if rates.get(segment.name, 0.0) > 2 * policy.target_rows:
            middle = (segment.low + segment.high) / 2
            sealed.append(segment.name)
            opened += [(segment.low, middle), (middle, segment.high)]
    left = len(segments) - len(sealed) + len(opened)
    low = policy.target_rows / 2
    at = 0
    while at + 1 < len(segments) and left > policy.minimum:
        one, two = segments[at], segments[at + 1]
        if all(name in rates and rates[name] < low for name in (one.name, two.name)):
            sealed += [one.name, two.name]
            opened.append((one.low, two.high))
            left -= 1
            at += 1
        at += 1
    return Change(tuple(sealed), tuple(opened))
