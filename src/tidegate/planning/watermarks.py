"""From how far a stream is read to its number, and from the streams' numbers to W.

Per partition the number comes from its events, for the whole stream from its marks or from the
clock. The tracker merges them all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tidegate.eventtime.generators import AutoDisorder, BoundedDisorder
from tidegate.eventtime.instants import Instant, floor_to
from tidegate.eventtime.tracker import PartitionedWatermarkTracker
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.mark import Mark
from tidegate.planning.facts import Flags, Numbers, Offsets, StreamFacts
from tidegate.planning.policy import AUTO, Policy, Strategy
from tidegate.planning.state import StreamState


def choose_strategy(state: StreamState, facts: StreamFacts, policy: Policy) -> Strategy:
    """How W is found for this stream.

    `auto` is marks from the first plan that sees a writer registered to note time, or a mark of
    one that has left, then for good.
    """
    if policy.watermark is not Strategy.AUTO:
        return policy.watermark
    if state.strategy is Strategy.MARKS or facts.writers or facts.marks:
        return Strategy.MARKS
    return Strategy.EVENTS


def events_numbers(state: StreamState, policy: Policy) -> StreamState:
    """Numbers per partition from the largest event times seen; none is ever lowered."""
    if policy.tolerance is AUTO:
        reached = AutoDisorder.number(state.max_seen, state.disorder)
    else:
        reached = BoundedDisorder(policy.tolerance).number(state.max_seen)
    moves = state.seen & (~state.known | (reached > state.number))
    return replace(
        state,
        number=np.where(moves, reached, state.number),
        known=state.known | state.seen,
    )


def passed_marks(marks: Sequence[Mark], here: Offsets, to_come: Collection[str]) -> int:
    """How many marks have their cut at or before the plan's end; the last of them is the number.

    `here` is that end. A cut that names a partition `to_come` is not passed; any other partition
    that is not here is the past.
    """

    def passed(mark: Mark) -> bool:
        return all(
            offset <= here[name] if name in here else name not in to_come
            for name, offset in mark.cut.items()
        )

    low, high = 0, len(marks)
    # The cuts of marks never go back, so those that are passed come first.
    while low < high:
        middle = (low + high) // 2
        if passed(marks[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def clock_number(now: Instant, cap: Known, waiting_from: Known, grid: int) -> Known:
    """N of a processing-time stream: the clock, but not where that would change nothing.

    Rounded down to the grid and not past `cap`, the last use of the newest row, so that a quiet job
    stays quiet; not past the first row that is not read yet, so that no row is behind its own time.

    >>> clock_number(27, cap=100, waiting_from=UNKNOWN, grid=10)
    20
    """
    if cap is UNKNOWN:
        return UNKNOWN
    number = min(floor_to(now, grid), cap)
    return number if waiting_from is UNKNOWN else min(number, waiting_from)


def merged(streams: Sequence[tuple[Numbers, Flags, Flags]]) -> PartitionedWatermarkTracker:
    """One tracker over all streams, from (numbers, known, idle) columns."""
    tracker = PartitionedWatermarkTracker()
    # All of them first, still unknown, so that no stream is merged while another is missing.
    for source, (number, _, _) in enumerate(streams):
        tracker.register_source(source, len(number))
    for source, (number, known, idle) in enumerate(streams):
        tracker.load_source(source, number, known, idle)
    return tracker
