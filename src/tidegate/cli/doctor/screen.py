"""What `tidegate doctor` shows of a stock query: tables of figures, then what they mean."""

from __future__ import annotations

from typing import Final

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from tidegate.cli.doctor.findings import Findings
from tidegate.cli.doctor.losses import Losses
from tidegate.cli.doctor.words import counted, percent, shown
from tidegate.eventtime.instants import format_instant

MOST: Final = 20
"""Lines of a table; `--json` has all."""
TIMES: Final = ("from", "to", "began", "watermark")
"""Columns that are not broken: what else there is may be."""


def show_findings(console: Console, findings: Findings) -> None:
    """The progress of one query."""
    console.print(_figures(findings))
    dropping = sorted(findings.dropping(), key=lambda pair: -pair[1])
    if dropping:
        table = _table(
            "batch", "began", "rows", "dropped", "watermark", left=("began", "watermark")
        )
        for batch, count in dropping[:MOST]:
            table.add_row(
                str(batch.number),
                "" if batch.began_at is None else format_instant(batch.began_at),
                f"{batch.rows:,}",
                f"{count:,}",
                "" if batch.watermark is None else format_instant(batch.watermark),
            )
        console.print(table)
        _more(console, len(dropping), "batches that dropped rows")
    _conclude(console, findings.conclusion(), bad=findings.dropped.total() > 0)


def _figures(findings: Findings) -> Table:
    table = Table(title=Text(findings.query.name), show_header=False, title_justify="left")
    table.add_column("")
    table.add_column("", overflow="fold")
    batches = findings.query.batches
    table.add_row("batches", f"{len(batches):,}, {batches[0].number} to {batches[-1].number}")
    table.add_row("input rows", f"{findings.rows:,}")
    for name, count in findings.dropped.items():
        share = f", {percent(count / findings.rows)} of the input" if findings.rows else ""
        table.add_row(Text(f"dropped by {name}"), f"{count:,}{share}")
    if not findings.stateful:
        table.add_row("dropped", "no stateful operator")
    delay, widest = findings.delay(), findings.widest()
    if not findings.has_event_time:
        table.add_row("watermark", "none")
    elif delay is not None:
        table.add_row("delay of the watermark", shown(delay))
    if widest is not None:
        told = f"{shown(widest[1])} from smallest to largest, in batch {widest[0].number}"
        table.add_row("widest batch", told)
    stood = findings.standstills()
    if stood:
        batches_stood = sum(one.last - one.first for one in stood)
        table.add_row(
            "standstills", f"{len(stood):,}, over {counted(batches_stood, 'batch', 'batches')}"
        )
    return table


def show_losses(console: Console, losses: Losses) -> None:
    """One global watermark beside Tidegate, on one input."""
    arrivals, question = losses.arrivals, losses.question
    window = "no window" if question.window is None else f"windows of {shown(question.window)}"
    waits = "waiting for its input" if question.live else "draining a backlog"
    console.print(
        f"{counted(losses.rows, 'row')}, {counted(len(losses.partitions), 'partition')},"
        f" {counted(arrivals.files, 'file')};"
        f" {window}, a delay of {shown(question.delay)}, {question.batching}, {waits}.",
        markup=False,
    )
    table = _table(
        "partition", "rows", "from", "to", "Spark loses", "Tidegate loses",
        left=("partition", "from", "to"),
    )  # fmt: skip
    for part in losses.partitions[:MOST]:
        table.add_row(
            Text(part.name),
            f"{part.rows:,}",
            format_instant(part.smallest),
            format_instant(part.largest),
            _lost(part.stock, part.rows),
            _lost(part.tidegate, part.rows),
        )
    if len(losses.partitions) > 1:
        table.add_section()
        stock, ours = losses.lost, losses.lost_by_tidegate
        table.add_row(
            "all", f"{losses.rows:,}", "", "", _lost(stock, losses.rows), _lost(ours, losses.rows)
        )
    console.print(table)
    _more(console, len(losses.partitions), "partitions")
    _conclude(console, losses.conclusion(), bad=losses.lost > 0)


def _lost(count: int, rows: int) -> Text:
    return Text(
        f"{count:,} ({percent(count / rows)})" if count else "0", "red" if count else "green"
    )


def _table(*titles: str, left: tuple[str, ...] = ()) -> Table:
    table = Table()
    for title in titles:
        justify: JustifyMethod = "left" if title in left else "right"
        table.add_column(title, justify=justify, overflow="fold", no_wrap=title in TIMES)
    return table


def _more(console: Console, count: int, what: str) -> None:
    if count > MOST:
        console.print(f"The worst {MOST} of {count:,} {what}; --json has all.", style="dim")


def _conclude(console: Console, sentences: list[str], *, bad: bool) -> None:
    for number, sentence in enumerate(sentences):
        style = "bold red" if bad and number == 0 else ""
        console.print(Text(sentence, style=style))
