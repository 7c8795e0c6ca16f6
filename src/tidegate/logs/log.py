"""The log: the narrow contract that every source of rows implements.

A log is one stream of partitions; an offset never changes its row. It tells a planner what is there
(`snapshot`, `overlapping`, `cut_at`) and a reader the rows (`read`). It is small enough to travel:
what is pickled is its description, and whoever receives it opens the same log again.

>>> from tidegate.eventtime.watermark import UNKNOWN
>>> from tidegate.testing import MemoryLog
>>> memory = MemoryLog()
>>> memory.add_stream("orders", ["0"])
>>> memory.append("orders", "0", [10, 30, 20])
>>> log = memory.log("orders")
>>> facts = facts_of({"orders": log}, PlannerState.fresh("q1", ["orders"]))
>>> facts.streams["orders"].spans.max_time.tolist(), facts.ask.cut_at("orders", 25)
([30], {'0': 0})
>>> [batch.to_pylist() for batch in log.read("0", 1, 3, ["_offset"], times=(UNKNOWN, 25))]
[[{'_offset': 2}]]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import Known
from tidegate.planning.facts import Facts, Offsets, Questions, Spans, StreamFacts
from tidegate.planning.state import PlannerState

EVENT_TIME: Final = "_event_time"
OFFSET: Final = "_offset"
REASON: Final = "_reason"

SYSTEM: Final = {EVENT_TIME: pa.timestamp("us", tz="UTC"), OFFSET: pa.int64()}
"""Columns that every log has beside the user's; they are given when they are asked for."""

Description: TypeAlias = dict[str, Any]
"""A log as plain JSON: its kind, and the options to open it with."""

Times: TypeAlias = tuple[Known, Instant]
"""Event time [a, b); UNKNOWN: from the beginning."""

KINDS: Final[Mapping[str, str]] = {
    "files": "tidegate.logs.files:FileLog.opened",
    "nexmark": "tidegate.logs.nexmark:NexmarkLog.opened",
    "store": "tidegate.logs.store_log:StoreLog.opened",
    "memory": "tidegate.testing.memory_log:MemoryStream.opened",
}
"""Who opens a description. Names, not functions: a log is loaded only when it is asked for."""


class Log(Protocol):
    """One stream: partitions of rows with offsets, statistics of runs of rows, and the rows.

    Bad rows (no event time, or one that cannot be read, or one from the future) have offsets like
    all others, but times speak of good rows only, `read` gives only those, and `bad_rows` the rest.
    """

    @property
    def name(self) -> str:
        """The stream's name."""

    @property
    def schema(self) -> pa.Schema:
        """The user's columns."""

    @property
    def bounded(self) -> bool:
        """Whether it comes to an end."""

    def snapshot(self, after: Offsets) -> StreamFacts:
        """In one consistent read: the partitions, and the spans and marks behind a cut.

        A partition the cut does not have begins where it begins.
        """

    def overlapping(self, a: Known, b: Instant, start: Offsets, below: Offsets) -> Spans:
        """The spans between two cuts that can hold a time in [a, b); UNKNOWN: from the beginning.

        Raises when some of them are truncated.
        """

    def cut_at(self, time: Instant) -> Offsets:
        """Per partition an offset that has every row at or after `time` behind it."""

    def read(
        self,
        partition: str,
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
        times: Times | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The good rows with offsets in [start, end), in their order.

        `columns`: the user's, in the order they are asked for; `_event_time` and `_offset` are
        given when named. `times`: only rows with an event time in [a, b).
        """

    def bad_rows(self, partition: str, start: int, end: int) -> pa.Table:
        """The bad rows with offsets in [start, end): all columns, `_offset` and `_reason`."""

    def version(self) -> int:
        """A number that differs when anything has changed; compare it with nothing but itself."""

    def describe(self) -> Description:
        """What `open_log` needs to open the same log elsewhere."""


def open_log(description: Mapping[str, Any]) -> Log:
    """Open a log from its description."""
    kind = str(description.get("kind"))
    if kind not in KINDS:
        raise errors.log_kind_unknown(kind, KINDS)
    module, _, path = KINDS[kind].partition(":")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    log: Log = found(description)
    return log


# ---- for planners ----


class _Asked:
    """Questions of a planner, each handed to the log of its stream."""

    def __init__(self, logs: Mapping[str, Log]) -> None:
        self._logs = logs

    def overlapping(
        self, stream: str, a: Known, b: Instant, start: Offsets, below: Offsets
    ) -> Spans:
        return self._logs[stream].overlapping(a, b, start, below)

    def cut_at(self, stream: str, time: Instant) -> Offsets:
        return self._logs[stream].cut_at(time)


def questions_of(logs: Mapping[str, Log]) -> Questions:
    """What may be asked about the past; nobody looks at what there is now."""
    return _Asked(logs)


def facts_of(logs: Mapping[str, Log], state: PlannerState) -> Facts:
    """What the logs tell a planner in this state: every stream of the query, behind its cut."""
    for name in state.streams:
        if name not in logs:
            raise errors.unknown_stream(name, logs)
    return Facts(
        {name: logs[name].snapshot(stream.cut()) for name, stream in state.streams.items()},
        _Asked(logs),
    )


# ---- for logs ----


def read_schema(
    stream: str,
    schema: pa.Schema,
    columns: Sequence[str] | None,
    system: Mapping[str, pa.DataType] = SYSTEM,
) -> pa.Schema:
    """The schema of what `read` gives when these columns are asked for.

    `system`: those that the log has beside the user's, where it has more than every log.
    """
    if columns is None:
        return schema
    fields = []
    for column in columns:
        if column in system:
            fields.append(pa.field(column, system[column]))
        elif column in schema.names:
            fields.append(schema.field(column))
        else:
            raise errors.unknown_column(stream, column, [*schema.names, *system])
    return pa.schema(fields)


def bad_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of bad rows."""
    return schema.append(pa.field(OFFSET, pa.int64())).append(pa.field(REASON, pa.string()))


def check_range(
    log: str, partition: str, start: int, end: int, *, first: int = 0, latest: int
) -> None:
    """Refuse offsets that are not there: a window is never silently partial."""
    if start < first < end:
        raise errors.rows_truncated(log, partition, start, first)
    if not 0 <= start <= end <= latest:
        raise errors.log_offsets_missing(log, partition, start, end, latest)


def check_partition(log: str, partition: str, known: Sequence[str]) -> None:
    """Refuse a partition that is not there."""
    if partition not in known:
        raise errors.log_partition_unknown(log, partition, known)


def instants(values: Any) -> pa.Array:
    """A column of `_event_time` from microseconds."""
    return pa.array(values, type=pa.int64()).cast(SYSTEM[EVENT_TIME])
