"""Results whose time a query computes: the next job loses nothing, or the job is not made."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.jobs.world import COUNTS, World, begun, make_marks

from tidegate.errors import TidegateError
from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob, interval_join, ordered

EARLIER = "SELECT k, v, _event_time - INTERVAL '3' SECOND AS _event_time FROM orders"
PAIRS = "SELECT o.v, p.v AS w, {time} AS _event_time FROM orders o JOIN payments p ON o.k = p.k"


def _ordered(world: World, query: str, **settings: Any) -> SlicesJob:
    return ordered(
        world.spark, "orders", query=query, store=world.store, name="earlier",
        sink=StreamSink("earlier"), watermark="events", **settings,
    )  # fmt: skip


def _joined(world: World, time: str, **settings: Any) -> SlicesJob:
    return interval_join(
        world.spark, "orders", "payments", before="4 s", after="1 s", query=PAIRS.format(time=time),
        store=world.store, name="pairs", sink=StreamSink("pairs"), **settings,
    )  # fmt: skip


def test_the_next_job_loses_nothing_of_rows_with_an_earlier_time(world: World) -> None:
    world.stream()
    running = begun(_ordered(world, EARLIER, time_behind="3 s"))
    query = COUNTS.replace("FROM orders", "FROM earlier")
    second = world.windows(streams="earlier", size=2, query=query, tolerance="0 s")
    behind = begun(second)
    for at in range(10, 30):
        world.append([("a", at, at)])
        running.process_all()
        make_marks(world.store, "earlier")
        behind.process_all()
    running.stop()
    behind.stop()
    counted = {r["window_start"]: r["n"] for r in world.read("out")}
    assert len(counted) > 5
    assert set(counted.values()) <= {1, 2}
    assert (
        sum(counted.values())
        == second.progress.figures()["rows_in"] - second.progress.detail()["held"]
    )
    assert second.progress.figures()["lost"] == 0


@pytest.mark.parametrize(
    "time", ["o._event_time", "p._event_time", "least(o._event_time, p._event_time)"]
)
def test_the_times_of_rows_as_they_are_need_no_word(world: World, time: str) -> None:
    world.stream()
    world.stream("payments")
    assert _joined(world, time).job.time_behind == (0 if time == "o._event_time" else 4_000_000)
    assert _joined(world, time, time_behind="9 s").job.time_behind == 9_000_000


def test_a_time_that_is_computed_needs_a_word(world: World) -> None:
    world.stream()
    world.stream("payments")
    for make, text in (
        (_ordered, EARLIER),
        (_joined, "o._event_time - INTERVAL '1' DAY"),
        (_joined, "coalesce(p.at, o._event_time)"),
    ):
        with pytest.raises(TidegateError) as refused:
            make(world, text)
        assert refused.value.code == "time-behind-missing"
        assert "they have a time of their own choice" in str(refused.value)
    assert _ordered(world, "SELECT v, _event_time FROM orders").job.time_behind == 0
