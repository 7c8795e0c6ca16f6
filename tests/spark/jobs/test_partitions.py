"""Partitions and streams that come, go, stop, return and never begin."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from tests.spark.jobs.truth import Row, Truth, Window
from tests.spark.jobs.world import Both, S, World, reach

from tidegate.spark.sinks import StreamSink


def test_whoever_is_quiet_holds_nobody_in_any_order_and_returns_without_moving_time(
    world: World,
) -> None:
    world.stream(segments=3)
    left, right = world.key(0), world.key(1)  # the third segment never has a row
    job = world.windows(size=10, idle_after="500ms")
    both = Both(world, job, Truth(10 * S))
    every = [("orders", record.name) for record in world.store.segments("orders")]

    def quiet(until: int) -> None:
        """Wait until all are seen to be idle, and what the furthest one has is given out."""
        assert both.running is not None
        reach(both.running, until)
        both.truth.see(idle=every)

    world.append([(left, 1, 5), (left, 2, 30), (right, 3, 12)])
    both.go(idle=[every[2]])
    quiet(30)
    world.append([(right, 4, 25), (right, 5, 61), (left, 6, 44)])  # 25 is behind what was given out
    both.go(idle=[every[2]])
    quiet(60)
    assert both.truth.w == 61 * S - 1
    both.stop()

    # Restarted with one of them quiet: its number is known still, and nothing goes back.
    world.append([(left, 7, 75), (left, 8, 62)])
    both.go(idle=every[1:])
    quiet(70)
    both.stop()
    assert both.truth.lost.total() == 1
    both.check()


JOINED = (
    "SELECT o._window_start, o._window_end, o.k, o.n, p.total FROM"
    " (SELECT _window_start, _window_end, k, count(*) AS n FROM orders"
    " GROUP BY _window_start, _window_end, k) o LEFT JOIN"
    " (SELECT _window_start, _window_end, k, sum(v) AS total FROM payments"
    " GROUP BY _window_start, _window_end, k) p"
    " ON o.k = p.k AND o._window_end = p._window_end"
)


def _joined(window: Window, rows: list[Row]) -> list[tuple[Any, ...]]:
    found = []
    for k in sorted({row.k for row in rows if row.stream == "orders"}):
        n = sum(row.k == k for row in rows if row.stream == "orders")
        paid = [row.v for row in rows if row.stream == "payments" and row.k == k]
        found.append((*window, k, n, sum(paid) if paid else None))
    return found


def test_two_streams_are_joined_in_a_window_and_a_silent_one_holds_nobody(world: World) -> None:
    world.stream()
    world.stream("payments", segments=2)
    patient, hasty = (
        world.windows(
            size=10, slide=5, streams=["orders", "payments"], query=JOINED, idle_after=after
        )
        for after in ("never", "500ms")
    )
    both = Both(world, hasty, Truth(10 * S, 5 * S, streams=("orders", "payments")))
    [here, there] = [("payments", record.name) for record in world.store.segments("payments")]

    # Nobody has paid yet: payments hold the others until they are known to be idle.
    world.append([("a", 1, 3), ("b", 1, 12), ("a", 1, 21)])
    both.go()
    assert both.running is not None
    reach(both.running, 20)
    both.stop()
    # What two streams get while the job stands still comes in one batch.
    first = world.key(0, "payments")
    world.append([(first, 5, 14), (first, 6, 22), (first, 7, 33)], "payments")
    world.append([(first, 1, 24), ("a", 1, 38)])
    both.job = patient
    both.go(idle=[there])
    both.stop()
    # Restarted while payments are quiet: what they had is known still, then they are idle.
    world.append([(first, 1, 31), (first, 1, 60)])
    both.job = hasty
    both.go(idle=[there])
    assert both.running is not None
    reach(both.running, 60)
    both.truth.see(idle=[here, there])
    both.stop()
    world.append([(first, 8, 59), (first, 9, 63), (first, 1, 72)], "payments")
    world.append([(first, 1, 61), (first, 1, 75)])
    both.job = patient
    both.go(idle=[there])
    both.stop()
    got = Counter(
        (r["window_start"], r["window_end"], r["k"], r["n"], r["total"]) for r in world.read("out")
    )
    assert got == both.truth.results(_joined)
    assert any(total for *_, total in got)
    both.check_late()


def test_segments_are_split_and_merged_while_the_job_runs(world: World) -> None:
    world.stream(segments=2)
    job = world.windows(
        size=10, tolerance="2s", idle_after="never", sink=StreamSink("out", routing_key=("k",))
    )
    both = Both(world, job, Truth(10 * S, tolerance=2 * S))
    keys = [f"k{n}" for n in range(12)]

    def some(top: int) -> None:
        world.append([(k, n, top + n % 7) for n, k in enumerate(keys)])

    some(10)
    both.go()
    store = world.store
    [zero, one] = [r.name for r in store.segments("orders")]
    store.split("orders", zero)
    some(20)
    some(30)
    _follow(both, {zero})
    store.split("out", next(r.name for r in store.segments("out") if r.segment.is_open))
    some(40)
    both.go()
    opened = [r.name for r in store.segments("orders") if r.segment.is_open and r.name != one]
    store.merge("orders", opened[0], opened[1])
    some(50)
    some(60)
    _follow(both, set(opened))
    some(70)
    both.go()
    both.stop()
    assert both.truth.a is not None
    assert both.truth.a >= 60 * S
    both.check()


def _follow(both: Both, gone: set[str]) -> None:
    """Go on after a scale: those who were sealed leave the merge."""
    both.truth.highest = {p: t for p, t in both.truth.highest.items() if p[1] not in gone}
    both.go()


def test_time_goes_on_when_the_clock_steps_back_and_evidence_makes_one_idle(world: World) -> None:
    world.stream(segments=2)
    left, right = world.key(0), world.key(1)
    job = world.windows(size=10, idle_after="1 minute")
    both = Both(world, job, Truth(10 * S))
    [_, other] = [("orders", record.name) for record in world.store.segments("orders")]
    world.append([(left, 1, 5), (right, 1, 8)])
    both.go()
    world.shift = timedelta(hours=-1)
    world.append([(left, 2, 45)])
    both.go()  # no data right now: the other one is waited for
    assert both.truth.a == 0
    world.append([(right, 2, 28)])
    both.go()
    world.shift = timedelta(minutes=5)
    world.append([(left, 3, 71)])
    both.go(idle=[other])  # by the clock of the log it is long silent
    assert both.truth.a == 70 * S
    world.append([(right, 4, 36), (right, 5, 90)])
    both.go()
    both.stop()
    assert both.truth.lost.total() == 1
    both.check()
