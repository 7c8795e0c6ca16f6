"""Sinks: where rows arrive, and where time is complete.

A sink has the frontier that others ask for. It moves when the sink has *taken* a number, after all
rows that came before it; a sink that is slow to take its rows is slow to complete.

>>> sink = Collect(at_once=False).build(Plan())
>>> _ = sink.on_data(Data("tea", 7)), sink.on_watermark(10)
>>> sink.rows, sink.frontier.frontier(), sink.waiting
([], UNKNOWN, 2)
>>> sink.take(), sink.frontier.frontier()
([Data(item='tea', time=7)], 10)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.eventtime.lateness import is_late
from tidegate.eventtime.watermark import claim
from tidegate.progress.frontier import CompletedFrontier
from tidegate.progress.inbox import Signal
from tidegate.progress.messages import Data, Ending, LogicalTime
from tidegate.progress.node import Emits, NodeConfig, Plan


@dataclass(frozen=True)
class Collect(NodeConfig):
    """A sink that keeps its rows; with `at_once=False` its reader takes them in its own time."""

    at_once: bool = True
    outputs: ClassVar[tuple[str, ...]] = ()

    def build(self, plan: Plan) -> Sink:
        """Make the thing that runs."""
        return Sink(at_once=self.at_once)


class Sink:
    """The rows that have arrived, and the frontier up to which they are all."""

    def __init__(self, *, at_once: bool) -> None:
        self.rows: list[Data[Any]] = []
        self.frontier = CompletedFrontier()
        self._at_once = at_once
        self._waiting: deque[Signal] = deque()
        self._late = 0
        self._dropped = 0

    @property
    def items(self) -> list[Any]:
        """The rows without their times."""
        return [row.item for row in self.rows]

    @property
    def waiting(self) -> int:
        """How many messages have not been taken."""
        return len(self._waiting)

    def take(self, most: int | None = None) -> list[Data[Any]]:
        """Take the next messages, `most` of them or all; return the rows among them."""
        known = len(self.rows)
        for _ in range(self.waiting if most is None else min(most, self.waiting)):
            signal = self._waiting.popleft()
            if isinstance(signal, Data):
                # Only where rows pass that were late before: behind a union, on a `late` output.
                self._late += is_late(signal.time, claim(self.frontier.frontier()))
                self.rows.append(signal)
            elif isinstance(signal, Ending):
                self.frontier.end(signal)
            elif isinstance(signal, int):
                self.frontier.advance(signal)
        return self.rows[known:]

    def on_data(self, row: Data[Any]) -> Emits:
        """A row came."""
        return self._receive(row)

    def on_watermark(self, number: LogicalTime) -> Emits:
        """Nothing before `number` comes behind this."""
        return self._receive(number)

    def on_end(self, ending: Ending) -> Emits:
        """Nothing comes behind this; a quick end drops what has not been taken."""
        if ending is Ending.QUICK:
            self._dropped = sum(isinstance(signal, Data) for signal in self._waiting)
            self._waiting.clear()
            self.frontier.end(ending)
            return []
        return self._receive(ending)

    def counts(self) -> dict[str, int]:
        """Rows taken, those behind the frontier, and those dropped by a quick end."""
        return {"rows": len(self.rows), "late": self._late, "dropped": self._dropped}

    def _receive(self, signal: Signal) -> Emits:
        self._waiting.append(signal)
        if self._at_once:
            self.take()
        return []
