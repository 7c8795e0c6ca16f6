"""Sizes, times and lives at the edge: each once as a real job."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pyarrow as pa
import pytest
from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, S, World, begun, reach

from tidegate.errors import TidegateError
from tidegate.spark.sinks import StreamSink


def test_windows_far_larger_than_the_limits_and_chunks_that_span_a_hundred_of_them(
    world: World,
) -> None:
    world.stream(segments=2)
    random_ = random.Random(7)
    keys = [world.key(place, nth=n) for place in (0, 1) for n in (0, 1)]
    times = sorted(random_.uniform(0, 200) for _ in range(1000))
    crowd = [150 + n / 200 for n in range(1000)]  # one window that is far over the limit
    world.append([(random_.choice(keys), n, t) for n, t in enumerate(times)])
    world.append([(random_.choice(keys), n, t) for n, t in enumerate(crowd)])
    world.append([(k, 1, 205) for k in keys])
    job = world.windows(size=2, tolerance="200s", max_rows=400)
    both = Both(world, job, Truth(2 * S, tolerance=200 * S))
    both.go()
    world.append([(k, 1, 405) for k in keys])
    both.go()
    both.stop()
    assert both.truth.late.total() == both.truth.lost.total() == 0
    assert len(both.truth.given) == 100
    assert job.progress.figures()["batches"] > 3  # the limits were kept where they could be
    both.check()


def test_a_quiet_job_runs_no_batches_and_available_now_ends(world: World) -> None:
    world.stream(segments=2)
    job = world.windows(size=10, idle_after="never")
    assert job.run()["batches"] <= 1  # nobody has written anything
    world.append([(world.key(0), 1, 5), (world.key(0), 1, 25)])
    before = job.run()["batches"]
    # Restarted, polled again and again, with a timer that finds nothing: at most one batch.
    with begun(job) as running:
        again = job.progress.figures()["batches"]
        assert again <= before + 1
        assert not running.wait(timedelta(seconds=3))
        assert job.progress.figures()["batches"] == again
        last = running.query.lastProgress
        assert last is None or last["numInputRows"] == 0 or last["batchId"] < again
    assert job.run()["batches"] <= again + 1
    assert world.counts("out") == Counter()  # the other segment is waited for


def test_a_future_row_moves_nothing_and_an_added_column_is_seen_by_the_next_run(
    world: World,
) -> None:
    world.stream()
    job = world.windows(size=10)
    both = Both(world, job, Truth(10 * S))
    world.append([("a", 1, 5), ("a", 2, 9_999_999_999), ("a", 3, 12)])
    both.go()
    assert [row["reason"] for row in world.read("orders.errors")] == ["future"]
    assert both.truth.a == 10 * S
    world.store.alter_stream("orders", add_columns=[pa.field("city", pa.string())])
    world.append([("a", 4, 15), ("b", 5, 25), ("b", 6, 7)], writer="new", city="Rome")
    both.go()
    both.stop()
    both.check()
    assert [(row["v"], row["city"]) for row in world.read("orders.late")] == [(6, "Rome")]
    cities = world.windows(
        size=10,
        name="cities",
        sink=StreamSink("cities"),
        query="SELECT _window_start, _window_end, city, count(*) AS n FROM orders"
        " GROUP BY _window_start, _window_end, city",
    )
    cities.run()
    found = Counter((r["window_start"], r["city"], r["n"]) for r in world.read("cities"))
    assert found == Counter([(0, None, 1), (0, "Rome", 1), (10 * S, None, 1), (10 * S, "Rome", 1)])
    world.append([("a", 4, 28), ("b", 5, 39)], writer="new", city="Rome")
    both.go()
    both.stop()
    both.check()


def test_what_is_truncated_is_an_error_and_never_a_window_that_is_silently_partial(
    world: World,
) -> None:
    world.stream()
    for t in (5, 15, 25, 35):
        world.append([("a", 1, t)])
    [segment] = [record.name for record in world.store.segments("orders")]
    job = world.windows(size=10)
    both = Both(world, job, Truth(10 * S))
    both.go()
    both.stop()
    # A job that is known holds what it needs, whatever retention wants.
    for t in (45, 55):
        world.append([("a", 1, t)])
    held = world.store.truncate("orders", before={segment: 6})
    assert (held.held_by, held.rows) == (("job",), 3)
    both.go()
    both.stop()
    both.check()
    # One that was away too long has lost its hold, and says so.
    world.append([("a", 1, 65)])
    assert world.store.release("orders", "job")
    world.store.truncate("orders", before={segment: 6})
    with pytest.raises(TidegateError) as behind:
        job.run()
    assert behind.value.code == "rows-truncated"
    both.check()
    # A job that begins at a truncated place says so too; one that begins at what is there runs.
    early = world.windows(size=10, name="early", start={"orders": {segment: 2}})
    with pytest.raises(TidegateError) as truncated:
        early.run()
    assert truncated.value.code == "rows-truncated"
    late = world.windows(size=10, name="late", sink=StreamSink("late"))
    world.append([("a", 1, 75)])
    late.run()
    assert {row["window_start"] for row in world.read("late")} == {60 * S}


def test_processing_time_follows_the_clock_and_nothing_is_late(world: World) -> None:
    schema = pa.schema([("k", pa.string()), ("v", pa.int64())])
    world.store.create_stream("orders", schema, routing_key=("k",))
    job = world.windows(size=0.5, watermark="processing")
    writer = world.store.writer("orders", "w", flush_age=None)
    with begun(job) as running:
        for n in range(3):
            writer.append([{"k": "a", "v": n}, {"k": "b", "v": n}])
            writer.flush()
            newest = max(row["_timestamp"] for row in world.read("orders", "_timestamp"))
            # The clock alone gives the window out: no further row is needed.
            reach(running, (newest + 1) / S)
        figures = running.figures()
    writer.close()
    assert (figures["late"], figures["lost"]) == (0, 0)
    rows = world.read("orders", "_timestamp")
    half = 500_000
    expected = Counter((row["_timestamp"] // half * half, row["k"]) for row in rows)
    got = {(r["window_start"], r["k"]): r["n"] for r in world.read("out")}
    assert got == dict(expected)


def test_a_query_that_starts_at_a_time_has_no_window_that_begins_before_it(world: World) -> None:
    world.stream(segments=2)
    here, there = world.key(0), world.key(1)
    world.append([(here, n, n) for n in range(0, 60, 3)] + [(there, n, n) for n in range(0, 60, 4)])
    job = world.windows(size=10, slide=4, start=25 * S)
    both = Both(world, job, Truth(10 * S, 4 * S, start=26 * S))  # on the grid, which is 2 s
    both.go()
    # Before the start is not late; behind what was given out is.
    world.append([(here, 1, 7), (here, 2, 30), (here, 3, 52), (there, 4, 70), (here, 5, 75)])
    both.go()
    both.stop()
    assert both.truth.lost.total() == 1
    assert min(window[0] for window, _ in both.truth.given) == 28 * S
    both.check()
