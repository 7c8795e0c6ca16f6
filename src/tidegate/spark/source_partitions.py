"""Packing: runs of rows become the work of tasks, about equally much for each.

Spans that follow each other in one partition are one read. A read is divided at an offset where a
task is full, so that neither many small chunks nor one large one leave a core idle; but no task
gets fewer than `LEAST` rows while another could take them along: to start a task costs more than to
read so few.

>>> spans = Spans.of([("0", 0, 60, 0, 9), ("0", 60, 100, 0, 9), ("1", 10, 40, 0, 9)])
>>> for task in pack(runs(spans), tasks=2, least=1):
...     print([(read.partition, read.start, read.end) for read in task])
[('0', 0, 65)]
[('0', 65, 100), ('1', 10, 40)]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from tidegate.planning.facts import Spans

LEAST: Final = 32_768
"""Rows that are worth a task of their own."""

MOST: Final = 1_000_000
"""Rows of a task, where nobody says how many tasks there shall be."""

PER_CORE: Final = 3
"""Tasks per core: one that is slow then holds up less than a third of the work of its core."""


class Read(NamedTuple):
    """Offsets [start, end) of a partition."""

    partition: str
    start: int
    end: int
    part: int = 0
    """To which part of all that is asked for it belongs."""

    @property
    def rows(self) -> int:
        """How many offsets it has."""
        return self.end - self.start


def pack(
    reads: Sequence[Read], tasks: int | None = None, *, least: int = LEAST
) -> list[tuple[Read, ...]]:
    """The reads of every task, in their order; without a number of tasks, by rows."""
    total = sum(read.rows for read in reads)
    wanted = tasks or max(PER_CORE * (os.cpu_count() or 1), -(-total // MOST))
    size = max(-(-total // wanted), least, 1)
    packed: list[tuple[Read, ...]] = []
    held: list[Read] = []
    room = size
    for read in reads:
        at = read.start
        while at < read.end:
            end = min(read.end, at + room)
            held.append(read._replace(start=at, end=end))
            room -= end - at
            at = end
            if not room:
                packed.append(tuple(held))
                held, room = [], size
    return [*packed, tuple(held)] if held else packed


def runs(spans: Spans, part: int = 0) -> list[Read]:
    """Spans of one partition that touch, as one read."""
    if not len(spans):
        return []
    apart = (np.diff(spans.partition) != 0) | (spans.start[1:] != spans.end[:-1])
    firsts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    lasts = np.concatenate([firsts[1:] - 1, [len(spans) - 1]])
    return [
        Read(
            spans.names[spans.partition[first]],
            int(spans.start[first]),
            int(spans.end[last]),
            part,
        )
        for first, last in zip(firsts, lasts, strict=True)
    ]
