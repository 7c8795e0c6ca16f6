"""The four late policies beside the naive truth: results, counts per partition, routed rows.

Each scenario comes from a seed: two segments, times on the borders of windows, exactly at W, and
before 1970.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from tests.spark.jobs.truth import Row, Truth, Window
from tests.spark.jobs.world import KERNEL, Both, S, World, begun, latest

from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import interval_join

STEPS = 4


def _some_rows(world: World, random_: random.Random, w: int | None) -> list[tuple[str, int, float]]:
    """Rows of both segments, around the last ones; often on a border, or exactly at W."""
    rows = []
    for place in (0, 1):
        top = (w or -60 * S) / S
        for _ in range(random_.randint(2, 6)):
            kind = random_.random()
            t = top + random_.randint(-25, 25)
            if kind < 0.2 and w is not None:
                t = w / S
            elif kind < 0.5:
                t = t // 10 * 10
            elif kind < 0.6:
                t = t // 10 * 10 - 0.000001
            rows.append((world.key(place, nth=random_.randint(0, 2)), random_.randint(1, 99), t))
        rows.append((world.key(place), 1, top + random_.randint(5, 40)))
    return rows


def _driven(both: Both, seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(STEPS):
        both.world.append(_some_rows(both.world, random_, both.truth.w))
        both.go()
    both.stop()
    # Each step is a batch, and tells its sink of a frontier when it has released anything.
    assert both.job.progress.figures()["watermarks"] == both.truth.releases


@pytest.mark.parametrize(
    ("size", "slide", "late", "settings"),
    [
        (10, None, "route", {"tolerance": "3s"}),
        (10, 4, "drop", {"allowed_lateness": "4s", "kernel": "spark"}),
        (10, None, "next", {"tolerance": "1s"}),
    ],
)
def test_late_rows_are_used_or_lost_as_the_naive_truth_says(
    world: World, size: int, slide: int | None, late: str, settings: dict[str, str]
) -> None:
    world.stream(segments=2)
    job = world.windows(size=size, slide=slide, late=late, **settings)
    truth = Truth(
        size * S,
        (slide or 0) * S,
        tolerance=int(settings.get("tolerance", "0s")[:-1]) * S,
        allowed=int(settings.get("allowed_lateness", "0s")[:-1]) * S,
        late_policy=late,
    )
    both = Both(world, job, truth)
    _driven(both, seed=11)
    assert truth.late.total() > 5
    assert (truth.lost.total() > 0) == (late != "next")
    both.check()


TOP = (
    "SELECT _window_start, _window_end, k, total FROM ("
    " SELECT _window_start, _window_end, k, sum(v) AS total,"
    " row_number() OVER (PARTITION BY _window_start, _window_end ORDER BY sum(v) DESC, k) AS place"
    " FROM orders GROUP BY _window_start, _window_end, k HAVING sum(v) > 60)"
    " WHERE place <= 2"
)


def _top(window: Window, rows: list[Row]) -> list[tuple[Any, ...]]:
    totals = Counter[str]()
    for row in rows:
        totals[row.k] += row.v
    chosen = sorted((-total, k) for k, total in totals.items() if total > 60)
    return [(*window, k, -total) for total, k in chosen[:2]]


def test_after_the_last_correction_the_view_is_the_truth_with_having_and_top_n(
    world: World,
) -> None:
    world.stream(segments=2)
    job = world.windows(size=10, slide=5, late="update", allowed_lateness="20s", query=TOP)
    truth = Truth(10 * S, 5 * S, allowed=20 * S, late_policy="update")
    both = Both(world, job, truth)
    _driven(both, seed=9)
    said = world.read("out")
    assert {row["_op"] for row in said} == {"insert", "delete"}
    view = latest(said, "window_start", "window_end", "k")
    got = Counter((r["window_start"], r["window_end"], r["k"], r["total"]) for r in view)
    assert got == truth.view(_top)
    assert truth.lost.total() > 0
    both.check_late()


def test_outer_joins_are_corrected_in_windows_and_around_rows(world: World) -> None:
    streams = ("orders", "payments")
    for name in streams:
        world.stream(name)
    settings: dict[str, Any] = {"late": "update", "allowed_lateness": "10 minutes"}
    in_windows = world.windows(
        size=10,
        streams=list(streams),
        query="SELECT o._window_start, o._window_end, o.k, o.v, p.v AS paid FROM orders o"
        " LEFT JOIN payments p ON o.k = p.k AND o._window_end = p._window_end",
        **settings,
    )
    around = interval_join(
        world.spark,
        *streams,
        before="3s",
        after="2s",
        query="SELECT o.v, p.v AS paid FROM orders o LEFT JOIN payments p ON o.k = p.k",
        sink=StreamSink("around"),
        name="around",
        store=world.store,
        kernel=KERNEL,
        **settings,
    )
    truth = Truth(10 * S, allowed=600 * S, late_policy="update", streams=streams)
    random_ = random.Random(2)
    rows: list[Row] = []
    running = [begun(in_windows), begun(around)]
    for step in range(4):
        for name in streams:
            times = [random_.randint(0, 20 * step + 25) for _ in range(5)] + [20 * step + 27]
            world.append(
                [(f"k{random_.randint(0, 1)}", 100 * step + n, t) for n, t in enumerate(times)],
                name,
            )
        for job in running:
            job.process_all()
        new = world.rows(*streams, seen=rows)
        rows += new
        truth.see(new)
    for job in running:
        job.stop()
    assert truth.a is not None
    assert truth.w is not None
    expected = truth.view(_left_joined)
    assert _standing(world.read("out"), "window_end", "k", "v", "paid") == expected
    given = Counter[tuple[Any, ...]]()
    for order in (row for row in rows if row.stream == "orders" and row.t < truth.w + 1 - 2 * S):
        near: list[int | None] = [
            row.v
            for row in rows
            if row.stream == "payments"
            and row.k == order.k
            and order.t - 3 * S <= row.t <= order.t + 2 * S
        ]
        given.update((order.v, paid) for paid in near or [None])
    assert _standing(world.read("around"), "v", "paid") == given
    for name in ("out", "around"):
        assert {row["_op"] for row in world.read(name)} == {"insert", "delete"}


def _left_joined(window: Window, rows: list[Row]) -> list[tuple[Any, ...]]:
    found = []
    for order in (row for row in rows if row.stream == "orders"):
        paid: list[int | None] = [
            row.v for row in rows if row.stream == "payments" and row.k == order.k
        ]
        found += [(window[1], order.k, order.v, v) for v in paid or [None]]
    return found


def _standing(said: list[dict[str, Any]], *columns: str) -> Counter[tuple[Any, ...]]:
    """What was said and not taken back; nothing is taken back that was not said."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in said:
        found[tuple(row[name] for name in columns)] += 1 if row["_op"] == "insert" else -1
    assert min(found.values()) >= 0
    return +found
