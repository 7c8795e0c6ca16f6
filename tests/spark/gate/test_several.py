"""Several streams in one query on Spark, and what becomes of its results: failures, ends, two hops.

The many ways in which sources can be asked and killed are in `test_sources_together.py`.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tests.spark.gate.loop import bounded
from tests.spark.gate.plays import FAR, Play, Truth, at_the_edge, crowd, dropped_by_spark
from tests.spark.jobs.world import S, World, begun, failing_at, make_marks

from tidegate.errors import TidegateError
from tidegate.spark import StreamSink, read_stream, write_stream
from tidegate.spark.gate.writing import GateJob

STREAMS = ("orders", "payments")


def _union(world: World, **settings: Any) -> GateJob:
    def one(stream: str) -> DataFrame:
        return read_stream(
            world.spark,
            stream,
            store=world.store,
            query="q",
            windows="10 s",
            tolerance="3 s",
            idle_after="never",
            **settings,
        )

    counts = one("orders").unionByName(one("payments")).groupBy(F.window("at", "10 seconds"), "k")
    made = counts.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    return write_stream(
        made, sink=StreamSink("tens"), query="q", store=world.store, time_behind="0 s"
    )


@pytest.mark.parametrize(
    "steps",
    [
        # What is committed is run through once more: Spark's operators need the state of it.
        ("gate batch: committed",),
        pytest.param(
            ("gate batch: begun", "gate batch: before settle", "gate batch: before commit"),
            marks=pytest.mark.faults,
        ),
    ],
)
def test_a_union_that_fails_and_goes_on_and_a_second_job_behind_it(
    world: World, steps: tuple[str, ...]
) -> None:
    world.stream("orders", segments=2)
    world.stream("payments")
    play = Play(world, Truth(lambda t: t // (10 * S) * 10 * S + 10 * S, True), STREAMS)
    job = _union(world, max_rows=50)

    def act(number: int) -> None:
        if number == 0:
            crowd(world, "orders", (60, 290))
            crowd(world, "payments", (90,))
        elif number <= len(steps):
            # First the one that is ahead: the other holds W until all has come.
            edge = at_the_edge(play.truth.w or 0, 10)
            world.append([(world.key(0, "payments"), 1, t + 5) for t in edge], "payments")
            world.append([(world.key(n, "orders"), 1, t) for n in (0, 1) for t in edge], "orders")
        else:
            world.append([(world.key(0, "payments"), 1, FAR)], "payments")
            world.append([(world.key(n, "orders"), 1, FAR) for n in (0, 1)], "orders")

    dropped = 0
    for number, step in enumerate((None, *steps, None)):
        act(number)
        if step is not None:
            # Killed in the middle of a batch, and begun again: the same batch, once.
            with failing_at(step):
                begun(job)
        with begun(job) as running:
            running.process_all()
            dropped += dropped_by_spark(running.query.recentProgress)
        play.look()

    told = job.progress.figures()
    assert play.truth.lost
    assert (told["late"], told["lost"]) == (play.truth.late, len(play.truth.lost))
    assert (told["rows_in"], dropped) == (len(play.seen), 0)
    routed = Counter(
        (stream, row["k"], row["v"], row["late_time"])
        for stream in STREAMS
        for row in world.read(f"{stream}.late")
    )
    assert routed == Counter((row.stream, row.k, row.v, row.t) for row in play.truth.lost)
    tens = _windows(((row.t, row.k, 1, row.v) for row in play.all_kept), 10 * S, play.ws[-1])
    assert world.counts("tens") == tens

    # Watermarks survive the hop: the next job needs no tolerance, and loses nothing.
    make_marks(world.store, "tens")
    second = world.windows(
        streams="tens",
        size=30,
        name="thirties",
        sink=StreamSink("thirties"),
        query="SELECT _window_start, _window_end, k, sum(n) AS n, sum(total) AS total FROM tens"
        " GROUP BY _window_start, _window_end, k",
    )
    told = second.run()
    assert (told["late"], told["lost"]) == (0, 0)
    given = ((end - 1, k, n, total) for (_, end, k, n, total) in tens.elements())
    thirties = _windows(given, 30 * S, job.progress.frontier())  # type: ignore[arg-type]
    assert thirties
    assert world.counts("thirties") == thirties
    assert job.progress.frontier() == play.ws[-1]


def _windows(rows: Any, size: int, complete: int) -> Counter[tuple[Any, ...]]:
    """Counts and sums by window and key, of the windows that are complete."""
    counts, totals = Counter[Any](), Counter[Any]()
    for t, k, n, total in rows:
        window = (t // size * size, t // size * size + size, k)
        counts[window] += n
        totals[window] += total
    return Counter((*w, n, totals[w]) for w, n in counts.items() if w[1] <= complete)


def test_bounded_streams_are_given_out_to_the_end_and_the_query_is_finished(
    world: World, tmp_path: Path
) -> None:
    truth = Counter[int]()
    frames = []
    for name, times in (("short", [5, 15, 20]), ("long", [1, 100, 250])):
        truth.update(t // 10 for t in times)
        log = bounded(tmp_path, name, times)
        frames.append(
            read_stream(world.spark, log, store=world.store, query="q", windows="10 s", max_rows=1)
        )
    counts = frames[0].union(frames[1]).groupBy(F.window("_event_time", "10 seconds")).count()
    job = write_stream(
        counts, sink=StreamSink("out"), query="q", store=world.store, time_behind="0 s"
    )
    # Started for good: it comes to its end by itself.
    with begun(job) as running:
        assert running.wait(timedelta(minutes=5))
    out = Counter({r["window_start"] // (10 * S): r["count"] for r in world.read("out")})
    assert out == truth
    assert job.progress.finished()
    assert job.progress.figures()["dropped_by_spark"] == 0
    with pytest.raises(TidegateError) as over:
        job.run()
    assert over.value.code == "query-finished"
    assert job.reset()
