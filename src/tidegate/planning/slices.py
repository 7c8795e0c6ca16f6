"""Slices: an interval of event time that is complete, and the work of reading it.

A batch releases `[a, b)`, b on the query's grid and at or below what W allows. When that is too
much for one batch, b is the last point of the grid whose rows fit the limits; one step is always
taken. The interval is divided into tasks by time, a window wholly inside one task; when there are
fewer windows than cores, by key range where the query allows it. Nothing above b is read or
remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

import numpy as np

from tidegate.eventtime.instants import Instant, floor_to, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Flags, Numbers, Spans
from tidegate.planning.query import Query

Look = Callable[[str, Known, Instant], Spans]
"""The spans of a stream, within the plan's cuts, that can hold a time in [a, b)."""


ROWS_PER_TASK: Final = 8_000_000
"""A task is given no more rows than this, about a second's work; fewer, and what a task costs by
itself (a tenth of a second) would show."""


class Division(Enum):
    """How the work of a batch is divided."""

    TIME = "time"
    KEY_RANGE = "key range"
    SHUFFLE = "shuffle"
    """Fewer windows than cores, and no division by key: partials in tasks, merged by a shuffle."""


@dataclass(frozen=True)
class Interval:
    """Event time `[a, b)`; a is UNKNOWN, below everything, in the first release of a query."""

    a: Known
    b: Instant


@dataclass(frozen=True, eq=False)
class Task:
    """A piece of the interval, and per stream the spans that can hold its rows."""

    interval: Interval
    low: float
    high: float
    reads: Mapping[str, Spans]
    rows: int
    behind: Mapping[str, Spans] = field(default_factory=dict)
    """With `late = next`: where rows below A lie that count as if their time were A.

    Of their rows those count whose last use lies at or before A. Any other is used late, at its own
    time, by what is still open: it is in `reads`.
    """


@dataclass(frozen=True, eq=False)
class Slice:
    """What a batch releases, divided into tasks, with what reading it costs.

    `rows_released` is an estimate: rows are taken as spread evenly over their span's time.
    """

    interval: Interval
    tasks: tuple[Task, ...]
    division: Division
    rows_read: int
    rows_released: int
    oversized: bool
    """One step of the grid alone is over the limits; it was taken all the same."""

    @property
    def amplification(self) -> float:
        """Rows read for each row released."""
        return self.rows_read / max(self.rows_released, 1)


class _Density:
    """How many rows of some spans lie before a time, if each spreads evenly over its times."""

    def __init__(self, spans: Spans, weight: Numbers) -> None:
        timed = spans.timed
        self.low = spans.min_time[timed].astype(np.float64)
        self.width = (spans.max_time - spans.min_time)[timed].astype(np.float64) + 1.0
        self.weight = weight[timed].astype(np.float64)

    def before(self, time: Instant) -> float:
        share = np.clip((time - self.low) / self.width, 0.0, 1.0)
        # Not `@`: for so few numbers the threads of BLAS cost more than they bring.
        return float((share * self.weight).sum())

    def between(self, a: Known, b: Instant) -> float:
        return self.before(b) - (0.0 if a is UNKNOWN else self.before(a))


def shifted(time: Known, by: int) -> Known:
    """A time moved by some microseconds; UNKNOWN stays."""
    return UNKNOWN if time is UNKNOWN else time + by


