"""Pace: how far each partition is read, so that all march together through time.

When a batch may not take everything it is cut at a time, not at a share of the rows: the largest T
such that reading every partition's spans that end at or before T stays within the limits. At least
one span of the slowest partition is always taken. Alignment then holds back whoever would end more
than the drift past the slowest that stays behind; who is slower than that one may take a span, so
that partitions march on in turn whatever the size of their spans.

All columns here are *lines*: one per partition of all streams together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

import numpy as np

from tidegate.eventtime.alignment import AlignmentGroup
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Flags, Numbers, Positions


class Hindrance(IntEnum):
    """Why a partition is not read to its end."""

    NONE = 0
    BEHIND = 1
    THROTTLED = 2
    ALIGNED = 3
    PAUSED = 4
    UNREADABLE = 5


@dataclass(frozen=True, eq=False)
class Lines:
    """The partitions of all streams of a query, as columns.

    `hindered` says PAUSED or UNREADABLE for those that may not be read at all; `limit` is a number
    of rows, or -1; `lag` is the tolerance to subtract from a maximum to get a number.
    """

    position: Numbers
    latest: Numbers
    number: Numbers
    known: Flags
    idle: Flags
    max_seen: Numbers
    seen: Flags
    lag: Numbers
    limit: Numbers
    hindered: Numbers

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, eq=False)
class Pending:
    """The spans that could be read, in the order of lines and offsets, with their running maximum.

    `reaches` is the largest event time of the line up to and with this span.
    """

    line: Positions
    end: Numbers
    rows: Numbers
    bytes: Numbers
    reaches: Numbers


@dataclass(frozen=True, eq=False)
class Reach:
    """How far each line is read: its end, the number of spans taken, and why not further."""

    end: Numbers
    taken: Numbers
    hindrance: Numbers


def running_maxima(line: Positions, time: Numbers, timed: Flags, lines: Lines) -> Numbers:
    """Per span the largest event time of its line so far; before any event, the earliest possible.

    >>> from types import SimpleNamespace as Some
    >>> lines = Some(max_seen=np.array([7, 0]), seen=np.array([True, False]))
    >>> times, yes = np.array([5, 9, 8, 3, 2]), np.array([True] * 5)
    >>> running_maxima(np.array([0, 0, 0, 1, 1]), times, yes, lines).tolist()
    [7, 9, 9, 3, 3]
    """
    if not len(line):
        return time
    floor = np.where(lines.seen, lines.max_seen, -LIMIT)[line]
    time = np.maximum(np.where(timed, time, -LIMIT), floor)
    # One cumulative maximum for all lines: ranks instead of times, each line lifted above the last.
    ordered, rank = np.unique(time, return_inverse=True)
    lifted = np.maximum.accumulate(line * len(ordered) + rank)
    running: Numbers = ordered[lifted - line * len(ordered)]
    return running


def pace(
    lines: Lines,
    pending: Pending,
    *,
    max_rows: int | None,
    max_bytes: int | None,
    max_drift: timedelta | None,
    watermark: Known,
) -> Reach:
    """Choose how far every line is read."""
    count = len(lines)
    first = np.searchsorted(pending.line, np.arange(count))
    open_line = lines.hindered == Hindrance.NONE
    hindrance = lines.hindered.copy()

    allowed = open_line[pending.line] & _within_own_limits(lines, pending, first)
    throttled = _counts(~allowed & open_line[pending.line], pending.line, count) > 0
    chosen = _within_time(pending, allowed, max_rows, max_bytes)
    if allowed.any() and not chosen.any():
        chosen = _one_of_the_slowest(lines, pending, allowed, first)
    aligned = np.zeros(count, dtype=np.bool_)
    if max_drift is not None and chosen.any():
        paced = chosen
        chosen = _aligned(lines, pending, paced, allowed, first, max_drift, watermark)
        aligned = _counts(chosen, pending.line, count) < _counts(paced, pending.line, count)

    taken = _counts(chosen, pending.line, count)
    end = _end_of(lines, pending, first, taken)
    free = (hindrance == Hindrance.NONE) & (end < lines.latest)
    hindrance[free] = Hindrance.BEHIND
    hindrance[free & throttled] = Hindrance.THROTTLED
    hindrance[free & aligned] = Hindrance.ALIGNED
    # A held partition that has nothing to read is held all the same: it may not fall idle.
    return Reach(end, taken, hindrance)


def _counts(chosen: Flags, line: Positions, count: int) -> Numbers:
    return np.bincount(line[chosen], minlength=count).astype(np.int64)


def _end_of(lines: Lines, pending: Pending, first: Positions, taken: Numbers) -> Numbers:
    end = lines.position.copy()
    some = taken > 0
    end[some] = pending.end[first[some] + taken[some] - 1]
    return end


def _within_own_limits(lines: Lines, pending: Pending, first: Positions) -> Flags:
    """Spans within their line's own limit; the first one always is."""
    limited = lines.limit >= 0
    if not limited.any():
        return np.ones(len(pending.line), dtype=np.bool_)
    total = np.cumsum(pending.rows)
    before = np.concatenate([[0], total])[first][pending.line]
    is_first = first[pending.line] == np.arange(len(pending.line))
    fits = (total - before <= lines.limit[pending.line]) | is_first
    result: Flags = ~limited[pending.line] | fits
    return result


