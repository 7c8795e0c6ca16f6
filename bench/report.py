"""The report of a benchmark: a table on the screen, and the same rows as JSON.

A row has a value, a unit and perhaps a target, which is an upper limit unless it says `at_least`.

>>> Row("reading", 400, "ns", target=500).met, Row("faster", 4, "x", 10, at_least=True).met
(True, False)
>>> Row("just told", 7, "us").as_json()
{'name': 'just told', 'value': 7, 'unit': 'us', 'target': None, 'met': None}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parents[1] / "build" / "bench"


@dataclass(frozen=True)
class Row:
    """One measured value."""

    name: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        """The row as it stands in the file."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "target": self.target,
            "met": self.met,
        }


def write(benchmark: str, rows: Sequence[Row]) -> Path:
    """Write the rows to `build/bench/<benchmark>.json`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{benchmark}.json"
    file.write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")
    return file


def publish(benchmark: str, rows: Sequence[Row], console: Console | None = None) -> Path:
    """Print the rows and write them to `build/bench/<benchmark>.json`."""
    shown = console or Console(highlight=False)
    shown.print(table(f"bench {benchmark}", rows))
    file = write(benchmark, rows)
    shown.print(f"written to {file}", soft_wrap=True)
    return file


def table(title: str, rows: Sequence[Row]) -> Table:
    """The rows as a table."""
    made = Table(title=title, title_justify="left")
    made.add_column("what")
    for name in ("measured", "target", "met"):
        made.add_column(name, justify="right")
    for row in rows:
        bound = "" if row.target is None else f"{'>=' if row.at_least else '<='} {_told(row, True)}"
        met = {None: "", True: "yes", False: "NO"}[row.met]
        style = {None: "", True: "green", False: "bold red"}[row.met]
        made.add_row(row.name, _told(row), bound, f"[{style}]{met}[/]" if style else met)
    return made


def _told(row: Row, target: bool = False) -> str:
    value = row.target if target and row.target is not None else row.value
    return f"{value:,.3g} {row.unit}" if value < 1000 else f"{value:,.0f} {row.unit}"
