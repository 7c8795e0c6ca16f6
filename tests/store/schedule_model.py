"""A naive model of a stream: lists of rows, who wrote them, where they lie, what was acknowledged.

It knows nothing of the planner and of the algebra of cuts: what it says about them are a few lines
over all rows. Slow, and plainly right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tidegate.marks.mark import Mark

WINDOW = 5
"""The queries' windows, in microseconds."""

Offsets = Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """A row as it was made; `transaction` is the one it came in, if any."""

    n: int
    key: int
    writer: str
    time: int
    transaction: str | None


@dataclass(frozen=True)
class Range:
    """A segment: its keys, and the epoch in which it was opened."""

    low: Fraction
    high: Fraction
    epoch: int

    def overlaps(self, other: Range) -> bool:
        return self.low < other.high and other.low < self.high


@dataclass
class Model:
    """What should be there."""

    rows: dict[int, Row] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    places: dict[int, tuple[str, int]] = field(default_factory=dict)
    segments: dict[str, Range] = field(default_factory=dict)

    def saw(self, found: Iterable[tuple[int, str, int]]) -> None:
        """Rows that can be read: acknowledged ones, each where it always was, none twice."""
        seen = Counter[int]()
        for n, segment, offset in found:
            seen[n] += 1
            assert n in self.acknowledged
            assert self.places.setdefault(n, (segment, offset)) == (segment, offset)
        assert set(seen.values()) <= {1}
        assert len(set(self.places.values())) == len(self.places)
        assert self.places.keys() == self.acknowledged

    def before(self, cut: Offsets, n: int) -> bool:
        """Whether a row lies before a cut: by its offset, or in a segment that was followed."""
        segment, offset = self.places[n]
        if segment in cut:
            return offset < cut[segment]
        mine = self.segments[segment]
        return any(
            other.epoch > mine.epoch and other.overlaps(mine)
            for other in (self.segments[name] for name in cut)
        )

    def all_before(self, cut: Offsets) -> set[int]:
        return {n for n in self.places if self.before(cut, n)}

    def check_mark(self, mark: Mark) -> None:
        """Every row before the lower number, of a writer in the mark, lies before its cut."""
        for n in self.places:
            row = self.rows[n]
            if row.writer in mark.writers and row.time < mark.lower:
                assert self.before(mark.cut, n), (mark, row, self.places[n])
        covered = sorted((self.segments[name].low, self.segments[name].high) for name in mark.cut)
        assert [low for low, _ in covered] == [0, *(high for _, high in covered[:-1])]
        assert covered[-1][1] == 1

    def check_order(self, read: Iterable[int]) -> None:
        """Rows of one key and one writer come in order; those of a transaction among themselves."""
        latest: dict[tuple[str, int, str | None], int] = {}
        for n in read:
            row = self.rows[n]
            source = (row.writer, row.key, row.transaction)
            assert latest.get(source, -1) < n
            latest[source] = n


@dataclass
class JobModel:
    """What one job over windows should read, give out and give up, batch after batch."""

    model: Model
    in_time_order: bool
    """If it follows events, then its partitions may be idle."""
    tolerance: int | None
    """Of a job that follows events; None: it follows marks."""
    arrived: set[int] = field(default_factory=set)
    released: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    watermark: int | None = None
    """Before the next batch."""
    closed: int | None = None
    """Where its slice begins."""

    def new_rows(self, cut: Offsets) -> set[int]:
        """The rows that a batch up to a cut must read: those before it that were not read yet."""
        before = self.model.all_before(cut)
        assert self.arrived <= before
        return before - self.arrived

    def judged(self, new: set[int]) -> tuple[set[int], set[int]]:
        """The late ones, and the lost ones."""
        times = {n: self.model.rows[n].time for n in new}
        late = {n for n in new if self.watermark is not None and times[n] <= self.watermark}
        closed = self.closed
        if not self.in_time_order and self.watermark is not None:
            closed = self.watermark + 1
        ends = {n: time // WINDOW * WINDOW + WINDOW for n, time in times.items()}
        return late, {n for n in new if closed is not None and ends[n] <= closed}

    def to_release(self, b: int) -> set[int]:
        """The rows of the slice that ends at b, among all that have arrived."""
        rows = self.model.rows
        a = self.closed
        return {n for n in self.arrived if (a is None or rows[n].time >= a) and rows[n].time < b}

    def check_watermark(self, watermark: int | None, cut: Offsets, made: list[Mark]) -> None:
        """A watermark claims no more than marks or events say, and never goes back."""
        if watermark is None:
            assert self.watermark is None
            return
        assert self.watermark is None or watermark >= self.watermark
        if self.tolerance is None:
            read = [mark for mark in made if self.model.all_before(mark.cut) <= self.arrived]
            assert watermark + 1 in {mark.lower for mark in read}
            return
        for name in cut:
            # Where nobody is idle each has seen a time that far ahead, or has followed one.
            near = [n for n in self.arrived if self.in_time_order or self._in_or_above(n, name)]
            assert watermark + 1 <= max(self.model.rows[n].time for n in near) - self.tolerance

    def check_late(self, late: set[int], made: list[Mark]) -> None:
        """By marks only rows are late whose writer nobody waited for."""
        for row in (self.model.rows[n] for n in late if self.tolerance is None):
            assert any(m.lower > row.time and row.writer not in m.writers for m in made), row

    def check_accounts(self) -> None:
        """Everything that was closed was given out once or given up once; nothing else was."""
        if not self.in_time_order:
            assert self.released == Counter(self.arrived - self.lost.keys())
            return
        closed = {
            n
            for n in self.arrived
            if self.closed is not None and self.model.rows[n].time < self.closed
        }
        assert self.released + self.lost == Counter(closed)

    def _in_or_above(self, n: int, name: str) -> bool:
        segment = self.model.places[n][0]
        one, other = self.model.segments[segment], self.model.segments[name]
        return segment == name or (one.epoch < other.epoch and one.overlaps(other))
