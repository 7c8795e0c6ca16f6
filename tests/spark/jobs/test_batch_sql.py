"""Windows are complete, so their SQL is batch SQL: what others estimate or refuse is exact."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.spark.jobs.truth import Row, Truth, Window
from tests.spark.jobs.world import Both, S, World

from tidegate.spark.sinks import StreamSink

COLUMNS = ("window_start", "window_end", "keys", "different", "low", "middle")
QUERY = (
    "SELECT _window_start, _window_end, count(DISTINCT k) AS keys, count(DISTINCT v) AS different,"
    " percentile(v, 0.25) AS low, median(v) AS middle"
    " FROM orders GROUP BY _window_start, _window_end"
)


def _exactly(window: Window, rows: list[Row]) -> Iterator[tuple[Any, ...]]:
    """The query over one window. Quarters of small whole numbers are exact."""
    values = [row.v for row in rows]
    low, middle = np.percentile(values, [25, 50]).tolist()
    yield (*window, len({row.k for row in rows}), len(set(values)), low, middle)


def test_distinct_counts_and_percentiles_of_hopping_windows_are_those_of_all_rows(
    world: World,
) -> None:
    world.stream(segments=2)
    keys = [world.key(place, nth=n) for place in (0, 1) for n in range(3)]
    random_ = random.Random(12)
    sides = [
        Both(
            world,
            world.windows(
                size=10, slide=4, tolerance="9s", query=QUERY, kernel=kernel, cores=3,
                name=kernel, sink=StreamSink(kernel),
            ),
            Truth(10 * S, 4 * S, tolerance=9 * S),
        )
        for kernel in ("spark", "duckdb")
    ]  # fmt: skip
    for step in range(3):
        times = [15 * step + random_.randint(0, 8) for _ in range(25)] + [15 * step + 9] * 6
        world.append(
            [(keys[n % 6], random_.choice([1, 2, 3, 5, 8, 90]), t) for n, t in enumerate(times)]
        )
        for side in sides:
            side.go()
    for side in sides:
        side.stop()
        found = Counter(
            tuple(row[name] for name in COLUMNS) for row in world.read(side.job.job.name)
        )
        assert found == side.truth.results(_exactly)
        assert len(found) > 5
        assert side.job.explain().startswith(f"kernel: {side.job.job.name},")
        side.check_late()