def _within_time(
    pending: Pending, allowed: Flags, max_rows: int | None, max_bytes: int | None
) -> Flags:
    """Spans that end at or before the largest T whose spans fit the limits."""
    if max_rows is None and max_bytes is None:
        return allowed
    candidates = np.flatnonzero(allowed)
    order = candidates[np.argsort(pending.reaches[candidates], kind="stable")]
    fits = np.ones(len(order), dtype=np.bool_)
    if max_rows is not None:
        fits &= np.cumsum(pending.rows[order]) <= max_rows
    if max_bytes is not None:
        fits &= np.cumsum(pending.bytes[order]) <= max_bytes
    if fits.all():
        return allowed
    # The first that does not fit bounds T from above; whoever ends at the same time waits with it.
    fitting = int(np.argmin(fits))
    result: Flags = allowed & (pending.reaches < pending.reaches[order[fitting]])
    if not result.any():
        # All that fit end at one time (a span with an outlier comes first, or none has a time).
        result[order[:fitting]] = True
    return result


def _one_of_the_slowest(lines: Lines, pending: Pending, allowed: Flags, first: Positions) -> Flags:
    """The first span of the slowest line that has one."""
    candidates = np.flatnonzero(allowed & (first[pending.line] == np.arange(len(pending.line))))
    line = pending.line[candidates]
    slowness = np.where(lines.known[line], lines.number[line], -LIMIT)
    best = np.lexsort((pending.reaches[candidates], slowness))[0]
    chosen = np.zeros(len(pending.line), dtype=np.bool_)
    chosen[candidates[best]] = True
    return chosen


def _aligned(
    lines: Lines,
    pending: Pending,
    paced: Flags,
    allowed: Flags,
    first: Positions,
    drift: timedelta,
    watermark: Known,
) -> Flags:
    """Cut back whoever would end past the horizon of the slowest that stays behind."""
    claimed = -LIMIT if watermark is UNKNOWN else watermark
    begins = np.where(lines.known, np.maximum(lines.number, claimed), -LIMIT)
    is_first = first[pending.line] == np.arange(len(pending.line))
    after = np.maximum(pending.reaches - lines.lag[pending.line], claimed)
    after = np.maximum(np.where(pending.reaches > -LIMIT, after, -LIMIT), begins[pending.line])
    before = np.concatenate([[0], after[:-1]])
    before[is_first] = begins[pending.line[is_first]]
    before[before == -LIMIT] = LIMIT  # the unknown are not slow: they may read as far as others

    taken = _counts(paced, pending.line, len(lines))
    some = taken > 0
    at = begins.copy()
    at[some] = after[first[some] + taken[some] - 1]
    behind = _end_of(lines, pending, first, taken) < lines.latest
    counts = behind & ~lines.idle & (at > -LIMIT)
    group = AlignmentGroup.over(drift, at, counts)
    slowest, horizon = group.slowest(), group.horizon()
    if slowest is UNKNOWN or horizon is UNKNOWN:
        return paced
    kept: Flags = paced & ((after <= horizon) | (before < slowest))
    if kept.any():
        return kept
    # The slowest has not been reached by the pace: it goes first, unless it is held.
    last = begins == slowest
    if not (last & counts & (lines.hindered != Hindrance.NONE)).any():
        candidates = np.flatnonzero(allowed & is_first & last[pending.line])
        if len(candidates):
            kept[candidates[np.argmin(pending.reaches[candidates])]] = True
    return kept
