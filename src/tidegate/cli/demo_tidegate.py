"""Tidegate on the demo's orders: windows over complete event time, results in a stream.

A watch looks into the catalog while the job runs, as any other process could, and writes down where
every partition stood after each batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.cli.demo_rows import DISORDER, STREAM, WINDOW
from tidegate.cli.demo_truth import Results, results_of
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob, windows
from tidegate.store.catalog import progress
from tidegate.store.reading import read_between
from tidegate.store.store import Store

QUERY: Final = """
SELECT _window_start, _window_end, item, count(*) AS n, sum(cents) AS cents
FROM orders GROUP BY _window_start, _window_end, item
"""
LOOK: Final = 0.05
"""Seconds between two looks of the watch."""
AT_ONCE: Final = 1_000_000
"""Rows per batch at most: the demo wants several batches of its backlog, so that there is
something to see."""


def job(spark: SparkSession, store: Store, name: str, *, idle_after: timedelta) -> SlicesJob:
    """Orders per minute and item, into a stream that is named as the job."""
    return windows(
        spark,
        STREAM,
        size=WINDOW,
        query=QUERY,
        sink=StreamSink(name),
        name=name,
        store=store,
        tolerance=DISORDER,
        idle_after=idle_after,
        max_rows=AT_ONCE,
    )


def results(store: Store, name: str) -> Results:
    """What a job has given out."""
    columns = ["window_start", "item", "n", "cents"]
    batches = read_between(store, name, columns=columns)
    return results_of(pa.Table.from_batches([batch]) for batch in batches)


@dataclass(frozen=True)
class Moment:
    """Where a job stood after a batch."""

    at: float
    """By the wall clock, in seconds."""
    watermark: Known
    frontier: Known
    numbers: dict[str, Known]
    idle: frozenset[str]
    held_by: tuple[str, ...]


@dataclass
class Watch:
    """Looks at a job from beside it. Its own thread; stop it before you read the history."""

    store: Store
    name: str
    history: list[Moment] = field(default_factory=list)
    _stop: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def __enter__(self) -> Watch:
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def complete_at(self, until: Instant) -> float | None:
        """When everything before a time had been given out; none while it is to come."""
        for moment in list(self.history):
            if isinstance(moment.frontier, int) and moment.frontier >= until:
                return moment.at
        return None

    def _look(self) -> None:
        while True:
            last = self._stop.wait(LOOK)
            told = self.store.database.read(lambda on: progress.told(on, self.name))
            if "job" in told:
                at = told["job"].updated_at / 1e6
                if not self.history or self.history[-1].at < at:
                    self.history.append(_moment(told, at))
            if last:
                return


def _moment(told: dict[str, progress.NodeProgress], at: float) -> Moment:
    partitions = told[f"source:{STREAM}"].detail["partitions"]
    watermark = told["job"].detail["watermark"]
    return Moment(
        at,
        watermark if isinstance(watermark, int) else UNKNOWN,
        told["job"].frontier,
        {name: UNKNOWN if n is None else n for name, (n, *_) in partitions.items()},
        frozenset(name for name, (*_, idle) in partitions.items() if idle),
        tuple(told["job"].detail["holds"]),
    )
