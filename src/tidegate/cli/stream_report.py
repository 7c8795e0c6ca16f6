"""What `tidegate stream describe` shows: declaration, segments, disorder, writers, marks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from sqlalchemy import Connection, func, select

from tidegate.eventtime.instants import format_duration, format_instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.generation import MarkPolicy, cycle
from tidegate.store import Store
from tidegate.store.catalog import marks
from tidegate.store.catalog.schema import chunks
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord

TOLERANCES: Final = (
    timedelta(0),
    timedelta(seconds=1),
    timedelta(seconds=5),
    timedelta(seconds=30),
    timedelta(minutes=5),
    timedelta(hours=1),
)


def describe_stream(store: Store, name: str) -> list[RenderableType]:
    """The parts of the report, in order."""
    stream = store.describe(name)
    return [
        _declaration(stream),
        _segments(store.segments(name)),
        _disorder(store, stream),
        _writers(store, stream),
    ]


def _declaration(stream: StreamRecord) -> Table:
    config = stream.config
    table = Table(title=stream.name, show_header=False, title_justify="left")
    table.add_row("columns", ", ".join(f"{f.name}: {f.type}" for f in config.schema))
    time = f"{config.event_column}, as {config.event_type}" if config.event_column else "arrival"
    table.add_row("event time", time)
    table.add_row("routing key", ", ".join(config.routing_key) or "none")
    table.add_row("epoch", str(stream.epoch))
    kept = config.retention
    age = "any age" if kept.age is None else format_duration(kept.age)
    size = "any size" if kept.size is None else f"{kept.size:,} bytes"
    table.add_row("kept", f"{age}, {size}")
    table.add_row("mark time-out", format_duration(config.mark_timeout))
    future = config.max_future
    table.add_row("rows from the future", "any" if future is None else format_duration(future))
    return table


def _segments(records: list[SegmentRecord]) -> Table:
    table = Table()
    for title in ("segment", "keys", "rows", "bytes", "from", "to", "disorder"):
        left = title in ("segment", "keys")
        table.add_column(title, justify="left" if left else "right", overflow="fold")
    for r in records:
        state = "" if r.segment.is_open else " sealed"
        table.add_row(
            f"{r.name}{state}",
            f"[{float(r.segment.low):g}, {float(r.segment.high):g})".replace("[", r"\["),
            f"{r.end - r.start:,}",
            f"{r.bytes:,}",
            "" if r.min_time is None else format_instant(r.min_time),
            "" if r.max_time is None else format_instant(r.max_time),
            format_duration(timedelta(microseconds=r.disorder)),
        )
    return table


def _disorder(store: Store, stream: StreamRecord) -> RenderableType:
    """How many rows each tolerance could lose at most, by the disorder of the chunks."""
    rows = chunks.c.end_offset - chunks.c.start_offset

    def counts(on: Connection) -> list[tuple[int, int]]:
        of_stream = select(func.coalesce(func.sum(rows), 0)).where(chunks.c.stream_id == stream.id)
        total = int(on.execute(of_stream).scalar_one())
        return [
            (int(on.execute(of_stream.where(chunks.c.disorder > micros(t))).scalar_one()), total)
            for t in TOLERANCES
        ]

    found = store.database.read(counts)
    if not found[0][1]:
        return "no rows yet"
    lines = ["with a tolerance of"]
    for tolerance, (late, total) in zip(TOLERANCES, found, strict=True):
        at_most = "no row would have been late" if not late else f"at most {late:,} of {total:,}"
        lines.append(f"  {format_duration(tolerance):>4}: {at_most}")
        if not late:
            break
    return "\n".join(lines)


def _writers(store: Store, stream: StreamRecord) -> RenderableType:
    schedule = store.database.read(lambda on: marks.schedule(on, stream.name))
    if schedule is None or not schedule.writers:
        return "no writer notes time"
    table = Table()
    for title in ("writer", "noted", "state"):
        table.add_column(title)
    next_cycle = cycle(
        schedule.generation,
        schedule.writers,
        schedule.lineage,
        now=store.clock(),
        policy=MarkPolicy(stream.config.mark_timeout),
    )
    for writer in schedule.writers:
        state = "open" if writer.alive else "closed"
        held = ", holds the marks" if writer.writer in next_cycle.held_by else ""
        table.add_row(writer.writer, _told(writer.time), f"{state}{held}")
    return table


def _told(time: Known) -> Any:
    return "nothing yet" if time is UNKNOWN else format_instant(time)
