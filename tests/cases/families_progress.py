"""Frontiers, handles, watermark messages, windows of the small graph; the headline workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cases.conventions import duration, frontier, plain

from tidegate.progress import (
    Aggregate,
    CompletedFrontier,
    Data,
    Emits,
    Ending,
    InjectWatermarks,
    Node,
    Plan,
    ProgressHandle,
    Session,
    Sliding,
    Tumbling,
)
from tidegate.progress.windows import Windows
from tidegate.testing.headline import Headline, OneGlobalWatermark, Planned, deliver


class Frontier:
    """Family `frontier`: one or several sinks, asked through their handle."""

    def __init__(self, sinks: int = 1) -> None:
        self.sinks = [CompletedFrontier() for _ in range(sinks)]
        self.handle = ProgressHandle.from_frontiers(self.sinks)

    def do_advance(self, t: int, sink: int = 0) -> bool:
        return self.sinks[sink].advance(t)

    def check_frontier(self) -> Any:
        # A case says 0 where nothing is known yet.
        at = self.handle.frontier()
        return 0 if at == frontier(0) else at

    def check_less_than(self, t: int) -> bool:
        return self.handle.less_than(t)

    def check_less_equal(self, t: int) -> bool:
        return self.handle.less_equal(t)


class _OfNode:
    """A node that is fed by hand."""

    node: Node

    @staticmethod
    def shown(emits: Emits) -> list[list[Any]]:
        return [
            ["data", e.message.time] if isinstance(e.message, Data) else ["wm", plain(e.message)]
            for e in emits
            if e.output == "out" and not isinstance(e.message, Ending)
        ]


class Injector(_OfNode):
    """Family `injector`."""

    def __init__(self, every: int | None = None) -> None:
        period = None if every is None else duration(every)
        self.node = InjectWatermarks(period).build(Plan())

    def do_item(self, ts: int) -> Any:
        return self.shown(self.node.on_data(Data(None, ts)))

    def do_eos(self) -> Any:
        return self.shown(self.node.on_end(Ending.GRACEFUL))


class EventWindow(_OfNode):
    """Family `event_window`."""

    def __init__(
        self,
        type: str,
        size: int = 0,
        slide: int = 0,
        gap: int = 0,
        late: str = "drop",
    ) -> None:
        kinds: dict[str, Callable[[], Windows]] = {
            "tumbling": lambda: Tumbling(duration(size)),
            "sliding": lambda: Sliding(duration(size), duration(slide)),
            "session": lambda: Session(duration(gap)),
        }
        windows = kinds[type]()
        self.side_output = late == "side"
        self.node = Aggregate(windows).build(Plan())
        self.late: list[Any] = []

    def do_data(self, t: int, v: Any, late: list[Any] | None = None) -> Any:
        emits = self.node.on_data(Data(v, t))
        self.late = [
            e.message.item for e in emits if e.output == "late" and isinstance(e.message, Data)
        ]
        if self.side_output:
            assert self.late == (late or [])
        return self._windows(emits)

    def do_wm(self, t: int) -> Any:
        return self._windows(self.node.on_watermark(t))

    def do_eos(self) -> Any:
        return self._windows(self.node.on_end(Ending.GRACEFUL))

    def check_late(self) -> list[Any]:
        return self.late

    @staticmethod
    def _windows(emits: Emits) -> list[Any]:
        return [
            list(e.message.item.value)
            for e in emits
            if e.output == "out" and isinstance(e.message, Data)
        ]


def check_partition_batched(case: dict[str, Any]) -> None:
    """Family `partition_batched`: rows delivered partition by partition."""
    headline = Headline(
        rows=case["n"],
        traders=case["traders"],
        symbols=case["symbols"],
        partitions=case["partitions"],
    )
    spark, planned = OneGlobalWatermark(headline), Planned(headline)
    for _ in deliver(headline, spark, planned):
        pass
    truth, of_spark, of_plan = headline.truth(), spark.finish(), planned.finish()
    wanted = case["truth"]
    assert len({window for window, _ in truth}) == wanted["windows"]
    assert len({group for _, group in truth}) == wanted["groups"]
    assert len(truth) == wanted["results_with_flush"]
    theirs = case["one_global_watermark_no_lateness"]
    assert (of_spark.lost, of_spark.closed) == (theirs["dropped_rows"], theirs["results_closed"])
    ours = case["per_partition_min"]
    assert of_plan.lost == ours["dropped_rows"]
    assert len(of_plan.results) == ours["results_with_flush"]
    assert of_plan.closed == ours["closed_before_flush"]
