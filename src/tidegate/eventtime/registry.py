"""The registry of event time types: which names there are, and what reads them.

A name means one parser: registering it twice is an error, unless the second says `replace=True`.
Any name that contains a % is a pattern and needs no registration. Types come from three places:
built in, registered by hand, and offered by installed packages under the entry point group
`tidegate.eventtime`.

>>> registry = EventTimeRegistry(entry_points=())
>>> registry.list()
('iso8601', 'unixtimestamp', 'unixtimestamp_ms', 'unixtimestamp_ns', 'unixtimestamp_s', \
'unixtimestamp_us')
>>> registry.resolve("unixtimestamp_ms").parse(5)
5000
>>> registry.register("german", "%d.%m.%Y %H:%M")
>>> registry.resolve("german").parse("31.01.2026 12:00")
1769860800000000
>>> registry.resolve("%Y%m%d").parse("19700102")
86400000000
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Final

from tidegate import errors
from tidegate.eventtime.parsers.function import FunctionTime, ReadColumn, ReadValue
from tidegate.eventtime.parsers.iso import IsoTime
from tidegate.eventtime.parsers.parser import EventTimeParser
from tidegate.eventtime.parsers.pattern import PatternTime
from tidegate.eventtime.parsers.unix import UnixTime

GROUP: Final = "tidegate.eventtime"
"""The entry point group; an entry names a pattern, a function of one value, or a parser."""

BUILT_IN: Final[Mapping[str, EventTimeParser]] = {
    "unixtimestamp_s": UnixTime("s"),
    "unixtimestamp": UnixTime("s"),
    "unixtimestamp_ms": UnixTime("ms"),
    "unixtimestamp_us": UnixTime("us"),
    "unixtimestamp_ns": UnixTime("ns"),
    "iso8601": IsoTime(),
}

Offers = dict[str, list[metadata.EntryPoint]]

Readable = str | ReadValue | EventTimeParser
"""A pattern, a function of one value, or a parser."""


class EventTimeRegistry:
    """Names and their parsers. Not thread safe while types are being registered.

    `entry_points` are those of the installed packages, looked up at the first question, unless
    others are given. A package's code is loaded only when its type is asked for.
    """

    def __init__(self, entry_points: Iterable[metadata.EntryPoint] | None = None) -> None:
        self._parsers = dict(BUILT_IN)
        self._patterns: dict[str, EventTimeParser] = {}
        self._given = entry_points
        self._offered: Offers | None = None

    def register(
        self,
        name: str,
        readable: Readable,
        *,
        column: ReadColumn | None = None,
        replace: bool = False,
    ) -> None:
        """Give a name to a pattern, a function of one value, or a parser.

        `column` goes with a function: the same for a whole Arrow array at once.
        """
        if not name or "%" in name or name != name.strip():
            raise errors.event_time_type_misnamed(name)
        if not replace and (name in self._parsers or name in self._offers()):
            raise errors.event_time_type_exists(name)
        self._parsers[name] = _parser_of(name, readable, column)
        self._offers().pop(name, None)

    def resolve(
        self, name: str, *, stream: str | None = None, column: str | None = None
    ) -> EventTimeParser:
        """The parser of this name; `stream` and `column` say in an error who asked for it."""
        if "%" in name:
            return self._pattern(name, stream, column)
        offers = self._offers().get(name, [])
        if len(offers) + (name in self._parsers) > 1:
            raise errors.event_time_type_ambiguous(
                name, [*_packages(offers), *(["tidegate"] if name in self._parsers else [])]
            )
        if offers:
            self._parsers[name] = _loaded(offers[0])
            del self._offers()[name]
        parser = self._parsers.get(name)
        if parser is None:
            raise errors.unknown_event_time_type(name, self.list(), stream=stream, column=column)
        return parser

    def list(self) -> tuple[str, ...]:
        """All names, in alphabetical order; those of packages too, without loading them."""
        return tuple(sorted({*self._parsers, *self._offers()}))

    def _pattern(self, pattern: str, stream: str | None, column: str | None) -> EventTimeParser:
        # Rows are read one at a time by name: the pattern is taken apart only once.
        parser = self._patterns.get(pattern)
        if parser is None:
            try:
                parser = self._patterns[pattern] = PatternTime(pattern)
            except errors.InputError as refused:
                raise errors.event_time_pattern_refused(
                    pattern, refused.fields["reason"], stream=stream, column=column
                ) from None
        return parser

    def _offers(self) -> Offers:
        if self._offered is None:
            self._offered = {}
            given = metadata.entry_points(group=GROUP) if self._given is None else self._given
            for entry_point in given:
                self._offered.setdefault(entry_point.name, []).append(entry_point)
        return self._offered


def _parser_of(name: str, readable: object, column: ReadColumn | None = None) -> EventTimeParser:
    if isinstance(readable, EventTimeParser) and not isinstance(readable, type) and column is None:
        return readable
    if isinstance(readable, str) and column is None:
        return PatternTime(readable)
    if callable(readable) and not isinstance(readable, EventTimeParser):
        return FunctionTime(readable, column)
    raise errors.event_time_type_not_readable(name, readable)


def _loaded(entry_point: metadata.EntryPoint) -> EventTimeParser:
    try:
        readable = entry_point.load()
    except Exception as problem:  # the package's own code runs here
        (package,) = _packages([entry_point])
        raise errors.event_time_type_not_loaded(
            entry_point.name, package, f"{type(problem).__name__}: {problem}"
        ) from problem
    return _parser_of(entry_point.name, readable)


def _packages(entry_points: Iterable[metadata.EntryPoint]) -> Iterable[str]:
    return [e.dist.name if e.dist is not None else e.value for e in entry_points]
