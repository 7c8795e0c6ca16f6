"""Families of progress: frontiers, injected watermarks, windows by event time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from tests.cases.conventions import (
    Asked,
    Either,
    agrees,
    asked_at_zero,
    duration,
    frontier_at_zero,
)
from tests.cases.family import Family

from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.watermark import Known
from tidegate.progress import (
    Aggregate,
    CompletedFrontier,
    Ending,
    Graph,
    InjectWatermarks,
    ProgressHandle,
    Session,
    Sliding,
    Tumbling,
)
from tidegate.progress.windows import Windows
from tidegate.testing import ManualClock


class Frontier(Family):
    """`CompletedFrontier` per sink, and the `ProgressHandle` over them."""

    def __init__(self, sinks: int = 1) -> None:
        self.sinks = [CompletedFrontier() for _ in range(sinks)]
        self.handle = ProgressHandle.from_frontiers(self.sinks)
        self.clock = ManualClock()

    def do_advance(self, t: int, sink: int = 0) -> bool:
        return self.sinks[sink].advance(t)

    def check_frontier(self, sink: int | None = None) -> Known | Either:
        return frontier_at_zero(self._asked(sink).frontier())

    def check_less_than(self, t: int, sink: int | None = None) -> bool | Either:
        asked = self._asked(sink)
        return asked_at_zero(asked.frontier(), ours=asked.less_than(t), theirs=t > 0)

    def check_less_equal(self, t: int, sink: int | None = None) -> bool | Either:
        asked = self._asked(sink)
        return asked_at_zero(asked.frontier(), ours=asked.less_equal(t), theirs=t >= 0)

    def check_wait_for(self, t: int, timeout: int = 0) -> bool:
        return self.handle.wait_for(
            t, duration(timeout), wait=self.clock.advance, clock=self.clock.seconds
        )

    def _asked(self, sink: int | None) -> ProgressHandle:
        return self.handle if sink is None else ProgressHandle([self.sinks[sink]])


class Injector(Family):
    """`InjectWatermarks` in a graph, whose edges pass on only numbers that are news."""

    def __init__(self, every: int | None = None, bound: int = 0) -> None:
        period: timedelta | None = None if every is None else duration(every)
        injecting = InjectWatermarks(period, BoundedDisorder(duration(bound)))
        graph = Graph()
        graph.sink("out", graph.add("inject", injecting, graph.input("rows")))
        self.run = graph.execute()
        self.source, self.sink = self.run.input("rows"), self.run.sink("out")

    def do_item(self, ts: int) -> list[list[Any]]:
        return self._messages(lambda: self.source.send(ts, time=ts))

    def do_wm(self, t: int) -> list[list[Any]]:
        return self._messages(lambda: self.source.advance_to(t))

    def do_eos(self) -> list[list[Any]]:
        return self._messages(lambda: self.source.end(Ending.GRACEFUL))

    def do_stop(self) -> list[list[Any]]:
        return self._messages(lambda: self.source.end(Ending.QUICK))

    def check_frontier(self) -> Known | Either:
        return frontier_at_zero(self.sink.frontier.frontier())

    def _messages(self, act: Callable[[], object]) -> list[list[Any]]:
        """What the sink receives of an act, as [data, time] and [wm, number]."""
        rows, before = len(self.sink.rows), self.sink.frontier.frontier()
        act()
        came: list[list[Any]] = [["data", row.time] for row in self.sink.rows[rows:]]
        now = self.sink.frontier.frontier()
        return came if now == before else [*came, ["wm", now]]


class EventWindow(Family):
    """`Aggregate` in a graph with a sink for windows and one for late rows."""

    def __init__(
        self,
        type: str,
        size: int = 1,
        slide: int | None = None,
        gap: int = 1,
        late: str = "side",
    ) -> None:
        kinds: dict[str, Windows] = {
            "tumbling": Tumbling(duration(size)),
            "sliding": Sliding(duration(size), duration(slide or size)),
            "session": Session(duration(gap)),
        }
        assert type in kinds, f"no type {type!r}; there are: {', '.join(kinds)}"
        self.beside = late == "side"
        graph = Graph()
        windows = graph.add("windows", Aggregate(kinds[type]), graph.input("rows"))
        graph.sink("out", windows)
        graph.sink("late", windows.output("late"))
        self.run = graph.execute()
        self.source = self.run.input("rows")

    def do_data(self, t: int, v: Any, late: list[Any] | None = None) -> list[list[Any]]:
        windows, lost = self._seen()
        self.source.send(v, time=t)
        came = self.run.sink("late").items[lost:]
        if self.beside or late is not None:
            assert agrees(late or [], came), f"expected late {late or []}, got {came}"
        return self._windows(windows)

    def do_wm(self, t: int) -> list[list[Any]]:
        windows, _ = self._seen()
        # A number that is no news is passed on by nobody; to say an earlier one is an error here.
        if self.source.progress.less_than(t):
            self.source.advance_to(t)
        return self._windows(windows)

    def do_eos(self) -> list[list[Any]]:
        windows, _ = self._seen()
        self.source.end(Ending.GRACEFUL)
        return self._windows(windows)

    def do_stop(self) -> list[list[Any]]:
        windows, _ = self._seen()
        self.source.end(Ending.QUICK)
        return self._windows(windows)

    def check_out(self) -> list[list[Any]]:
        return self._windows(0)

    def check_late(self) -> list[Any]:
        return list(self.run.sink("late").items)

    def check_counts(self) -> Asked:
        return Asked(self.run.counts("windows"))

    def _seen(self) -> tuple[int, int]:
        return len(self.run.sink("out").items), len(self.run.sink("late").items)

    def _windows(self, since: int) -> list[list[Any]]:
        return [row.value for row in self.run.sink("out").items[since:]]


FAMILIES: Final[Mapping[str, type[Family]]] = {
    "frontier": Frontier,
    "injector": Injector,
    "event_window": EventWindow,
}
