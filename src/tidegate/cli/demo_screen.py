"""The demo on the screen: what is being done, a table of what came of it, and a chart.

Everything fits into eighty columns and can be read without colour.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tidegate.cli.chart import Chart, Line
from tidegate.cli.demo_play import Outcome, Played
from tidegate.cli.demo_rows import SITES
from tidegate.cli.terminal import spelled_for
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known

WIDEST: Final = 100
"""A chart that is wider is not easier to read."""
NEVER: Final = "not given out"


class Steps:
    """A bar that fills with the parts of a run, and a line for each part that is done."""

    def __init__(self, console: Console, expected: float) -> None:
        self._console, self._expected = console, expected
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=expected)

    def __enter__(self) -> Steps:
        if self._console.is_terminal and self._console.file.isatty():
            # Spark is started while standard output leads elsewhere; the bar goes on here.
            self._console.file = os.fdopen(
                os.dup(self._console.file.fileno()), "w", encoding=self._console.encoding
            )
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @contextmanager
    def step(self, name: str, expected: float) -> Iterator[Callable[[float], None]]:
        """Do a part of the run that is expected to take so many seconds."""
        self._bar.update(self._task, description=name)
        filled = self._bar.tasks[self._task].completed
        began = time.monotonic()

        def tell(share: float) -> None:
            self._bar.update(self._task, completed=filled + share * expected)

        yield tell
        tell(1.0)
        self._console.print(f"{time.monotonic() - began:6.1f} s  {name}", style="dim")


def comparison(played: Played) -> Table:
    """A table of what each way kept and how long it took, below the truth."""
    truth, windows = played.truth, len(played.truth.windows())
    table = Table()
    table.add_column("", no_wrap=True)
    for title in ("rows lost", "windows right", "last window", "rows/s"):
        table.add_column(title, justify="right")
    table.add_row("truth", f"of {truth.rows:,}", f"{windows} of {windows}", "", "", style="dim")
    table.add_section()
    table.add_row("live, side by side", style="bold")
    for name, outcome in (("stock Spark", played.stock), ("Tidegate", played.tidegate)):
        _add(table, name, played, outcome, f"{_seconds(outcome.last_window)} after", "")
    table.add_section()
    table.add_row("again, each alone", style="bold")
    for name, outcome in (("stock Spark", played.stock_alone), ("Tidegate", played.tidegate_alone)):
        rate = f"{truth.rows / outcome.seconds:,.0f}"
        _add(table, name, played, outcome, f"{_seconds(outcome.last_window)} in all", rate)
    return table


def _add(table: Table, name: str, played: Played, outcome: Outcome, last: str, rate: str) -> None:
    lost = played.truth.rows - outcome.results.rows
    right = outcome.results.windows_right(played.truth)
    windows = len(played.truth.windows())
    table.add_row(
        f"  {name}",
        f"{lost:,}",
        f"{right} of {windows}",
        NEVER if outcome.last_window is None else last,
        rate,
        style="red" if right < windows else "bold green",
    )


def show_chart(console: Console, played: Played) -> None:
    """Print where the watermarks stood while the sites wrote."""
    width = min(console.width, WIDEST)
    columns = width - 12
    live = played.live
    end = live.shown_until(played.orders.until)
    times = [live.began + (end - live.began) * n / (columns - 1) for n in range(columns)]
    lines = [
        Line(
            site,
            str(number),
            _sampled([(m.at, m.numbers.get(name, UNKNOWN)) for m in live.moments], times, played),
            style="cyan",
        )
        for number, (name, site) in enumerate(played.orders.partitions().items(), 1)
    ]
    stock = _sampled(live.stock_moments, times, played)
    lines.append(Line("stock", "━", stock, style="red"))
    watermarks = _sampled([(m.at, m.watermark) for m in live.moments], times, played)
    lines.append(Line("W", "█", watermarks, style="bold green", shows_unknown=True))
    ticks = {n: f"{round(times[n] - live.began)}s" for n in range(0, columns, max(columns // 8, 1))}
    console.print("Where the watermarks stood while the sites wrote (event time):", style="bold")
    chart = Chart(lines, clock, ticks, width=width)
    console.print(spelled_for(console, chart.render()))
    console.print(spelled_for(console, _legend()))


def clock(instant: Instant) -> str:
    """An instant as hours and minutes of its day.

    >>> clock(8 * 3_600_000_000 + 1)
    '08:00'
    """
    minutes = instant // 60_000_000 % (24 * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _legend() -> Text:
    sites = "  ".join(f"{number} {site}" for number, site in enumerate(SITES, 1))
    return Text.assemble(
        ("━", "red"),
        " stock Spark's one watermark: what comes from below it is dropped\n",
        ("5", "cyan"),
        f" the partitions' own: {sites}\n",
        ("█", "bold green"),
        " Tidegate's W: the slowest of them that is not idle",
    )


def _sampled(
    told: Sequence[tuple[float, Known]], times: Sequence[float], played: Played
) -> list[Known]:
    """The value that held at each time; a chart ends where the last order that counts ends."""
    found: list[Known] = []
    value: Known = UNKNOWN
    rest = iter(told)
    following = next(rest, None)
    for at in times:
        while following is not None and following[0] <= at:
            value = following[1]
            following = next(rest, None)
        found.append(value if value is UNKNOWN else min(value, played.orders.until))
    return found


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"
