"""Right interval joins beside a naive truth, and a second job that trusts the time of the first.

A row has the time of its left side, which may lie before everything that was given out: how far is
what the stream of results must be told.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from tests.spark.jobs.truth import Row
from tests.spark.jobs.world import S, World, begun, make_marks

from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob, interval_join
from tidegate.spark.spec import Kernel

STREAMS = ("orders", "payments")
BEFORE, AFTER = 6 * S, 2 * S
QUERY = "SELECT o.v, p.v AS w FROM orders o RIGHT JOIN payments p ON o.k = p.k"
PER_SECOND = (
    "SELECT _window_start, _window_end, count(*) AS n FROM duckdb"
    " GROUP BY _window_start, _window_end"
)

Given = tuple[int | None, int, int]


@dataclass
class Payments:
    """Every payment once with each order around it, or alone; from BEFORE to AFTER an order."""

    a: int | None = None
    seen: list[Row] = field(default_factory=list)
    waiting: list[Row] = field(default_factory=list)
    given: Counter[Given] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    behind: int = 0
    """How many rows have a time before what had been given out already."""

    def see(self, new: Iterable[Row]) -> None:
        """One batch: rows come, and payments are given out once their orders are complete."""
        for row in new:
            self.seen.append(row)
            last_use = row.t if row.stream == "payments" else row.t + AFTER
            if self.a is not None and last_use < self.a:
                self.lost[row.stream] += 1
            elif row.stream == "payments":
                self.waiting.append(row)
        highest: dict[tuple[str, str], int] = {}
        for row in self.seen:
            place = (row.stream, row.partition)
            highest[place] = max(highest.get(place, row.t), row.t)
        b = min(highest.values()) - BEFORE
        if self.a is None or b > self.a:
            for payment in [row for row in self.waiting if row.t < b]:
                self.waiting.remove(payment)
                self._give(payment)
            self.a = b

    def _give(self, payment: Row) -> None:
        near: list[Given] = [
            (row.v, payment.v, row.t)
            for row in self.seen
            if row.stream == "orders"
            and row.k == payment.k
            and row.t - BEFORE <= payment.t <= row.t + AFTER
        ]
        self.given.update(near or [(None, payment.v, payment.t)])
        self.behind += sum(self.a is not None and time < self.a for _, _, time in near)


def _job(world: World, kernel: Kernel) -> SlicesJob:
    return interval_join(
        world.spark,
        *STREAMS,
        before=timedelta(microseconds=BEFORE),
        after=timedelta(microseconds=AFTER),
        query=QUERY,
        sink=StreamSink(kernel),
        name=kernel,
        store=world.store,
        kernel=kernel,
        cores=3,
        idle_after="never",
    )


def _appended(world: World, random_: random.Random, top: int) -> None:
    """Rows of both streams around a time, some of them late; whole seconds meet at the bounds."""
    keys = [world.key(place, "orders") for place in (0, 1)]
    numbers = iter(range(1000 * top, 1000 * top + 1000))
    paid = [*keys, "nobody's"]
    for stream, written in (("orders", keys[:1]), ("orders", keys[1:]), ("payments", paid)):
        times = [top + random_.randint(-14, 10) for _ in range(12)] + [top + 12]
        world.append([(random_.choice(written), next(numbers), t) for t in times], stream)


def test_both_kernels_give_every_payment_and_the_next_job_needs_no_tolerance(world: World) -> None:
    world.stream("orders", segments=2)
    world.stream("payments")
    random_ = random.Random(3)
    truth = Payments()
    jobs = [_job(world, "spark"), _job(world, "duckdb")]
    second = None
    for step in range(3):
        _appended(world, random_, 12 * step)
        for job in jobs:
            begun(job).stop()
        truth.see(world.rows(*STREAMS, seen=truth.seen))
        make_marks(world.store, "duckdb")
        if second is None:  # there is something to read now
            second = begun(
                world.windows(streams="duckdb", size=1, query=PER_SECOND, idle_after="never")
            )
        second.process_all()
    assert second is not None
    second.stop()
    assert truth.a is not None
    assert truth.behind > 3
    assert min(truth.lost[stream] for stream in STREAMS) > 0
    assert {order is None for order, _, _ in truth.given} == {True, False}
    for job in jobs:
        rows = world.read(job.job.name)
        assert Counter((r["v"], r["w"], r["event_time"]) for r in rows) == truth.given
        assert job.progress.figures()["lost"] == truth.lost.total()
        assert job.explain().startswith(f"kernel: {job.job.name}")
    # The second has lost nothing, and counted all that is complete, as far as the first can know.
    figures = second.progress.figures()
    assert (figures["late"], figures["lost"]) == (0, 0)
    assert figures["rows_in"] == truth.given.total()
    complete = truth.a - AFTER
    assert second.progress.frontier() == complete
    counts = Counter(time // S * S for *_, time in truth.given.elements() if time < complete)
    assert {r["window_start"]: r["n"] for r in world.read("out")} == counts
