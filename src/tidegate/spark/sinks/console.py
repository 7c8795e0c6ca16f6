"""The console sink: prints the first rows of every batch, to see what a job does.

It remembers nothing, so a batch that runs again after a crash is printed again, with the same
number: at least once. A batch without rows is not printed. On Spark Connect batches run beside the
server, and so it prints there.

>>> print(shown(["item", "n"], [["tea", 12], [None, 3]], total=5))
item   n
tea   12
null   3
... and 3 more
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from numbers import Number
from typing import Any, ClassVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tidegate.eventtime.instants import format_instant
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.spark.arrow_types import cast
from tidegate.spark.sinks.sink import Batch, FrameSink

WIDEST = 40
"""Longer values are cut."""


@dataclass(frozen=True)
class ConsoleSink(FrameSink):
    """Print the first `rows` rows of every batch, and how many there are."""

    rows: int = 20
    kind: ClassVar[str] = "console"

    def take(self, rows: DataFrame, batch: Batch) -> int:
        """Compute the batch once, bring its first rows here, and print them."""
        first, total = _first(rows, batch.columns, self.rows)
        if total:
            values = [list(row.values()) for row in first.to_pylist()]
            table = shown(batch.columns.names, values, total)
            # In one piece: other threads print too.
            print(f"{headline(batch, total)}\n{table}\n", flush=True)
        return total


def headline(batch: Batch, total: int) -> str:
    """Which batch it is, and which event time it completes."""
    when = ""
    if batch.interval is not None:
        a, b = batch.interval.a, batch.interval.b
        when = f", {'from the beginning' if a is UNKNOWN else format_instant(a)} to"
        when += f" {format_instant(b)}"
    return f"{batch.job}, batch {batch.number}{when}: {total:,} row{'' if total == 1 else 's'}"


def shown(names: Sequence[str], rows: Sequence[Sequence[Any]], total: int) -> str:
    """Rows in columns; numbers stand to the right."""
    texts = [[_text(value) for value in row] for row in rows]
    lines: list[list[str]] = [[] for _ in range(len(rows) + 1)]
    for place, name in enumerate(names):
        column = [name, *(row[place] for row in texts)]
        width = max(len(text) for text in column)
        values = [row[place] for row in rows if row[place] is not None]
        right = bool(values) and all(isinstance(value, Number) for value in values)
        for line, text in zip(lines, column, strict=True):
            line.append(text.rjust(width) if right else text.ljust(width))
    made = ["  ".join(line).rstrip() for line in lines]
    if total > len(rows):
        made.append(f"... and {total - len(rows):,} more")
    return "\n".join(made)


def _first(rows: DataFrame, schema: pa.Schema, most: int) -> tuple[pa.Table, int]:
    """The first rows, and the number of all: what is not shown stays where it was computed."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        kept, count = schema.empty_table(), 0
        for batch in batches:
            if len(kept) < most:
                head = pa.Table.from_batches([cast(batch.slice(0, most - len(kept)), schema)])
                kept = pa.concat_tables([kept, head])
            count += batch.num_rows
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, schema) as stream:
            stream.write_table(kept)
        place = 0 if context is None else context.partitionId()
        yield pa.RecordBatch.from_pydict(
            {"place": [place], "count": [count], "head": [out.getvalue().to_pybytes()]}
        )

    found = rows.mapInArrow(run, "place long, count long, head binary").collect()
    found.sort(key=lambda row: row.place)
    heads = [pa.ipc.open_stream(bytes(row.head)).read_all() for row in found]
    together = pa.concat_tables([schema.empty_table(), *heads])
    return together.slice(0, most), sum(row["count"] for row in found)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ").replace("+00:00", "")
    elif isinstance(value, date | bool):
        text = str(value).lower()
    else:
        text = str(value)
    text = text.replace("\n", " ")
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
