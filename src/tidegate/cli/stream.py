"""`tidegate stream ...`: make, look at, fill and keep streams from the shell.

Every command takes the store first: a folder, or a catalog URL with `--data`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import Progress
from rich.table import Table

from tidegate import errors
from tidegate.cli.columns import parse_columns
from tidegate.cli.rows import batches_of
from tidegate.cli.stream_report import describe_stream
from tidegate.cli.terminal import open_console
from tidegate.eventtime.instants import format_instant, parse_duration, parse_instant
from tidegate.store import Retention, Scaling, Store
from tidegate.store.catalog import marks as mark_questions
from tidegate.store.compaction import compact as compact_stream
from tidegate.store.reading import read_between

T = TypeVar("T")

Address = Annotated[str, typer.Argument(help="The store: a folder, or a catalog URL.")]
Name = Annotated[str, typer.Argument(help="The stream.")]
Data = Annotated[str | None, typer.Option(help="Where the data lies, for a catalog URL.")]

app = typer.Typer(help="Make, look at, fill and keep streams.", no_args_is_help=True)


def _optional(read: Callable[[str], T], text: str | None) -> T | None:
    return None if text is None else read(text)


@app.command()
def create(
    address: Address,
    name: Name,
    column: Annotated[
        list[str], typer.Option("--column", "-c", help="name:type, once per column.")
    ],
    data: Data = None,
    event_time: Annotated[str | None, typer.Option(help="The column with the event time.")] = None,
    event_type: Annotated[str, typer.Option(help="How to read it.")] = "iso8601",
    key: Annotated[list[str] | None, typer.Option(help="A column of the routing key.")] = None,
    segments: Annotated[int, typer.Option(help="How many segments to begin with.")] = 1,
    target_rows: Annotated[
        float | None, typer.Option(help="Rows per second and segment, to scale by.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="How long rows are kept, such as 7d.")] = None,
    keep_bytes: Annotated[int | None, typer.Option(help="How many bytes are kept.")] = None,
    max_future: Annotated[str, typer.Option(help="How far ahead a row may be, or never.")] = "5m",
    exist_ok: Annotated[bool, typer.Option(help="No error if it is there, declared so.")] = False,
) -> None:
    """Create a stream."""
    with Store.open(address, data=data) as store:
        store.create_stream(
            name,
            parse_columns(column),
            exist_ok=exist_ok,
            event_column=event_time,
            event_type=event_type,
            routing_key=tuple(key or ()),
            segments=segments,
            scaling=Scaling(target_rows),
            retention=Retention(_optional(parse_duration, keep), keep_bytes),
            max_future=None if max_future == "never" else parse_duration(max_future),
        )
    open_console().print(f'stream "{name}" is there', markup=False)


@app.command("list")
def list_(address: Address, data: Data = None) -> None:
    """List the streams, with their rows."""
    table = Table()
    for title in ("stream", "segments", "rows", "bytes", "to"):
        table.add_column(title, justify="left" if title == "stream" else "right")
    with Store.open(address, data=data) as store:
        for name in store.list_streams():
            records = store.segments(name)
            reached = [r.max_time for r in records if r.max_time is not None]
            table.add_row(
                name,
                str(sum(r.segment.is_open for r in records)),
                f"{sum(r.end - r.start for r in records):,}",
                f"{sum(r.bytes for r in records):,}",
                format_instant(max(reached)) if reached else "",
            )
    open_console().print(table)


@app.command()
def describe(address: Address, name: Name, data: Data = None) -> None:
    """Show a stream: its declaration, segments, disorder, writers, and who holds the marks."""
    with Store.open(address, data=data) as store:
        for part in describe_stream(store, name):
            open_console().print(part)


@app.command()
def append(
    address: Address,
    name: Name,
    file: Annotated[str, typer.Argument(help="Rows: .parquet, .csv, .jsonl, or - for JSON lines.")],
    data: Data = None,
    writer: Annotated[str | None, typer.Option(help="The writer's id, to note time.")] = None,
    note: Annotated[str | None, typer.Option(help="Note this time after the last row.")] = None,
    route_bad: Annotated[
        bool, typer.Option(help="Route bad rows to <stream>.errors instead of refusing.")
    ] = False,
) -> None:
    """Append the rows of a file, or of standard input."""
    console = open_console()
    bad_rows = "route" if route_bad else "refuse"
    noted = _optional(parse_instant, note)
    with Store.open(address, data=data) as store:
        schema = store.describe(name).config.schema
        opened = store.writer(name, writer, notes_time=noted is not None, bad_rows=bad_rows)
        with opened as into, Progress(console=open_console(stderr=True), transient=True) as bar:
            task = bar.add_task(f"appending to {name}", total=None)
            for rows in batches_of(file, schema):
                into.append(rows)
                bar.advance(task, len(rows))
            into.flush()
            if noted is not None:
                into.note_time(noted)
        counts = into.counts
    routed = f", {sum(counts.bad.values())} bad rows routed" if counts.bad else ""
    console.print(f"{counts.rows:,} rows appended{routed}", markup=False)


@app.command()
def tail(
    address: Address,
    name: Name,
    data: Data = None,
    rows: Annotated[int, typer.Option("--rows", "-n", help="How many, per segment.")] = 10,
) -> None:
    """Print the last rows of every segment, as JSON lines."""
    console = open_console()
    with Store.open(address, data=data) as store:
        records = store.segments(name)
        end = {r.name: r.end for r in records if r.segment.is_open}
        start = {r.name: max(r.end - rows, r.start) for r in records if r.segment.is_open}
        for batch in read_between(
            store, name, start, end, system_columns=("_partition", "_offset")
        ):
            for row in batch.to_pylist():
                console.print(json.dumps(row, default=str), markup=False, soft_wrap=True)


@app.command()
def marks(
    address: Address,
    name: Name,
    data: Data = None,
    last: Annotated[int, typer.Option(help="How many.")] = 10,
) -> None:
    """List the last marks: numbers, cut and writers."""
    table = Table()
    for title in ("lower", "upper", "cut", "writers"):
        table.add_column(title)
    with Store.open(address, data=data) as store:
        stream = store.describe(name)

        def newest(on: Any) -> Any:
            number, _ = mark_questions.last(on, stream.id)
            return mark_questions.after_number(on, stream.id, number - last)

        for _, mark in store.database.read(newest):
            table.add_row(
                format_instant(mark.lower),
                format_instant(mark.upper),
                " ".join(f"{n}={offset}" for n, offset in mark.cut.items()),
                " ".join(sorted(mark.writers)),
            )
    open_console().print(table)


@app.command("cut-at")
def cut_at(
    address: Address,
    name: Name,
    time: Annotated[str, typer.Argument(help="Like 2026-01-31T12:00:00Z.")],
    data: Data = None,
) -> None:
    """Print the cut that has every row at or after a time behind it, as JSON."""
    with Store.open(address, data=data) as store:
        found = store.cut_at(name, parse_instant(time))
    open_console().print(json.dumps(found.to_json()), markup=False, soft_wrap=True)


@app.command()
def truncate(
    address: Address,
    name: Name,
    data: Data = None,
    before: Annotated[str | None, typer.Option(help="A cut, as JSON.")] = None,
    time: Annotated[str | None, typer.Option(help="Rows before this time.")] = None,
    age: Annotated[str | None, typer.Option(help="Rows committed longer ago.")] = None,
    size: Annotated[int | None, typer.Option(help="Down to so many bytes.")] = None,
) -> None:
    """Give up old rows; never more than running jobs can spare."""
    with Store.open(address, data=data) as store:
        done = store.truncate(
            name,
            before=_optional(_cut, before),
            time=_optional(parse_instant, time),
            age=_optional(parse_duration, age),
            size=size,
        )
    held = f", held back by {', '.join(done.held_by)}" if done.held_by else ""
    open_console().print(f"{done.rows:,} rows truncated{held}", markup=False)


@app.command()
def compact(address: Address, name: Name, data: Data = None) -> None:
    """Join small chunks into larger ones; no offset changes."""
    with (
        Store.open(address, data=data) as store,
        Progress(console=open_console(stderr=True), transient=True) as bar,
    ):
        bar.add_task(f"compacting {name}", total=None)
        joined, failures = compact_stream(store, name)
    console = open_console()
    console.print(f"{joined:,} chunks joined", markup=False)
    for failure in failures:
        console.print(failure, style="red", markup=False)


@app.command()
def maintain(address: Address, data: Data = None) -> None:
    """Run what is due in the whole store: retention, compaction, and the sweep of files."""
    with Store.open(address, data=data) as store:
        done = store.maintain()
    rows = sum(truncation.rows for truncation in done.truncations)
    open_console().print(
        f"{rows:,} rows truncated, {done.chunks_joined:,} chunks joined", markup=False
    )


def _cut(text: str) -> dict[str, int]:
    try:
        found = json.loads(text)
        return {str(name): int(offset) for name, offset in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise errors.wrong_setting("before", text, ['a cut such as {"0.e0": 120}']) from None
