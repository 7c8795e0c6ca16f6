"""The progress of a stock streaming query: what Spark itself wrote down, batch by batch.

A file holds one JSON object per line or an array of them, as `query.recentProgress` and listeners
give them. Several queries may stand in one file; a batch that was run again counts once, as it came
out in the end. What Spark left out is none here, never zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate import errors
from tidegate.eventtime.instants import Instant, parse_instant


@dataclass(frozen=True)
class Batch:
    """One batch: when it began, how much came in, and what its operators dropped."""

    number: int
    began_at: Instant | None
    rows: int
    dropped: dict[str, int]
    """Rows dropped by the watermark, by stateful operator."""
    has_event_time: bool
    watermark: Instant | None
    """None where Spark has none, which it writes as the beginning of 1970."""
    smallest: Instant | None
    largest: Instant | None


@dataclass(frozen=True)
class QueryProgress:
    """The batches of one query, in order."""

    name: str
    batches: tuple[Batch, ...]


def read_progress(file: str) -> list[QueryProgress]:
    """The queries in a file, in the order in which they come in it."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        reason = getattr(failure, "strerror", None) or "it is not a text in UTF-8"
        raise errors.progress_not_read(file, reason) from None
    found: dict[str, dict[int, Batch]] = {}
    names: dict[str, str] = {}
    for place, entry in _entries(file, text):
        try:
            batch = _batch(entry)
        except (KeyError, TypeError, ValueError, AttributeError, errors.InputError) as failure:
            raise errors.progress_not_read(place, _reason(failure)) from None
        query = str(entry.get("id") or entry.get("name") or "")
        names[query] = str(entry.get("name") or entry.get("id") or "the query")
        # The later one counts: a batch is run again after a failure, and a query that waits tells
        # the number of the batch that it waits for.
        found.setdefault(query, {})[batch.number] = batch
    if not found:
        raise errors.progress_not_read(file, "there is no progress in it")
    return [
        QueryProgress(names[query], tuple(batches[number] for number in sorted(batches)))
        for query, batches in found.items()
    ]


def _entries(file: str, text: str) -> Iterator[tuple[str, Any]]:
    """Every object, with its place for an error."""
    if text.lstrip().startswith("["):
        for number, entry in enumerate(_parsed(file, text, first_line=1), start=1):
            yield f"{file}, entry {number}", entry
        return
    lines = text.splitlines()
    if len(lines) > 1 and (whole := _one_object(text)) is not None:
        yield file, whole
        return
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"{file}, line {number}", _parsed(file, line, first_line=number)


def _one_object(text: str) -> dict[str, Any] | None:
    """A single object over several lines, as it is printed to be read."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _parsed(file: str, text: str, *, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as failure:
        line = first_line + failure.lineno - 1
        reason = f"{failure.msg}, column {failure.colno}"
        raise errors.progress_not_read(f"{file}, line {line}", reason) from None
    except RecursionError:
        raise errors.progress_not_read(file, "it is nested too deeply") from None


def _batch(entry: Any) -> Batch:
    if not isinstance(entry, dict):
        raise ValueError("it is not a JSON object")
    if "batchId" not in entry and isinstance(entry.get("progress"), dict):
        entry.update(entry.pop("progress"))  # a listener's event has it inside
    if "batchId" not in entry:
        raise ValueError("it has no batchId, as the progress of a streaming query has")
    rows = entry.get("numInputRows")
    if rows is None:
        rows = sum(_count(source, "numInputRows") for source in entry.get("sources") or ())
    dropped: dict[str, int] = {}
    for operator in entry.get("stateOperators") or ():
        name = kind = str(operator.get("operatorName") or "stateful operator")
        while name in dropped:
            name = f"{kind} ({len(dropped) + 1})"
        dropped[name] = _count(operator, "numRowsDroppedByWatermark")
    times = entry.get("eventTime") or {}
    watermark = _instant(times, "watermark")
    return Batch(
        number=_count(entry, "batchId"),
        began_at=_instant(entry, "timestamp"),
        rows=_count({"numInputRows": rows}, "numInputRows"),
        dropped=dropped,
        has_event_time=bool(times),
        watermark=watermark or None,
        smallest=_instant(times, "min"),
        largest=_instant(times, "max"),
    )


def _count(entry: dict[str, Any], name: str) -> int:
    value = entry.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value!r}, not a number of at least 0")
    return value


def _instant(entry: dict[str, Any], name: str) -> Instant | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, not a time")
    return None if value is None else parse_instant(value)


def _reason(failure: Exception) -> str:
    if isinstance(failure, errors.InputError):
        return failure.detail.rstrip(".") or failure.primary
    if isinstance(failure, ValueError):
        return str(failure)
    return "it is not the progress of a streaming query"
