"""File facts: the statistics of one immutable file, found once and remembered.

A file that has not changed (path, modification time, size) has the same facts for ever, so they are
kept in the process. Where a footer tells the times nothing is read; the disorder, which no footer
tells, is looked for only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from tidegate.eventtime.parsers.column import BadReason, ParsedColumn
from tidegate.eventtime.parsers.parser import EventTimeParser
from tidegate.logs.file_formats import FileFormat, Wanted
from tidegate.logs.file_listing import ListedFile
from tidegate.logs.span_table import UNTOLD, Stretch, inner_disorder
from tidegate.planning.facts import Numbers, flags, numbers

MOST: Final = 100_000
"""How many files are remembered in a process."""


@dataclass(frozen=True)
class Reading:
    """How the files of a log are read: format, schema, event time, guard."""

    system: fs.FileSystem
    format: FileFormat
    schema: pa.Schema
    column: str | None
    parser: EventTimeParser | None
    max_future: int | None
    key: str
    """What tells this way of reading from others, for what is remembered."""


@dataclass(frozen=True, eq=False)
class FileFacts:
    """The spans of a file, and how many rows of each are bad."""

    stretch: Stretch
    bad: Numbers

    @property
    def disorder_told(self) -> bool:
        """Whether the disorder has been looked for."""
        return bool((self.stretch.inner != UNTOLD).all())


class TimedBatch(NamedTuple):
    """Rows of a file with their times: int64 microseconds, null where the row is bad."""

    first: int
    batch: pa.RecordBatch
    times: pa.Array
    reasons: pa.Array


_remembered: dict[tuple[str, ListedFile], FileFacts] = {}


def facts_of_file(how: Reading, file: ListedFile, *, disorder: bool = False) -> FileFacts:
    """The facts of a file; with its disorder only when asked for."""
    key = (how.key, file)
    found = _remembered.get(key)
    if found is None:
        found = _from_footer(how, file) or _by_reading(how, file)
    if disorder and not found.disorder_told:
        found = _by_reading(how, file)
    if len(_remembered) >= MOST:
        _remembered.clear()
    _remembered[key] = found
    return found


def timed_batches(
    how: Reading,
    file: ListedFile,
    columns: list[str],
    wanted: Wanted = lambda span: True,
) -> Iterator[TimedBatch]:
    """The rows of a file, with the columns asked for and their times judged."""
    names = [name for name in how.schema.names if name in columns or name == how.column]
    # Where no column is needed one is read all the same: it tells how many rows there are.
    names = names or how.schema.names[:1]
    schema = pa.schema([how.schema.field(name) for name in names])
    with how.system.open_input_file(file.path) as source:
        for first, batch in how.format.read(source, schema, wanted):
            yield TimedBatch(first, batch, *_judged(how, file, batch))


def _judged(how: Reading, file: ListedFile, batch: pa.RecordBatch) -> ParsedColumn:
    if how.parser is None or how.column is None:
        # No event time is declared: the time of a row is its arrival.
        moments = np.full(batch.num_rows, file.modified_at, dtype=np.int64)
        return ParsedColumn(pa.array(moments), pa.nulls(batch.num_rows, pa.string()))
    times, reasons = how.parser.parse_column(batch.column(how.column))
    reasons = reasons.cast(pa.string())
    if how.max_future is None:
        return ParsedColumn(times, reasons)
    early = pc.less_equal(times, file.modified_at + how.max_future)
    future = pc.invert(early.fill_null(True))
    return ParsedColumn(
        pc.if_else(future, pa.scalar(None, pa.int64()), times),
        pc.if_else(future, BadReason.FUTURE.value, reasons),
    )


def _from_footer(how: Reading, file: ListedFile) -> FileFacts | None:
    if how.parser is None or how.column is None:
        return None
    with how.system.open_input_file(file.path) as source:
        spans = how.format.spans(source)
        if spans is None:
            return None
        source.seek(0)
        bounds = how.format.bounds(source, how.column, how.parser)
    if bounds is None:
        return None
    if how.max_future is not None:
        limit = file.modified_at + how.max_future
        if any(high > limit for _, high in bounds):
            return None
    return FileFacts(
        Stretch(
            rows=numbers(rows for rows, _ in spans),
            bytes=numbers(size for _, size in spans),
            min_time=numbers(low for low, _ in bounds),
            max_time=numbers(high for _, high in bounds),
            timed=flags(True for _ in bounds),
            inner=np.full(len(spans), UNTOLD, dtype=np.int64),
        ),
        np.zeros(len(spans), dtype=np.int64),
    )


def _by_reading(how: Reading, file: ListedFile) -> FileFacts:
    with how.system.open_input_file(file.path) as source:
        spans = how.format.spans(source)
    parts = [batch.times for batch in timed_batches(how, file, [])]
    times = pa.chunked_array(parts, type=pa.int64())
    if spans is None:
        spans = [(len(times), file.size)] if len(times) else []
    found = []
    first = 0
    for rows, size in spans:
        good = times.slice(first, rows).drop_null().to_numpy()
        low, high = (int(good.min()), int(good.max())) if len(good) else (0, 0)
        found.append((rows, size, low, high, len(good), inner_disorder(good)))
        first += rows
    columns = [numbers(column) for column in zip(*found, strict=True)] or [numbers()] * 6
    rows_, bytes_, low_, high_, good_, inner_ = columns
    stretch = Stretch(rows_, bytes_, low_, high_, good_ > 0, inner_)
    return FileFacts(stretch, rows_ - good_)
