"""The demo as a run: writers, two jobs beside each other, then each of them alone.

First both jobs run while the sites write: who loses what, and how long the last window takes. Then
each goes over all rows once more with the machine to itself: how fast it is. Both have the same
session, the same rows, the same time between batches, and Parquet files as their result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate import errors
from tidegate.cli import demo_stock, demo_tidegate
from tidegate.cli.demo_rows import SITES, Workload
from tidegate.cli.demo_stock import StockJob
from tidegate.cli.demo_tidegate import Moment, Watch
from tidegate.cli.demo_truth import Results, truth_of
from tidegate.cli.demo_writers import PIECES, STEPS, Delivery
from tidegate.cli.java import require_java
from tidegate.cli.spark_output import spoken_into
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.spark.running import RunningJob, patiently
from tidegate.spark.session import session
from tidegate.spark.slices import SlicesJob
from tidegate.store.store import Store

EVERY: Final = 0.5
"""Seconds between two batches of either job while the sites write."""
PATIENCE: Final = 90.0
"""Seconds to wait for the last window after the last row."""
SETTINGS: Final = {
    # One task per core of a small machine: more would only slow stock Spark down.
    "spark.sql.shuffle.partitions": "2",
    # The watermarks of stock Spark are read from these when it has ended.
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.driver.memory": "2g",
}

Step = Callable[[str, float], AbstractContextManager[Callable[[float], None]]]
"""Begins a part of the run: its name, and the seconds it takes on a quiet machine. What it gives is
to be told which share of it is done."""


@dataclass(frozen=True)
class Outcome:
    """What came of one query."""

    results: Results
    last_window: float | None
    """Seconds to the results of the last window: from the last row while the sites wrote, from the
    start of the query when it was alone; none when they did not come."""
    seconds: float
    """How long it ran."""


@dataclass(frozen=True)
class Live:
    """What happened while the sites wrote, by the wall clock in seconds."""

    began: float
    crashed: float
    taken_over: float
    ended: float
    moments: list[Moment]
    stock_moments: list[tuple[float, Instant]]

    def shown_until(self, last_window: Instant) -> float:
        """When both had come to the last window, or to where they came."""
        told = [moment.at for moment in self.moments if _at_least(moment.watermark, last_window)]
        stock = [at for at, watermark in self.stock_moments if watermark >= last_window]
        far = [self.moments[-1].at, *(at for at, _ in self.stock_moments[-1:])]
        return max(self.ended, (told or far)[0], (stock or far)[-1]) + 0.5


@dataclass(frozen=True)
class Played:
    """Everything there is to show."""

    orders: Workload
    truth: Results
    live: Live
    stock: Outcome
    tidegate: Outcome
    stock_alone: Outcome
    tidegate_alone: Outcome
    kernel: str


def play(orders: Workload, folder: Path, log: Path, seconds: float, step: Step) -> Played:
    """Run it in an empty folder; what Spark says goes into a file."""
    require_java()
    try:
        with step("a Spark session starts", 5), spoken_into(log):
            own = {"spark.sql.warehouse.dir": str(folder / "warehouse")}  # else in this folder
            spark = session("tidegate demo", settings=SETTINGS | own)
        try:
            with Store.open(folder / "store") as store:
                return _Play(spark, store, orders, folder, seconds, step).run()
        finally:
            spark.stop()
    except PySparkException as failure:
        raise errors.spark_failed(_in_short(failure), str(log)) from None


@dataclass(frozen=True)
class _Play:
    spark: SparkSession
    store: Store
    orders: Workload
    folder: Path
    seconds: float
    step: Step

    def run(self) -> Played:
        delivery = Delivery(self.store, self.orders, self.folder / "files")
        delivery.create()
        with self.step("the backlog is delivered, site after site", 4) as done:
            for number, _ in enumerate(delivery.backlog(), 1):
                done(number / (PIECES * len(SITES)))
        live, stock, tidegate = self._live(delivery)
        with self.step("stock Spark over all rows, alone", 10):
            stock_alone = self._stock_alone()
        with self.step("Tidegate over all rows, alone", 5):
            tidegate_alone, kernel = self._tidegate_alone()
        with self.step("the truth: all files at once", 1):
            truth = truth_of(delivery.files, self.orders.until)
        return Played(
            self.orders, truth, live, stock, tidegate, stock_alone, tidegate_alone, kernel
        )

    def _live(self, delivery: Delivery) -> tuple[Live, Outcome, Outcome]:
        """Both jobs beside each other, while the sites write."""
        until = self.orders.until
        slices = demo_tidegate.job(self.spark, self.store, "per_minute", idle_after=self._idle)
        stock = StockJob(self.spark, delivery.files, self.folder / "stock")
        with Watch(self.store, "per_minute") as watch:
            with self.step("both jobs start, and run a batch", 6):
                running = patiently(lambda: _begun(slices, watch))
                query = stock.start(every=EVERY)
                _awaited(lambda: 0.0 if query.lastProgress else None, query)
            began = time.time()
            with self.step("the sites write, both jobs follow", self.seconds) as done:
                for number, _ in enumerate(delivery.live(self.seconds), 1):
                    done(number / (STEPS + 1))
            with self.step("both jobs come to the last window", 3):
                told = _awaited(lambda: watch.complete_at(until), running)
                stock_told = _awaited(lambda: demo_stock.last_window(query, until), query)
            running.stop()
            query.stop()
        delivery.close()
        ended = delivery.ended
        live = Live(
            began,
            delivery.crashed,
            delivery.taken_over,
            ended,
            watch.history,
            list(demo_stock.history(query)),
        )
        return (
            live,
            Outcome(stock.results().before(until), _since(ended, stock_told), self.seconds),
            Outcome(self._counted("per_minute"), _since(ended, told), self.seconds),
        )

    def _stock_alone(self) -> Outcome:
        job = StockJob(self.spark, self.folder / "files", self.folder / "stock-alone")
        began = time.time()
        query = job.start()
        query.awaitTermination()
        seconds = time.time() - began
        told = demo_stock.last_window(query, self.orders.until)
        return Outcome(job.results().before(self.orders.until), _since(began, told), seconds)

    def _tidegate_alone(self) -> tuple[Outcome, str]:
        job = demo_tidegate.job(self.spark, self.store, "alone", idle_after=self._idle)
        with Watch(self.store, "alone") as watch:
            began = patiently(lambda: _ran(job))
            seconds = time.time() - began
        told = watch.complete_at(self.orders.until)
        kernel = str(job.progress.detail()["kernel"])
        return Outcome(self._counted("alone"), _since(began, told), seconds), kernel

    def _counted(self, name: str) -> Results:
        return demo_tidegate.results(self.store, name).before(self.orders.until)

    @property
    def _idle(self) -> timedelta:
        """Long enough for a crash in between, short enough to be seen."""
        return timedelta(seconds=self.seconds / 2)


def _begun(job: SlicesJob, watch: Watch) -> RunningJob:
    """Start a job, and see its first batch."""
    running = job.start(every=timedelta(seconds=EVERY), tell=False)
    while not watch.history:
        if not running.active:
            running.wait()  # raises what it failed with
        time.sleep(0.05)
    return running


def _ran(job: SlicesJob) -> float:
    """Run a job over all rows, and tell when it began: a start that was in vain does not count."""
    began = time.time()
    with job.start(available_now=True, tell=False) as running:
        running.wait()
    return began


def _awaited(found: Callable[[], float | None], job: RunningJob | StreamingQuery) -> float | None:
    """Wait for a moment that a running job brings; none when it does not."""
    patience = time.monotonic() + PATIENCE
    while (at := found()) is None and time.monotonic() < patience:
        if isinstance(job, RunningJob):
            if not job.active:
                job.wait()  # raises what it failed with
        elif not job.isActive:
            job.awaitTermination()
        time.sleep(0.05)
    return at


def _at_least(watermark: Known, instant: Instant) -> bool:
    return watermark is not UNKNOWN and watermark >= instant


def _since(began: float, at: float | None) -> float | None:
    return None if at is None else max(at - began, 0.0)


def _in_short(failure: PySparkException) -> str:
    """The first line of what Spark says: the rest is its own story."""
    return str(failure).strip().partition("\n")[0]
