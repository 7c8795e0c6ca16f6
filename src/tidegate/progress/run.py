"""A run of a graph: event in, messages routed, rows out; one thread, no clock of its own.

What goes in is worked off completely before the call returns. On every edge messages keep their
order, and a number is passed on only when it is news: time goes back on no path. Every node has a
frontier, the number it has said on its main output; a sink's is the number it has taken.

>>> from tidegate.progress import Graph, Union
>>> graph = Graph()
>>> both = graph.add("both", Union(), graph.input("left"), graph.input("right"))
>>> graph.sink("out", both)
>>> run = graph.execute()
>>> run.input("left").send("tea", time=7)
>>> run.input("left").advance_to(10), run.progress("left").frontier(), run.progress().frontier()
(True, 10, UNKNOWN)
>>> run.input("right").idle(), run.progress().frontier(), run.sink("out").items
(True, 10, ['tea'])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tidegate import errors
from tidegate.eventtime.generators import ProcessingTime
from tidegate.eventtime.instants import checked
from tidegate.eventtime.watermark import IDLE, UNKNOWN
from tidegate.progress.frontier import CompletedFrontier, ProgressHandle
from tidegate.progress.inbox import Inbox, Signal
from tidegate.progress.messages import Data, Ending, LogicalTime
from tidegate.progress.node import OUT, Emits, Node, Plan, Stream, Vertex
from tidegate.progress.sinks import Sink

T = TypeVar("T")


class Run:
    """The nodes at work. Not thread safe."""

    def __init__(self, vertices: Iterable[Vertex], plan: Plan) -> None:
        self.plan = plan
        self.sinks: dict[str, Sink] = {}
        self._arrival = ProcessingTime(plan.clock).build() if plan.clock else None
        self._nodes: dict[str, Node] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._inputs: dict[str, InputHandle] = {}
        self._frontiers: dict[str, dict[str, CompletedFrontier]] = {}
        self._readers: dict[Stream, list[tuple[str, int]]] = {}
        self._queue: deque[tuple[str, int, Signal]] = deque()
        self._failed_at: str | None = None
        for vertex in vertices:
            self._place(vertex)

    def _place(self, vertex: Vertex) -> None:
        name, node = vertex.name, vertex.config.build(self.plan)
        self._nodes[name] = node
        self._frontiers[name] = {output: CompletedFrontier() for output in vertex.config.outputs}
        if isinstance(node, Sink):
            self.sinks[name] = node
        if not vertex.inputs:
            self._inputs[name] = InputHandle(name, self)
            return
        self._inboxes[name] = Inbox(len(vertex.inputs))
        for slot, stream in enumerate(vertex.inputs):
            self._readers.setdefault(stream, []).append((name, slot))

    # ---- the handles ----

    def input(self, name: str) -> InputHandle:
        """The handle that feeds the input of this name."""
        return _named(name, self._inputs)

    def sink(self, name: str) -> Sink:
        """The sink of this name, with its rows."""
        return _named(name, self.sinks)

    def progress(self, node: str | None = None) -> ProgressHandle:
        """The progress of one node, or of the whole run: the minimum over its sinks."""
        if node is None:
            return ProgressHandle.from_frontiers(sink.frontier for sink in self.sinks.values())
        if node in self.sinks:
            return ProgressHandle([self.sinks[node].frontier])
        return ProgressHandle([_named(node, self._frontiers)[OUT]])

    def counts(self, node: str) -> dict[str, int]:
        """What a node has counted: bad, late, lost and dropped rows."""
        return _named(node, self._nodes).counts()

    def end(self, ending: Ending = Ending.GRACEFUL) -> None:
        """End every input that has not ended yet."""
        for handle in self._inputs.values():
            if handle.progress.ending is None:
                handle.end(ending)

    def follow_clock(self) -> LogicalTime:
        """Under a processing-time plan: the time at which a row arrives now.

        Every input that is not idle is told: none of them can bring an earlier row any more.
        """
        assert self._arrival is not None, "only a processing-time plan has a clock"
        self._arrival.on_clock()
        now = self._arrival.current()
        assert isinstance(now, int)
        for handle in self._inputs.values():
            if handle.awake:
                self.enter(handle.name, now)
        return now

    # ---- routing ----

    def enter(self, source: str, signal: Signal) -> None:
        """Let a signal leave `source`, and work off all that follows from it."""
        if self._failed_at is not None:
            raise errors.run_failed(self._failed_at)
        self._route(source, OUT, signal)
        while self._queue:
            name, slot, signal = self._queue.popleft()
            try:
                self._deliver(name, slot, signal)
            except Exception:
                # Some readers of the row have seen it and some have not: nothing after this
                # could be complete.
                self._failed_at = name
                raise

    def _deliver(self, name: str, slot: int, signal: Signal) -> None:
        node = self._nodes[name]
        for heard in self._inboxes[name].take(slot, signal):
            answer: Emits = ()
            if isinstance(heard, Data):
                answer = node.on_data(heard)
            elif isinstance(heard, int):
                answer = node.on_watermark(heard)
            elif isinstance(heard, Ending):
                answer = node.on_end(heard)
            for emit in answer:
                self._route(name, emit.output, emit.message)
            if not isinstance(heard, Data | int):
                # Idle, awake again, over: that is so for every output, whatever the node does.
                for output in self._frontiers[name]:
                    self._route(name, output, heard)

    def _route(self, name: str, output: str, signal: Signal) -> None:
        frontier = self._frontiers[name][output]
        if isinstance(signal, int) and not frontier.advance(signal):
            return
        if isinstance(signal, Ending):
            frontier.end(signal)
        for reader, slot in self._readers.get(Stream(name, output), ()):
            self._queue.append((reader, slot, signal))


def _named(name: str, among: Mapping[str, T]) -> T:
    if name not in among:
        raise errors.unknown_node(name, among)
    return among[name]


class InputHandle:
    """Feeds one input of a run: rows with their times, and how far time is."""

    def __init__(self, name: str, run: Run) -> None:
        self.name = name
        self._run = run
        self._idle = False
        self._hold: tuple[str, ProgressHandle, LogicalTime] | None = None

    @property
    def awake(self) -> bool:
        """Whether others wait for this input: it has not ended and is not idle."""
        return not self._idle and self.progress.ending is None

    @property
    def progress(self) -> ProgressHandle:
        """How far this input has said time is."""
        return self._run.progress(self.name)

    def send(self, item: Any, time: LogicalTime | None = None) -> None:
        """Send a row.

        Its time is `time`; under a processing-time plan it is the clock, and `time` is not looked
        at. A row before what `advance_to` has said is a late row, not an error: it flows on, and
        windows judge it.
        """
        self._check_open()
        if not self.may_send():
            assert self._hold is not None
            node, progress, until = self._hold
            raise errors.input_held(self.name, node, progress.frontier(), until)
        if self._run.plan.time == "processing":
            self._wake()
            time = self._run.follow_clock()
        elif time is None:
            raise errors.row_without_time(self.name)
        row = Data(item, checked(time))
        self._wake()
        self._run.enter(self.name, row)

    def advance_to(self, number: LogicalTime) -> bool:
        """Nothing before `number` is still to come; return whether that is news.

        Rows equal to it may be. To go back is an error. Under a processing-time plan time goes to
        the clock, whatever `number` is.
        """
        self._check_open()
        at = self.progress.frontier()
        if self._run.plan.time == "processing":
            self._wake()
            self._run.follow_clock()
        elif at is not UNKNOWN and number < at:
            raise errors.time_went_back(f"input {self.name!r}", at, number)
        else:
            number = checked(number)
            self._wake()
            self._run.enter(self.name, number)
        return self.progress.frontier() != at

    def idle(self) -> bool:
        """Nobody need wait for this input, until the next row or number; return if it is news."""
        self._check_open()
        if self._idle:
            return False
        self._idle = True
        self._run.enter(self.name, IDLE)
        return True

    def end(self, ending: Ending = Ending.GRACEFUL) -> None:
        """Nothing comes any more."""
        self._check_open()
        self._run.enter(self.name, ending)

    def hold_until(self, node: str, time: LogicalTime) -> None:
        """Send no row until `node` is complete before `time`; a new hold replaces the old one.

        Time may still be advanced, for it may be what the node waits for.
        """
        self._hold = (node, self._run.progress(node), time)

    def may_send(self) -> bool:
        """Whether no hold stands in the way of a row."""
        return self._hold is None or self._hold[1].complete_before(self._hold[2])

    def _check_open(self) -> None:
        ending = self.progress.ending
        if ending is not None:
            raise errors.input_ended(self.name, ending.value)

    def _wake(self) -> None:
        if self._idle:
            self._idle = False
            self._run.enter(self.name, UNKNOWN)
