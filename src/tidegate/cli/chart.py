"""A small chart for the terminal: lines over steps, drawn with characters.

Lines are told apart by their character, so the chart can be read without colour; where two meet,
the later one in the list is seen. UNKNOWN is not zero: it has a row of its own, for the lines that
want it.

>>> rising = Line("W", "#", [UNKNOWN, 0, 0, 10, 20, 30], shows_unknown=True)
>>> chart = Chart([rising], label=str, ticks={0: "0", 5: "5"}, width=16, height=4)
>>> print(chart.render().plain)
     30 │     #
        │    ##
        │   ##
      0 │ ###
unknown │#
        └──────
         0    5
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rich.text import Text

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known

_GUTTER = len("unknown │")
_EVERY = 4
"""Rows from one label of the y axis to the next."""


@dataclass(frozen=True)
class Line:
    """One value per step, drawn with one character."""

    name: str
    glyph: str
    values: Sequence[Known]
    style: str = ""
    shows_unknown: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over the same steps; `label` names a value, `ticks` name steps."""

    lines: Sequence[Line]
    label: Callable[[Instant], str]
    ticks: Mapping[int, str] = field(default_factory=dict)
    width: int = 80
    height: int = 16

    def render(self) -> Text:
        """The chart, `height` rows of values, the unknown, the axis and its ticks."""
        columns = max(self.width - _GUTTER, 1)
        cells: dict[tuple[int, int], Line] = {}
        for line in self.lines:
            for column, row in self._places(line, columns):
                cells[column, row] = line
        labels = self._labels()
        lowest = -1 if any(line.shows_unknown for line in self.lines) else 0
        text = Text(no_wrap=True, end="")
        for row in range(self.height - 1, lowest - 1, -1):
            text.append(f"{labels.get(row, ''):>{_GUTTER - 2}} │", style="dim")
            last = max((c for c, r in cells if r == row), default=-1)
            for column in range(last + 1):
                drawn = cells.get((column, row))
                text.append(drawn.glyph if drawn else " ", style=drawn.style if drawn else "")
            text.append("\n")
        text.append(" " * (_GUTTER - 1) + "└" + "─" * self._used(columns), style="dim")
        if self.ticks:
            text.append("\n" + " " * _GUTTER + self._tick_row(columns), style="dim")
        return text

    def _steps(self) -> int:
        return max((len(line.values) for line in self.lines), default=1)

    def _used(self, columns: int) -> int:
        return min(columns, self._steps())

    def _column(self, step: int, columns: int) -> int:
        return step * self._used(columns) // self._steps()

    @cached_property
    def _bounds(self) -> tuple[Instant, Instant]:
        known = [v for line in self.lines for v in line.values if v is not UNKNOWN]
        return min(known, default=0), max(known, default=0)

    def _row(self, value: Instant) -> int:
        low, high = self._bounds
        return round((value - low) * (self.height - 1) / max(high - low, 1))

    def _places(self, line: Line, columns: int) -> Iterator[tuple[int, int]]:
        """The cells of a line; a step that rises over several rows fills those between."""
        before: Known = UNKNOWN
        for step, value in enumerate(line.values):
            column = self._column(step, columns)
            if value is not UNKNOWN:
                first = self._row(value if before is UNKNOWN else before)
                last = self._row(value)
                for row in range(min(first, last), max(first, last) + 1):
                    yield column, row
            elif line.shows_unknown:
                yield column, -1
            before = value

    def _labels(self) -> dict[int, str]:
        low, high = self._bounds
        top = self.height - 1
        labels = {
            row: self.label(low + (high - low) * row // top)
            for row in (*range(0, top - _EVERY + 2, _EVERY), top)
        }
        return {-1: "unknown", **labels}

    def _tick_row(self, columns: int) -> str:
        """The names of steps, as many as there is room for."""
        row = ""
        for step, name in sorted(self.ticks.items()):
            column = self._column(step, columns)
            if not row or column > len(row):
                row = row.ljust(column) + name
        return row
