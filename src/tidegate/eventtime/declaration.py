"""Which column of a stream is its event time, and whether a query goes by it.

A stream declares (`eventtime.column`, `eventtime.type`); a query switches event time on and says
how much disorder it tolerates. Switching it on without a declaration is an error when the query is
planned; a wrong declaration is one when it is checked against the schema. Rows are never an error.

>>> declaration = EventTimeDeclaration.from_mapping({"eventtime.column": "at"})
>>> declaration
EventTimeDeclaration(column='at', type='iso8601')
>>> options = EventTimeOptions.from_mapping({"eventtime.enabled": "true", "lateTolerance": "5s"})
>>> options.enabled, options.late_tolerance
(True, datetime.timedelta(seconds=5))
>>> orders = Message("orders", {"at": "1970-01-01T00:00:01Z"})
>>> event_time_of([Message("rates", {}), orders], {"orders": declaration}, EventTimeRegistry())
1000000
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tidegate import errors
from tidegate.eventtime.instants import format_duration, parse_duration
from tidegate.eventtime.parsers.column import BadReason, Parsed
from tidegate.eventtime.parsers.parser import EventTimeParser
from tidegate.eventtime.registry import EventTimeRegistry

PREFIX: Final = "eventtime."

_COLUMN: Final = "eventtime.column"
_TYPE: Final = "eventtime.type"
_ENABLED: Final = "eventtime.enabled"
_TOLERANCES: Final = ("eventtime.late_tolerance", "eventtime.lateTolerance", "lateTolerance")

_WORDS: Final = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}


@dataclass(frozen=True)
class EventTimeDeclaration:
    """The event time of a stream: its column, and the type that reads it.

    The type may be left out where the column holds timestamps or ISO 8601 texts.
    """

    column: str
    type: str = "iso8601"

    @staticmethod
    def from_mapping(options: Mapping[str, Any]) -> EventTimeDeclaration | None:
        """The declaration among the options of a stream; None when there is none.

        Options that do not begin with `eventtime.` belong to somebody else.
        """
        _refuse_unknown(options, (_COLUMN, _TYPE))
        given = {key: options[key] for key in (_COLUMN, _TYPE) if key in options}
        if not given:
            return None
        for key in (_COLUMN, _TYPE):
            value = given.get(key, None if key == _COLUMN else "iso8601")
            if not isinstance(value, str) or not value.strip():
                what = "the name of a column" if key == _COLUMN else "the name of a type"
                raise errors.wrong_setting(key, value, [what])
        return EventTimeDeclaration(given[_COLUMN], given.get(_TYPE, "iso8601"))

    def resolve(self, registry: EventTimeRegistry, *, stream: str) -> EventTimeParser:
        """The parser of the declared type."""
        return registry.resolve(self.type, stream=stream, column=self.column)

    def validate(
        self, schema: pa.Schema, registry: EventTimeRegistry, *, stream: str
    ) -> EventTimeParser:
        """Check the declaration against the stream's schema; return the parser it names."""
        parser = self.resolve(registry, stream=stream)
        found = schema.get_all_field_indices(self.column)
        if len(found) != 1:
            raise errors.event_time_column_missing(stream, self.column, schema.names)
        kind = schema.field(found[0]).type
        if not parser.accepts(kind):
            raise errors.event_time_column_unreadable(
                stream, self.column, str(kind), self.type, parser.reads, registry.list()
            )
        return parser


@dataclass(frozen=True)
class EventTimeOptions:
    """What a query says about event time."""

    enabled: bool = False
    late_tolerance: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.late_tolerance < timedelta(0):
            negative = f"-{format_duration(-self.late_tolerance)}"
            raise errors.wrong_setting(_TOLERANCES[0], negative, ["0 or more"])

    @staticmethod
    def from_mapping(options: Mapping[str, Any]) -> EventTimeOptions:
        """The values among the options of a query.

        A tolerance has a unit ("5s") or is a timedelta; a bare number is refused, for systems
        disagree on what it means. Only 0 needs no unit.
        """
        _refuse_unknown(options, (_ENABLED, *_TOLERANCES))
        spelled = [key for key in _TOLERANCES if key in options]
        if len(spelled) > 1:
            raise errors.setting_given_twice(_TOLERANCES[0], spelled)
        return EventTimeOptions(
            enabled=_switch(_ENABLED, options.get(_ENABLED, False)),
            late_tolerance=_duration(spelled[0], options[spelled[0]]) if spelled else timedelta(0),
        )

    def require(self, declarations: Mapping[str, EventTimeDeclaration | None]) -> None:
        """Check, when a query over these streams is planned, that it has an event time.

        One declaring stream is enough: a row joined from several has the time of the first that
        declares one.
        """
        if self.enabled and not any(declarations.values()):
            raise errors.event_time_not_declared(declarations)


class Message(NamedTuple):
    """One row of one stream, as it stands in a tuple of several."""

    stream: str
    row: Mapping[str, object]


def event_time_of(
    messages: Iterable[Message],
    declarations: Mapping[str, EventTimeDeclaration],
    registry: EventTimeRegistry,
) -> Parsed:
    """The event time of a tuple: that of its first message whose stream declares one.

    That message decides, also when its time is bad; later ones are not asked instead.
    """
    for stream, row in messages:
        declaration = declarations.get(stream)
        if declaration is not None:
            parser = declaration.resolve(registry, stream=stream)
            return parser.parse(row.get(declaration.column))
    return BadReason.MISSING


def _refuse_unknown(options: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in options:
        if key.startswith(PREFIX) and key not in known:
            raise errors.unknown_setting(key, known)


def _switch(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _WORDS:
        raise errors.wrong_setting(key, value, ["true", "false"])
    return _WORDS[word]


def _duration(key: str, value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str) and value.strip() != "0":
        try:
            return parse_duration(value)
        except errors.InputError:
            pass
    elif str(value).strip() == "0":
        return timedelta(0)
    raise errors.wrong_setting(key, value, ["a number with a unit, such as 500ms or 5s", "0"])
