"""Families of ordered release: the operator by itself, and before a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.cases.conventions import Asked, Either, duration, from_zero
from tests.cases.family import Family

from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.lateness import Late
from tidegate.eventtime.release import OrderedRelease, ReleaseByGenerator, Released
from tidegate.progress import Aggregate, Graph, Tumbling


class OrderedRows(Family):
    """`ReleaseByGenerator`: fed the number itself, as in the document the cases come from."""

    def __init__(self, tolerance: int, late: str = "drop") -> None:
        generator = BoundedDisorder(duration(tolerance))
        self.release = ReleaseByGenerator(generator, OrderedRelease(Late(late))).build()
        self.unsaid = 0

    def do_rows(self, ts: list[int]) -> Asked | Either | None:
        return self._told(self.release.push((time, time) for time in ts))

    def do_rows_ids(self, rows: list[list[Any]]) -> Asked | Either | None:
        return self._told(self.release.push((time, name) for time, name in rows))

    def do_end(self) -> Asked | Either | None:
        return self._told(self.release.end())

    def check_metrics(self) -> Asked:
        metrics = self.release.metrics
        return Asked(
            buffer_size=metrics.buffer_size,
            late_count=metrics.late_count,
            watermarks_emitted=metrics.watermarks_emitted - self.unsaid,
            max_seen=metrics.max_seen,
        )

    def _told(self, out: Released[Any]) -> Asked | Either | None:
        watermark = from_zero(out.watermark)
        self.unsaid += out.watermark is not None and watermark is None
        if not out.rows and not out.late:
            if watermark is None:
                return None
            if isinstance(watermark, Either):
                return Either(Asked(tuples=[], wm=watermark.ours), watermark.theirs)
        return Asked(
            tuples=[row.time for row in out.rows],
            ids=[row.value for row in out.rows],
            wm=watermark,
            late=[row.value for row in out.late],
        )


class Pipeline(Family):
    """Rows released in order, then summed in tumbling windows of the graph."""

    def __init__(self, size: int = 10_000, tolerance: int = 7_000) -> None:
        generator = BoundedDisorder(duration(tolerance))
        self.release = ReleaseByGenerator(generator, OrderedRelease(Late.DROP)).build()
        graph = Graph()
        windows = Aggregate(Tumbling(duration(size)), into=sum)
        graph.sink("out", graph.add("sums", windows, graph.input("rows")))
        self.run = graph.execute()
        self.told = 0

    def do_row(self, a: int, ts: int, expected: Any = None) -> Any:
        self._follow(self.release.push([(ts, a)]))
        return self._since_last(expected) if expected is not None else None

    def do_end(self, expected: Any = None) -> Any:
        self._follow(self.release.end())
        self.run.end()
        return self._since_last(expected) if expected is not None else None

    def check_out(self, expected: Any) -> Any:
        """What came out since it was last asked for."""
        return self._since_last(expected)

    def _follow(self, out: Released[Any]) -> None:
        source = self.run.input("rows")
        for row in out.rows:
            source.send(row.value, time=row.time)
        if out.watermark is not None:
            source.advance_to(out.watermark)

    def _since_last(self, expected: Any) -> Any:
        sums = [Asked(s=row.value) for row in self.run.sink("out").items[self.told :]]
        self.told += len(sums)
        return sums[0] if len(sums) == 1 and isinstance(expected, Mapping) else sums


FAMILIES: Final[Mapping[str, type[Family]]] = {
    "veloflux_watermark": OrderedRows,
    "veloflux_pipeline": Pipeline,
}
