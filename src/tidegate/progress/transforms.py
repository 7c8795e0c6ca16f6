"""Nodes that hold no rows: map, filter, flat map, union, extract event time, inject watermarks.

Rows leave in the order in which they came, and every row derived from another carries its time. A
number passes through unchanged, except where the times of the rows change: what was said of the old
times says nothing about the new ones.

>>> from tidegate.progress.node import Plan
>>> node = FlatMap(str.split).build(Plan())
>>> [emit.message for emit in node.on_data(Data("green tea", 7))]
[Data(item='green', time=7), Data(item='tea', time=7)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from tidegate import errors
from tidegate.eventtime.generators import BoundedDisorder, GeneratorConfig
from tidegate.eventtime.instants import checked, floor_to, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.progress.messages import Data, Ending, LogicalTime
from tidegate.progress.node import OUT, Emit, Emits, Node, NodeConfig, Passing, Plan

ERRORS: Final = "errors"
"""The output for rows whose time is missing or cannot be read."""


@dataclass(frozen=True)
class FlatMap(NodeConfig):
    """Every row becomes as many as `function` gives, all with its time."""

    function: Callable[[Any], Iterable[Any]]

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs."""
        return _Mapping(self.function)


@dataclass(frozen=True)
class Map(NodeConfig):
    """Every row becomes what `function` makes of it."""

    function: Callable[[Any], Any]

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs."""
        function = self.function
        return _Mapping(lambda item: (function(item),))


@dataclass(frozen=True)
class Filter(NodeConfig):
    """Only rows for which `predicate` holds go on; time goes on for all of them."""

    predicate: Callable[[Any], object]

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs."""
        predicate = self.predicate
        return _Mapping(lambda item: (item,) if predicate(item) else ())


class _Mapping(Passing):
    def __init__(self, function: Callable[[Any], Iterable[Any]]) -> None:
        super().__init__()
        self._function = function

    def on_data(self, row: Data[Any]) -> Emits:
        return [Emit(Data(item, row.time)) for item in self._function(row.item)]


@dataclass(frozen=True)
class Union(NodeConfig):
    """Several streams as one: rows as they come, and the minimum of their numbers.

    Taking the minimum is what the graph does for every node with several inputs; this one does
    nothing else.
    """


# ---- event time ----


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row without a readable event time, and what was wrong with it."""

    item: Any
    reason: str


@dataclass(frozen=True)
class ExtractTime(NodeConfig):
    """The time of a row is read from the row: `time_of` gives an instant, or None when missing.

    A row whose time is missing or cannot be read leaves by the output `errors` as a `BadRow`, with
    the time it came with; it is counted and never fatal, whatever `time_of` raises. Numbers that
    come in speak of the times the rows came with: they go on to `errors` and end here otherwise;
    an `InjectWatermarks` behind this node starts them again. Under a processing-time plan the time
    of a row is its arrival, so nothing is extracted and nothing is bad.

    >>> node = ExtractTime(lambda row: row.get("at")).build(Plan())
    >>> node.on_data(Data({"at": 7}, time=1))
    [Emit(message=Data(item={'at': 7}, time=7), output='out')]
    >>> [emit] = node.on_data(Data({}, time=2))
    >>> emit.message, emit.output
    (Data(item=BadRow(item={}, reason='event time is missing'), time=2), 'errors')
    """

    time_of: Callable[[Any], LogicalTime | None]
    outputs: ClassVar[tuple[str, ...]] = (OUT, ERRORS)

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs; under a processing-time plan it lets everything through."""
        return Passing(self.outputs) if plan.time == "processing" else _Extracting(self.time_of)


class _Extracting(Passing):
    def __init__(self, time_of: Callable[[Any], LogicalTime | None]) -> None:
        super().__init__((ERRORS,))
        self._time_of = time_of
        self._bad = 0

    def on_data(self, row: Data[Any]) -> Emits:
        try:
            time = self._time_of(row.item)
            # A flag is an int to Python, but not a time to anybody.
            if isinstance(time, int) and not isinstance(time, bool):
                return [Emit(Data(row.item, checked(time)))]
            missing = "event time is missing"
            reason = missing if time is None else f"event time is not an instant: {time!r}"
        except Exception as problem:  # one bad row must not stop a stream, whatever it does
            reason = f"{type(problem).__name__}: {problem}"
        self._bad += 1
        return [Emit(Data(BadRow(row.item, reason), row.time), ERRORS)]

    def counts(self) -> dict[str, int]:
        return {"bad": self._bad}


@dataclass(frozen=True)
class InjectWatermarks(NodeConfig):
    """Numbers made from the rows that pass, by a generator; by default the maximum seen.

    `every=None` says the number at a graceful end only; otherwise it is said with the first row and
    then whenever it has passed another multiple of `every`, and what is left at a graceful end.
    Numbers from before this node are known, not guessed, and pass at once. Under a processing-time
    plan the clock gives the numbers, and nothing is injected.

    >>> node = InjectWatermarks().build(Plan())
    >>> [node.on_data(Data("tea", time)) for time in (100, 200)][1]
    [Emit(message=Data(item='tea', time=200), output='out')]
    >>> node.on_end(Ending.GRACEFUL), node.on_end(Ending.QUICK)
    ([Emit(message=200, output='out')], [])
    """

    every: timedelta | None = None
    generator: GeneratorConfig = BoundedDisorder()  # noqa: RUF009 (a frozen value)

    def __post_init__(self) -> None:
        if self.every is not None and self.every <= timedelta(0):
            raise errors.not_a_positive_duration("every", self.every)

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs; under a processing-time plan it lets everything through."""
        return Passing() if plan.time == "processing" else _Injecting(self)


class _Injecting(Passing):
    def __init__(self, config: InjectWatermarks) -> None:
        super().__init__()
        self._every = None if config.every is None else micros(config.every)
        self._generator = config.generator.build()
        self._said: Known = UNKNOWN

    def on_data(self, row: Data[Any]) -> Emits:
        number = self._generator.on_event(row.time)
        # The row goes first: a number equal to it would be true before it as well, but readers
        # expect what a row says after the row.
        return [Emit(row), *self._say(number)] if self._is_due(number) else [Emit(row)]

    def on_watermark(self, number: LogicalTime) -> Emits:
        return self._say(self._generator.advance_to(number))

    def on_end(self, ending: Ending) -> Emits:
        number = self._generator.current()
        return self._say(number) if ending is Ending.GRACEFUL and isinstance(number, int) else []

    def _is_due(self, number: LogicalTime | None) -> bool:
        if self._every is None or number is None:
            return False
        return self._said is UNKNOWN or number >= floor_to(self._said, self._every) + self._every

    def _say(self, number: LogicalTime | None) -> Emits:
        if number is None:
            return []
        self._said = number
        return [Emit(number)]
