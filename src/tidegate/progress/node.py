"""A node: a plain object that hears a row, a number or the end, and answers with messages.

A node knows neither its neighbours nor its inputs: the graph has merged what they say and routes
what it answers. It must not say a number that a row it may still emit lies before; that a number
goes back cannot happen, for the graph passes on only what is news.

>>> class Shout(Passing):
...     def on_data(self, row: Data[Any]) -> Emits:
...         return [Emit(Data(row.item.upper(), row.time))]
>>> Shout().on_data(Data("tea", 7)), Shout().on_watermark(10)
([Emit(message=Data(item='TEA', time=7), output='out')], [Emit(message=10, output='out')])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from tidegate import errors
from tidegate.eventtime.generators import WallClock
from tidegate.progress.messages import Data, Ending, LogicalTime, StreamMessage

OUT: Final = "out"
"""The main output of every node."""


class Emit(NamedTuple):
    """A message and the output it leaves by."""

    message: StreamMessage[Any]
    output: str = OUT


Emits: TypeAlias = Sequence[Emit]


class Node(Protocol):
    """What runs. It is told rows as they come, numbers when they are news, and one end."""

    def on_data(self, row: Data[Any]) -> Emits:
        """A row came."""

    def on_watermark(self, number: LogicalTime) -> Emits:
        """Nothing before `number` is still to come, on any input."""

    def on_end(self, ending: Ending) -> Emits:
        """All inputs have ended; the graph passes the end on after what is answered here."""

    def counts(self) -> dict[str, int]:
        """What the node has counted so far."""


class Passing:
    """A node that lets everything through; others override what they do differently."""

    def __init__(self, outputs: tuple[str, ...] = (OUT,)) -> None:
        self._outputs = outputs

    def on_data(self, row: Data[Any]) -> Emits:
        """Pass the row on."""
        return [Emit(row)]

    def on_watermark(self, number: LogicalTime) -> Emits:
        """Pass the number on, to every output."""
        return [Emit(number, output) for output in self._outputs]

    def on_end(self, ending: Ending) -> Emits:
        """Nothing is held, so nothing is left."""
        return []

    def counts(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}


PlanTime = Literal["event", "processing"]


@dataclass(frozen=True)
class Plan:
    """Which time a graph runs on: one option, the same graph.

    `event`: a row's time is the one it was sent with, or that was extracted from it, and whoever
    sends it says how far time is. `processing`: a row's time is `clock` when it arrives, the number
    is that clock too, and so no row is ever late.

    >>> Plan().time, Plan("processing", clock=lambda: 5).time
    ('event', 'processing')
    """

    time: PlanTime = "event"
    clock: WallClock | None = None

    def __post_init__(self) -> None:
        if self.time not in get_args(PlanTime):
            raise errors.unknown_plan_time(self.time, get_args(PlanTime))
        if self.time == "processing" and self.clock is None:
            raise errors.clock_missing()
        if self.time == "event" and self.clock is not None:
            raise errors.clock_not_used()


class NodeConfig:
    """What is described: a frozen value that builds a node, once per worker."""

    outputs: ClassVar[tuple[str, ...]] = (OUT,)

    def build(self, plan: Plan) -> Node:
        """Make the thing that runs under `plan`."""
        return Passing(self.outputs)


# ---- places in a graph ----


@dataclass(frozen=True)
class Stream:
    """An output of a node, to be read by others."""

    node: str
    name: str = OUT

    def output(self, name: str) -> Stream:
        """Another output of the same node: `late`, `errors`."""
        return Stream(self.node, name)


@dataclass(frozen=True)
class Vertex:
    """A place in the graph: what stands there, and what it reads."""

    name: str
    config: NodeConfig
    inputs: tuple[Stream, ...]
