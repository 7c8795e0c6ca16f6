"""`tidegate demo --pure`: the headline, without Spark, in a second.

It delivers the headline workload to one global watermark and to the planner, tells what each of
them kept, and draws the watermarks. Nothing is stored but the picture, so it is safe to repeat.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from tidegate.cli.chart import Chart, Line
from tidegate.cli.picture import can_draw, clock, draw_watermarks, first_batches
from tidegate.cli.terminal import spelled_for
from tidegate.testing.headline import (
    TWO_HOURS,
    Headline,
    OneGlobalWatermark,
    Outcome,
    Planned,
    deliver,
)

WIDEST = 100
"""A chart that is wider is not easier to read."""

INTRODUCTION = """\
{rows:,} trades, one per second, lie in a topic of {partitions} partitions. A job that catches up \
reads one partition after the other and counts one-minute windows. Stock Spark keeps one \
watermark, the largest time seen anywhere; Tidegate keeps one per partition and takes the \
minimum. A row whose window is closed already is lost."""


def show_headline(console: Console, out: Path) -> None:
    """Show one global watermark beside the minimum over partitions, on 10,000 rows."""
    headline = Headline()
    console.print(INTRODUCTION.format(rows=headline.rows, partitions=headline.partitions))
    console.print()
    spark, delayed = OneGlobalWatermark(headline), OneGlobalWatermark(headline, TWO_HOURS)
    planned = Planned(headline)
    for _ in track(
        deliver(headline, spark, delayed, planned),
        description="delivering",
        total=len(headline.chunks()),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ):
        pass
    console.print(
        comparison(
            headline,
            {
                "one global watermark": spark.finish(),
                "the same, with two hours of delay": delayed.finish(),
                "Tidegate": planned.finish(),
            },
        )
    )
    console.print()
    show_chart(console, headline, planned, spark)
    console.print()
    if can_draw():
        files = draw_watermarks(headline, planned, spark, out)
        listed = ", ".join(str(file) for file in files)
        console.print(f"The same as files: {listed}", markup=False, soft_wrap=True)
    else:
        console.print("For the same as files: pip install 'tidegate[plot]'", markup=False)


def comparison(headline: Headline, outcomes: dict[str, Outcome]) -> Table:
    """A table of what each way kept, below the truth."""
    truth = headline.truth()
    windows = len({start for start, _ in truth})
    table = Table()
    table.add_column("")
    for title in ("rows kept", "rows lost", "windows right"):
        table.add_column(title, justify="right")
    table.add_row("truth", f"{truth.total():,}", "", f"{windows} of {windows}", style="dim")
    for name, outcome in outcomes.items():
        table.add_row(
            name,
            f"{outcome.kept:,}",
            f"{outcome.lost:,}",
            f"{outcome.windows_right(truth)} of {windows}",
            style="red" if outcome.lost else "bold green",
        )
    return table


def show_chart(
    console: Console, headline: Headline, planned: Planned, spark: OneGlobalWatermark
) -> None:
    """Print the watermarks over the batches, with a line for each partition."""
    names = headline.partition_names()
    lines = [
        Line(name, "·", [moment.numbers[slot] for moment in planned.history], style="cyan")
        for slot, name in enumerate(names)
    ]
    lines.append(Line("global", "━", spark.history, style="red"))
    watermarks = [moment.watermark for moment in planned.history]
    lines.append(Line("W", "█", watermarks, style="bold green", shows_unknown=True))
    ticks = {batch: name for name, batch in first_batches(headline).items()}
    chart = Chart(lines, clock, ticks, width=min(console.width, WIDEST))
    console.print("Where each watermark stands (event time), batch after batch:", style="bold")
    console.print(spelled_for(console, chart.render()))
    legend = Text.assemble(
        ("━", "red"),
        " one global watermark: it has closed every window below it\n",
        ("·", "cyan"),
        f" the {len(names)} partitions, each delivered where its number stands on the axis\n",
        ("█", "bold green"),
        f" Tidegate's W, their minimum: unknown until partition {names[-1]} has spoken",
    )
    console.print(spelled_for(console, legend))
