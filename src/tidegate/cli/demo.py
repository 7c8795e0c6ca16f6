"""`tidegate demo`: the first thing a newcomer should see.

Five sites write into a store, a windowed job on Spark follows, and stock Spark reads the same rows
beside it. `--pure` shows the idea alone, in a second and without Spark. Both leave nothing behind
but pictures, unless a folder is named for the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console

from tidegate import errors
from tidegate.cli.demo_headline import show_headline
from tidegate.cli.picture import can_draw
from tidegate.cli.terminal import open_console

SECONDS = 15.0
INTRODUCTION = """\
Five sites send {rows:,} orders, each into a partition of its own: first an hour of \
backlog, one site after the other, then half an hour while two jobs count orders per \
minute and item. One site is fast, one slow, one crashes, one falls silent. Stock Spark \
keeps one watermark, {delay} minutes behind the largest time seen; Tidegate keeps one per \
partition, {disorder} seconds behind, and takes the minimum."""
EXPLANATION = """\
live: while the sites write; last window: seconds from the last row to its results. \
alone: over all rows once more; last window: seconds from the start of the query; rows/s: \
over its whole run. Stock Spark reads Parquet files in the order in which they arrived, \
{files} at a time, in append mode; both write Parquet files. Kernel of Tidegate: {kernel}."""


def demo(
    pure: Annotated[
        bool, typer.Option("--pure", help="Only the idea: 10,000 rows, without Spark.")
    ] = False,
    rows: Annotated[int, typer.Option(min=10_000, help="How many orders the sites send.")] = (
        3_000_000
    ),
    seconds: Annotated[
        float, typer.Option(min=6.0, help="How long the sites write while both jobs run.")
    ] = SECONDS,
    folder: Annotated[
        Path | None,
        typer.Option(help="An empty folder for the store, which stays; else one that goes."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures; it is made if need be.")
    ] = Path("build/demo"),
    no_color: Annotated[bool, typer.Option("--no-color", help="Print without colours.")] = False,
) -> None:
    """Show stock Spark beside Tidegate, on the same rows of five unruly writers."""
    console = open_console(color=not no_color)
    _make(out)
    if pure:
        show_headline(console, out)
    else:
        with _home(folder) as home:
            _show_live(console, rows, seconds, home, out)


def _show_live(console: Console, rows: int, seconds: float, home: Path, out: Path) -> None:
    # Spark takes a second to import: only for those who run it.
    from tidegate.cli.demo_picture import draw_live
    from tidegate.cli.demo_play import play
    from tidegate.cli.demo_rows import DELAY, DISORDER, Workload
    from tidegate.cli.demo_screen import Steps, comparison, show_chart
    from tidegate.cli.demo_stock import FILES

    orders = Workload(rows)
    delay, disorder = round(DELAY.total_seconds() / 60), round(DISORDER.total_seconds())
    console.print(INTRODUCTION.format(rows=rows, delay=delay, disorder=disorder))
    console.print()
    with Steps(console, expected=34 + seconds) as steps:
        played = play(orders, home, out / "spark.log", seconds, steps.step)
    console.print()
    console.print(comparison(played))
    console.print(EXPLANATION.format(files=FILES, kernel=played.kernel), style="dim")
    console.print()
    show_chart(console, played)
    console.print()
    if can_draw():
        listed = ", ".join(str(file) for file in draw_live(played, out))
        console.print(f"The same as files: {listed}", markup=False, soft_wrap=True)
    else:
        console.print("For the same as files: pip install 'tidegate[plot]'", markup=False)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise errors.output_not_written(str(folder), failure.strerror or str(failure)) from None


@contextmanager
def _home(folder: Path | None) -> Iterator[Path]:
    """Where the store and the files are: a folder that is named, or one that goes at the end."""
    if folder is not None:
        _make(folder)
        if any(folder.iterdir()):
            raise errors.folder_not_empty(str(folder))
        yield folder.resolve()
        return
    with TemporaryDirectory(prefix="tidegate-demo-") as made:
        yield Path(made)
