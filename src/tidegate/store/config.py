"""What a stream is: its schema, its event time, its routing key, and how it is kept.

>>> import pyarrow as pa
>>> orders = StreamConfig(pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))]),
...                       event_column="at", routing_key=("id",), segments=2)
>>> orders.scaling, orders.mark_timeout
(Scaling(target_rows=None, minimum=1), datetime.timedelta(seconds=30))
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from tidegate import errors
from tidegate.eventtime.declaration import EventTimeDeclaration
from tidegate.eventtime.instants import micros
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.store.routing import can_route_by

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*(\.[A-Za-z_][A-Za-z0-9_\-]*)*")
LONGEST_NAME: Final = 200

RESERVED: Final = ("_event_time", "_partition", "_offset", "_timestamp", "_watermark")
"""System columns: the names are taken, in any case."""


@dataclass(frozen=True)
class Scaling:
    """`target_rows` per second and segment; none: only by hand. Never fewer than `minimum`."""

    target_rows: float | None = None
    minimum: int = 1

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"target_rows": self.target_rows, "minimum": self.minimum}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Scaling:
        """The inverse of `to_json`."""
        return Scaling(value["target_rows"], value["minimum"])


@dataclass(frozen=True)
class Retention:
    """What may be truncated: rows older than `age`, or beyond `size` bytes; none: nothing."""

    age: timedelta | None = None
    size: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"age": None if self.age is None else micros(self.age), "size": self.size}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Retention:
        """The inverse of `to_json`."""
        age = None if value["age"] is None else timedelta(microseconds=value["age"])
        return Retention(age, value["size"])


@dataclass(frozen=True)
class StreamConfig:
    """A stream as it is declared.

    Without an `event_column` a row's time is the moment it is committed. Without a `routing_key`
    any segment may hold any row. `max_future` None: rows may come from any future.
    """

    schema: pa.Schema
    event_column: str | None = None
    event_type: str = "iso8601"
    routing_key: tuple[str, ...] = ()
    segments: int = 1
    scaling: Scaling = field(default_factory=Scaling)
    retention: Retention = field(default_factory=Retention)
    mark_timeout: timedelta = timedelta(seconds=30)
    max_future: timedelta | None = timedelta(minutes=5)

    def validate(self, name: str, registry: EventTimeRegistry) -> None:
        """Refuse what cannot be."""
        check_name(name)
        if self.segments < 1:
            raise errors.wrong_setting("segments", self.segments, ["1 or more"])
        if len(set(self.schema.names)) != len(self.schema.names):
            raise errors.column_given_twice(name, self.schema.names)
        for column in self.schema.names:
            if column.lower() in RESERVED:
                raise errors.column_reserved(name, column, RESERVED)
        for column in self.routing_key:
            if column not in self.schema.names:
                raise errors.unknown_column(name, column, self.schema.names)
            kind = self.schema.field(column).type
            if not can_route_by(kind):
                raise errors.routing_key_not_hashable(column, str(kind))
        declared = self.declaration
        if declared is not None:
            declared.validate(self.schema, registry, stream=name)

    @property
    def declaration(self) -> EventTimeDeclaration | None:
        """The event time as the registry knows it."""
        if self.event_column is None:
            return None
        return EventTimeDeclaration(self.event_column, self.event_type)


def check_name(name: str) -> None:
    """Refuse a stream name that a path, a URL or SQL would stumble over."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise errors.stream_name_not_valid(name, LONGEST_NAME)
