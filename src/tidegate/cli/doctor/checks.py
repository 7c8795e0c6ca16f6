"""A check and what it found: the words in which `tidegate doctor` speaks.

A check that failed says what to do; a warning is something to know, and changes no exit code.

>>> Check("disk", State.FAILED, "/tmp has 10 MiB free", "make room").as_json()
{'check': 'disk', 'state': 'failed', 'found': '/tmp has 10 MiB free', 'advice': 'make room'}
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from rich.table import Table
from rich.text import Text


class State(Enum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNUSED = "unused"
    """Not there, and needed only by those who use it."""


STYLES: Final = {
    State.OK: "green",
    State.WARNING: "yellow",
    State.FAILED: "bold red",
    State.UNUSED: "dim",
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "check": self.name,
            "state": self.state.value,
            "found": self.found,
            "advice": self.advice,
        }


def failed(checks: Iterable[Check]) -> bool:
    """Whether one of them failed."""
    return any(check.state is State.FAILED for check in checks)


def table_of(checks: Iterable[Check]) -> Table:
    """The checks on a screen: what was found, and below it what to do."""
    table = Table()
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("found", overflow="fold")
    for check in checks:
        style = STYLES[check.state]
        found = Text(check.found, style="dim" if check.state is State.UNUSED else "")
        if check.advice:
            found.append(f"\n{check.advice}", style=style)
        table.add_row(Text(check.name), Text(check.state.value, style=style), found)
    return table
