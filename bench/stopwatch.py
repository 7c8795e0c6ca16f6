"""The stopwatch: how long an act takes, as the median of several rounds.

The median, because on a shared machine the mean tells of the neighbours; for the same reason many
short rounds are better than a few long ones, which are always interrupted. While a round runs, the
garbage collector rests, as in `timeit`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import repeat
from statistics import median
from time import perf_counter_ns


def nanoseconds(
    act: Callable[[], object],
    *,
    calls: int = 1,
    rounds: int = 101,
    before: Callable[[], object] | None = None,
) -> float:
    """Nanoseconds per call of `act`; `before` prepares each round and is not counted."""
    taken = []
    for _ in range(rounds + 1):
        if before is not None:
            before()
        taken.append(_round(act, calls))
    return median(taken[1:])  # the first round warms up


def _round(act: Callable[[], object], calls: int) -> float:
    running = gc.isenabled()
    gc.disable()
    try:
        start = perf_counter_ns()
        for _ in repeat(None, calls):
            act()
        return (perf_counter_ns() - start) / calls
    finally:
        if running:
            gc.enable()
