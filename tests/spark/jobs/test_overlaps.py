"""Pieces of a batch that overlap in time read a row twice: it counts once all the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, S, World, begun

from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import interval_join

BY_OFFSET = (
    "SELECT _window_start, _window_end, k, count(_offset) AS n, sum(v) AS total FROM orders"
    " GROUP BY _window_start, _window_end, k"
)


@pytest.mark.parametrize("kernel", ["spark", "duckdb"])
def test_rows_that_are_read_through_the_log_count_once(world: World, kernel: Any) -> None:
    """What asks for offsets is not read by Spark itself."""
    for name in ("orders", "payments"):
        world.stream(name)
        world.append([("a", n, n) for n in range(100)], name)
    job = world.windows(size=10, slide=4, kernel=kernel, query=BY_OFFSET)
    both = Both(world, job, Truth(10 * S, 4 * S))
    both.go()
    both.stop()
    both.check()
    joined = interval_join(
        world.spark, "orders", "payments", before="3s", after="2s", store=world.store,
        name="joined", sink=StreamSink("joined"), kernel=kernel,
        query="SELECT o.v, p.v AS w, p._offset AS at FROM orders o JOIN payments p ON o.k = p.k",
    )  # fmt: skip
    with begun(joined):
        pass
    met = Counter((row["v"], row["w"]) for row in world.read("joined"))
    assert met == Counter((n, m) for n in range(97) for m in range(100) if n - 3 <= m <= n + 2)
