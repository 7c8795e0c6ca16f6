"""`tidegate doctor`: what is wrong with a machine, a store, or a stock streaming query.

Without options it looks at the machine. With `--store` and `--spark` it also tries a store and a
session. `--progress` and `--input` are about a query of stock Spark: what its one watermark did,
and what it would do. The exit code is 0 when all is well, 1 when a check failed or rows are lost,
and 2 for a mistake on the command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from tidegate import errors
from tidegate.cli.doctor.arrivals import Arrivals, Batching
from tidegate.cli.doctor.checks import Check, failed, table_of
from tidegate.cli.doctor.files import read_files
from tidegate.cli.doctor.findings import Findings
from tidegate.cli.doctor.losses import Losses, Question, judge
from tidegate.cli.doctor.machine import check_machine
from tidegate.cli.doctor.packages import check_packages, check_worker
from tidegate.cli.doctor.progress import read_progress
from tidegate.cli.doctor.screen import show_findings, show_losses
from tidegate.cli.doctor.store import check_store
from tidegate.cli.doctor.stream import read_stream
from tidegate.cli.terminal import open_console
from tidegate.eventtime.instants import parse_duration
from tidegate.store import Store

DELAY = "10 seconds"
WINDOW = "1 minute"
NO_WINDOW = "none"


def doctor(
    store: Annotated[
        str | None, typer.Option(help="Also try a store: a folder, or a catalog URL.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Where the data lies, for a catalog URL.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also start a session and run a task in it.")
    ] = False,
    progress: Annotated[
        str | None,
        typer.Option(help="What a stock query dropped: its progress, as JSON lines or an array."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--input", help="What a stock query would drop: its Parquet, CSV or JSON files."
        ),
    ] = None,
    stream: Annotated[
        str | None, typer.Option(help="The same for a stream of the --store.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column with the event time.")] = None,
    time_type: Annotated[
        str | None, typer.Option(help="How to read it, such as unixtimestamp_ms.")
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(help="A column that tells partitions apart; else folders, or segments."),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(help="The delay of the watermark.", show_default=DELAY),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(help="The size of tumbling windows, or none.", show_default=WINDOW),
    ] = None,
    batch_files: Annotated[
        int | None,
        typer.Option(min=1, help="Files (or commits) to a batch.", show_default="1"),
    ] = None,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows to a batch, instead of files.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="The query waits for each batch, instead of draining a backlog."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Look for what is wrong: with this machine, a store, or a stock streaming query."""
    asked = {
        "--time": time,
        "--time-type": time_type,
        "--partition": partition,
        "--delay": delay,
        "--window": window,
        "--batch-files": batch_files,
        "--batch-rows": batch_rows,
        "--live": live or None,
    }
    _refuse_what_says_nothing(asked, store, data, source, stream)
    question = Question(
        None if window == NO_WINDOW else _positive("window", window or WINDOW),
        parse_duration(delay or DELAY),
        Batching(batch_files or 1, batch_rows),
        live,
    )
    report = _Report(open_console(), as_json)
    if progress is not None:
        report.progress(progress)
    if source is not None:
        assert time is not None, "refused above"
        kind = time_type or "iso8601"
        report.losses(
            lambda: read_files(source, time, kind, partition, question.batching), question
        )
    if stream is not None:
        assert store is not None, "refused above"
        report.losses(lambda: _of_stream(store, data, stream, partition, question), question)
    reported = progress is not None or source is not None or stream is not None
    if spark or not reported or (store is not None and stream is None):
        report.checks(None if stream is not None else store, data, spark=spark)
    raise typer.Exit(report.finish())