def choose_interval(
    query: Query,
    a: Known,
    limit: Instant,
    *,
    lowest: Instant,
    stride: int,
    max_rows: int | None,
    max_bytes: int | None,
    look: Look,
) -> tuple[Interval, bool]:
    """The largest interval from `a` to `limit` whose rows fit; whether even one step did not.

    Looks ahead in strides that double, beginning with the last interval's, so that the cost of
    finding a batch follows the size of the batch and not the size of the backlog.
    """
    if max_rows is None and max_bytes is None:
        return Interval(a, limit), False
    grid = micros(query.grid)
    begin = max(a, floor_to(lowest, grid)) if a is not UNKNOWN else floor_to(lowest, grid)
    begin = min(begin, limit)
    width = max(grid, stride)
    while True:
        ahead = min(floor_to(begin + width, grid), limit)
        fits = _fitting(query, a, ahead, max_rows, max_bytes, look)
        if not fits(ahead):
            break
        if ahead >= limit:
            return Interval(a, limit), False
        width *= 2
    low, high = 0, max(-(-(ahead - begin) // grid), 1)  # steps: low fits or is none, high does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(begin + middle * grid) else (low, middle)
    steps = max(low, 1)
    return Interval(a, min(begin + steps * grid, limit)), low == 0


def _fitting(
    query: Query,
    a: Known,
    ahead: Instant,
    max_rows: int | None,
    max_bytes: int | None,
    look: Look,
) -> Callable[[Instant], bool]:
    parts: list[tuple[int, int, _Density, _Density]] = []
    for name, side in query.sides.items():
        before, after = micros(side.before), micros(side.after)
        spans = look(name, shifted(a, -before), ahead + after)
        parts.append((before, after, _Density(spans, spans.rows), _Density(spans, spans.bytes)))

    def fits(b: Instant) -> bool:
        rows = size = 0.0
        for before, after, by_rows, by_bytes in parts:
            rows += by_rows.between(shifted(a, -before), b + after)
            size += by_bytes.between(shifted(a, -before), b + after)
        return (max_rows is None or rows <= max_rows) and (max_bytes is None or size <= max_bytes)

    return fits


def divide(
    query: Query,
    interval: Interval,
    *,
    oversized: bool,
    lowest: Instant,
    cores: int,
    look: Look,
    behind: Mapping[str, Spans],
    rows_per_task: int = ROWS_PER_TASK,
) -> Slice:
    """Divide an interval into tasks; the same interval and cuts always give the same tasks.

    `behind` are the spans whose rows below the interval count as if at its beginning.
    """
    grid = micros(query.grid)
    reads = {
        name: look(name, shifted(interval.a, -micros(side.before)), interval.b + micros(side.after))
        for name, side in query.sides.items()
    }
    densities = [_Density(spans, spans.rows) for spans in reads.values()]
    begin = floor_to(lowest, grid) if interval.a is UNKNOWN else interval.a
    begin = min(begin, interval.b)
    total = sum(density.between(interval.a, interval.b) for density in densities)
    # As many for every core, so that none waits for another's last.
    wanted = cores * max(-(-round(total) // (cores * rows_per_task)), 1)
    bounds = _boundaries(densities, interval, begin, grid, wanted)
    pieces = [
        Interval(a, b) for a, b in zip([interval.a, *bounds], [*bounds, interval.b], strict=True)
    ]
    held_back = [behind, *({} for _ in pieces[1:])]
    made = (_task(query, piece, reads, b) for piece, b in zip(pieces, held_back, strict=True))
    tasks = [task for task in made if task is not None]
    division = Division.TIME
    if 0 < len(tasks) < cores:
        division = Division.KEY_RANGE if query.keyed else Division.SHUFFLE
        if query.keyed:
            share = -(-cores // len(tasks))
            parts = [part for task in tasks for part in _by_key_range(task, share)]
            division = Division.KEY_RANGE if len(parts) > len(tasks) else Division.TIME
            tasks = parts
    return Slice(
        interval,
        tuple(tasks),
        division,
        rows_read=sum(task.rows for task in tasks),
        rows_released=round(total),
        oversized=oversized,
    )


def _boundaries(
    densities: list[_Density], interval: Interval, begin: Instant, grid: int, wanted: int
) -> list[Instant]:
    """Points of the grid, inside the interval, that give pieces of about equally many rows."""
    # The rows before a time are a broken line: its corners are where spans begin and end.
    low = np.concatenate([density.low for density in densities]) - begin
    width = np.concatenate([density.width for density in densities])
    weight = np.concatenate([density.weight for density in densities])
    if not len(low):
        return []
    corners = np.concatenate([low, low + width])
    order = np.argsort(corners, kind="stable")
    corners = corners[order]
    slopes = np.cumsum(np.concatenate([weight / width, -weight / width])[order])
    rows = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(corners))])
    rows = np.maximum.accumulate(rows)
    first, last = np.interp([0.0, interval.b - begin], corners, rows)
    targets = first + (last - first) * np.arange(1, wanted) / wanted
    right = np.searchsorted(rows, targets).clip(1, len(rows) - 1)
    rise = np.maximum(rows[right] - rows[right - 1], np.finfo(np.float64).tiny)
    share = ((targets - rows[right - 1]) / rise).clip(0.0, 1.0)
    times = corners[right - 1] + share * (corners[right] - corners[right - 1])
    steps = np.unique(-(-np.rint(times).astype(np.int64) // grid)).tolist()
    return [begin + step * grid for step in steps if 0 < step * grid < interval.b - begin]


def _task(
    query: Query, piece: Interval, reads: Mapping[str, Spans], behind: Mapping[str, Spans]
) -> Task | None:
    """A piece with the spans it must read; None when no stream has any there."""
    chosen: dict[str, Spans] = {}
    for name, side in query.sides.items():
        spans = reads[name]
        first = shifted(piece.a, -micros(side.before))
        inside = spans.timed & (spans.min_time < piece.b + micros(side.after))
        if first is not UNKNOWN:
            inside &= spans.max_time >= first
        chosen[name] = spans.where(inside)
    rows = _rows(chosen) + _rows(behind)
    return Task(piece, 0.0, 1.0, chosen, rows, behind) if rows else None


def _rows(reads: Mapping[str, Spans]) -> int:
    return sum(int(spans.rows.sum()) for spans in reads.values())


def _by_key_range(task: Task, share: int) -> list[Task]:
    """Split a task where no partition's key range is cut.

    A key may lie in a segment and its heir.
    """
    used: list[tuple[float, float, int]] = []
    for reads in (task.reads, task.behind):
        for spans in reads.values():
            rows = np.bincount(spans.partition, weights=spans.rows, minlength=len(spans.names))
            bounds = spans.ranges()
            for i in np.unique(spans.partition):
                used.append((float(bounds[i, 0]), float(bounds[i, 1]), int(rows[i])))
    components = _components(used)
    parts: list[Task] = []
    goal = task.rows / share
    low, counted = components[0][0], 0
    for index, (_, high, count) in enumerate(components):
        counted += count
        if counted >= goal or index == len(components) - 1:
            parts.append(_restricted(task, low, high))
            low, counted = high, 0
    return parts


def _components(used: list[tuple[float, float, int]]) -> list[tuple[float, float, int]]:
    """Overlapping ranges joined: (low, high, rows) of each connected component, in order."""
    joined: list[tuple[float, float, int]] = []
    for low, high, rows in sorted(used):
        if joined and low < joined[-1][1]:
            before = joined.pop()
            joined.append((before[0], max(before[1], high), before[2] + rows))
        else:
            joined.append((low, high, rows))
    return joined


def _restricted(task: Task, low: float, high: float) -> Task:
    def inside(reads: Mapping[str, Spans]) -> dict[str, Spans]:
        kept = {}
        for name, spans in reads.items():
            bounds = spans.ranges()
            touched: Flags = (bounds[:, 0] < high) & (bounds[:, 1] > low)
            kept[name] = spans.where(touched[spans.partition])
        return kept

    reads, behind = inside(task.reads), inside(task.behind)
    rows = _rows(reads) + _rows(behind)
    return replace(task, low=low, high=high, reads=reads, rows=rows, behind=behind)
