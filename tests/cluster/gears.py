"""A job of either gear over a few stages of rows, beside the naive truth.

It runs wherever its world is: on a cluster, or with its data on object storage. What it leaves is
plain data, to be held against what it leaves elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pyspark.sql import functions as F
from sqlalchemy import Connection
from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, Given, S, World

from tidegate.spark import StreamSink, read_stream, write_stream
from tidegate.store.catalog import marks, streams
from tidegate.store.mark_cycle import run_due_cycle

GEARS = ("slices", "gate")
STAGES = 3
TOLERANCE = 10


def lived(
    world: World,
    gear: str,
    sink: StreamSink,
    before_stage: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Run a job over all stages; every one has rows that are late, and some that are lost."""
    world.stream(segments=2)
    job: Any = _gate(world, sink) if gear == "gate" else _slices(world, sink)
    both = Both(world, job, Truth(10 * S, tolerance=TOLERANCE * S))
    for stage in range(STAGES):
        world.append(_rows(stage))
        before_stage(stage)
        both.go()
    both.stop()
    both.check()
    run_due_cycle(world.store, sink.stream, interval=timedelta(0))
    figures = job.progress.figures()
    left = {
        "rows": sorted([*row, n] for row, n in world.counts(sink.stream).items()),
        "late": sorted(
            [r["late_time"], r["k"], r["v"], r["late_watermark"]] for r in world.read("orders.late")
        ),
        "mark": world.store.database.read(lambda on: _last_mark(on, sink.stream)),
        "counted": [figures[name] for name in ("rows_in", "rows_out", "late", "lost", "bad")],
    }
    assert left["rows"]
    assert left["late"]
    assert figures.get("dropped_by_spark", 0) == 0
    assert both.truth.w is not None
    # Windows of slices end where they are released; Spark's operators have W itself.
    complete = both.truth.w + 1 if gear == "gate" else both.truth.a
    assert job.progress.frontier() == complete == left["mark"][0]
    return left


def _slices(world: World, sink: StreamSink) -> Any:
    return world.windows(size=10, sink=sink, tolerance=f"{TOLERANCE}s", idle_after="never")


def _gate(world: World, sink: StreamSink) -> Any:
    rows = read_stream(
        world.spark, "orders", store=world.store, query="gate", windows="10 s",
        tolerance=f"{TOLERANCE}s", idle_after="never",
    )  # fmt: skip
    counted = rows.groupBy(F.window("at", "10 seconds"), "k").agg(
        F.count("*").alias("n"), F.sum("v").alias("total")
    )
    checkpoint = world.folder / "checkpoints" / "gate"
    return write_stream(counted, sink=sink, query="gate", store=world.store, checkpoint=checkpoint)


def _rows(stage: int) -> list[Given]:
    random_ = random.Random(stage)
    top = 60 * (stage + 2)
    times = [top + random_.randint(-70, 60) for _ in range(32)] + [top + 60] * 8
    return [(f"k{n % 8}", n, time) for n, time in enumerate(times)]


def _last_mark(on: Connection, stream: str) -> Any:
    _, mark = marks.last(on, streams.get(on, stream).id)
    assert mark is not None
    return [mark.lower, mark.upper, mark.cut.to_json()]