def _refuse_what_says_nothing(
    asked: Mapping[str, object], store: str | None, data: str | None, source: str | None,
    stream: str | None,
) -> None:  # fmt: skip
    """No option is taken and ignored."""
    if source is not None and stream is not None:
        raise errors.options_exclude("--input", "--stream")
    if stream is not None and store is None:
        raise errors.option_needs_another("--stream", "--store")
    if data is not None and store is None:
        raise errors.option_needs_another("--data", "--store")
    if source is not None and asked["--time"] is None:
        raise errors.option_needs_another("--input", "--time")
    for name, value in asked.items():
        # A stream knows its time itself.
        of_files = name in ("--time", "--time-type")
        if value is not None and source is None and (of_files or stream is None):
            raise errors.option_needs_another(name, "--input")
    if asked["--batch-rows"] is not None and asked["--batch-files"] is not None:
        raise errors.options_exclude("--batch-rows", "--batch-files")


def _positive(name: str, text: str) -> timedelta:
    found = parse_duration(text)
    if found <= timedelta(0):
        raise errors.wrong_setting(name, text, ["a duration such as 1 minute", NO_WINDOW])
    return found


def _of_stream(
    address: str, data: str | None, stream: str, partition: str | None, question: Question
) -> Arrivals:
    found = check_store(address, data)
    if failed(found):  # opening it would make a store where there is none
        raise errors.input_not_read(f'stream "{stream}"', "; ".join(one.found for one in found))
    with Store.open(address, data=data, embedded_marks=False) as store:
        return read_stream(store, stream, partition, question.batching)


@dataclass
class _Report:
    """Says everything once: on the screen as it comes, or as one JSON object at the end."""

    console: Console
    as_json: bool

    def __post_init__(self) -> None:
        self._told: dict[str, Any] = {}
        self._well = True

    def progress(self, file: str) -> None:
        """What a stock query dropped."""
        for query in read_progress(file):
            findings = Findings(query)
            self._told.setdefault("progress", []).append(findings.as_json())
            self._well &= not findings.dropped.total()
            if not self.as_json:
                show_findings(self.console, findings)

    def losses(self, read: Callable[[], Arrivals], question: Question) -> None:
        """What a stock query would drop."""
        with Progress(console=open_console(stderr=True), transient=True) as bar:
            task = bar.add_task("reading", total=None)
            arrivals = read()
            if not arrivals.rows:
                raise errors.input_not_read("the input", "no row of it has a time that can be read")
            bar.update(task, description="judging", total=1.0)
            losses = judge(arrivals, question, lambda done: bar.update(task, completed=done))
        self._tell(losses)

    def _tell(self, losses: Losses) -> None:
        self._told["input"] = losses.as_json()
        self._well &= not losses.lost
        if not self.as_json:
            show_losses(self.console, losses)

    def checks(self, store: str | None, data: str | None, *, spark: bool) -> None:
        """The machine, and what else was asked for."""
        with self._waiting("looking at the machine"):
            found = [*check_machine(), *check_worker(), *check_packages()]
        if store is not None:
            with self._waiting("looking at the store"):
                found += check_store(store, data)
        if spark:
            # Spark takes a second to import: only for those who run it.
            from tidegate.cli.doctor.spark import check_spark

            with self._waiting("a Spark session runs a task"):
                found.append(check_spark())
        self._told["checks"] = [check.as_json() for check in found]
        self._well &= not failed(found)
        if not self.as_json:
            self.console.print(table_of(found))
            self.console.print(_verdict(found))

    def finish(self) -> int:
        """Print what is left, and return the exit code."""
        if self.as_json:
            told = {"well": self._well, **self._told}
            self.console.print(json.dumps(told, indent=2), markup=False, soft_wrap=True)
        return 0 if self._well else 1

    def _waiting(self, what: str) -> AbstractContextManager[Any]:
        if self.as_json or not self.console.is_terminal:
            return nullcontext()
        return self.console.status(what)


def _verdict(checks: list[Check]) -> str:
    bad = [check.name for check in checks if check.state.value == "failed"]
    return f"{len(bad)} failed: {', '.join(bad)}" if bad else "nothing failed"
