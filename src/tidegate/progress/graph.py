"""The graph: nodes, what they read, and the ways to run it.

A graph describes; `execute` builds a run from it, as many as there are workers. A node can read
only what is there already, so a graph has no cycles by construction.

>>> from datetime import timedelta
>>> from tidegate.progress import Aggregate, Map, Tumbling
>>> graph = Graph()
>>> orders = graph.input("orders")
>>> prices = graph.add("prices", Map(lambda order: order["price"]), orders)
>>> sums = graph.add("sums", Aggregate(Tumbling(timedelta(microseconds=10)), into=sum), prices)
>>> graph.sink("out", sums)
>>> graph.sink("too late", sums.output("late"))
>>> run, progress = graph.execute_with_progress()
>>> source = run.input("orders")
>>> source.send({"price": 3}, time=4)
>>> source.send({"price": 5}, time=11)
>>> source.advance_to(10), run.sink("out").items
(True, [WindowRow(start=0, end=10, value=3, key=None)])
>>> run.progress("out").frontier(), run.progress("too late").frontier(), progress.frontier()
(19, 10, 10)
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate import errors
from tidegate.progress.frontier import ProgressHandle
from tidegate.progress.node import NodeConfig, Plan, Stream, Vertex
from tidegate.progress.run import Run
from tidegate.progress.sinks import Collect

_EVENT_TIME = Plan()


@dataclass(frozen=True)
class Input(NodeConfig):
    """Where rows enter, through the `InputHandle` of its name."""


class Graph:
    """A description of nodes and edges, built by naming them."""

    def __init__(self) -> None:
        self._vertices: dict[str, Vertex] = {}

    def input(self, name: str) -> Stream:
        """A stream that is fed from outside."""
        return self._place(Vertex(name, Input(), ()))

    def add(self, name: str, config: NodeConfig, first: Stream, *others: Stream) -> Stream:
        """A node that reads one or several streams; return its main output.

        With several it hears the minimum of their numbers.
        """
        return self._place(Vertex(name, config, (first, *others)))

    def sink(
        self, name: str, first: Stream, *others: Stream, config: Collect | None = None
    ) -> None:
        """An end of the graph: rows are collected, and a frontier tells how far they are all."""
        self._place(Vertex(name, config or Collect(), (first, *others)))

    # ---- running ----

    def execute(self, plan: Plan = _EVENT_TIME) -> Run:
        """A run of this graph under `plan`."""
        if not any(isinstance(vertex.config, Collect) for vertex in self._vertices.values()):
            raise errors.graph_without_sink(self._vertices)
        return Run(self._vertices.values(), plan)

    def execute_with_progress(self, plan: Plan = _EVENT_TIME) -> tuple[Run, ProgressHandle]:
        """A run, and its progress: the minimum over its sinks."""
        run = self.execute(plan)
        return run, run.progress()

    def execute_with_progress_per_sink(
        self, plan: Plan = _EVENT_TIME
    ) -> tuple[Run, dict[str, ProgressHandle]]:
        """A run, and the progress of each of its sinks by name."""
        run = self.execute(plan)
        return run, {name: run.progress(name) for name in run.sinks}

    def execute_on_workers(
        self, count: int, plan: Plan = _EVENT_TIME
    ) -> tuple[list[Run], ProgressHandle]:
        """The same graph once per worker, and their progress: the minimum over workers."""
        runs = [self.execute(plan) for _ in range(count)]
        return runs, ProgressHandle.from_frontiers(run.progress() for run in runs)

    def _place(self, vertex: Vertex) -> Stream:
        if vertex.name in self._vertices:
            raise errors.node_exists(vertex.name)
        for stream in vertex.inputs:
            if stream.node not in self._vertices:
                raise errors.unknown_node(stream.node, self._vertices)
            outputs = self._vertices[stream.node].config.outputs
            if stream.name not in outputs:
                raise errors.unknown_output(stream.node, stream.name, outputs)
        self._vertices[vertex.name] = vertex
        return Stream(vertex.name)
