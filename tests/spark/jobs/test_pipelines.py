"""Two hops: the second job has exact time with no tolerance, whatever the size of its windows."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import S, World, begun, counted, make_marks

from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob


def _second(world: World, size: int) -> SlicesJob:
    return world.windows(
        streams="tens",
        size=size,
        name=f"every {size}",
        sink=StreamSink(f"of{size}"),
        query="SELECT _window_start, _window_end, k, sum(n) AS n, sum(total) AS total FROM tens"
        " GROUP BY _window_start, _window_end, k",
    )


def test_watermarks_survive_the_hop_into_smaller_and_larger_windows(world: World) -> None:
    world.stream(segments=2)
    first = world.windows(size=10, name="tens", sink=StreamSink("tens"), tolerance="5s")
    truth = Truth(10 * S, tolerance=5 * S)
    random_ = random.Random(3)
    running = [begun(first)]  # which makes the stream that the others read
    seconds = [_second(world, 4), _second(world, 30)]
    running += [begun(job) for job in seconds]
    seen: list[Any] = []
    for step in range(4):
        rows = [
            (world.key(n % 2, nth=n % 3), n, 40 * step + random_.randint(0, 40)) for n in range(30)
        ]
        rows += [(world.key(place), 1, 40 * step + 42) for place in (0, 1)]
        rows.sort(key=lambda row: row[2])
        world.append(rows)
        for job in running:
            job.process_all()
            make_marks(world.store, "tens")
        new = world.rows(seen=seen)
        seen += new
        truth.see(new)
    for job in running:
        job.stop()
    assert world.counts("tens") == truth.results(counted)
    # A result lies at the end of its window, less a microsecond.
    given = [(end - 1, k, n, total) for _, end, k, n, total in truth.results(counted)]
    assert truth.a is not None
    for size, second in zip((4 * S, 30 * S), seconds, strict=True):
        expected: Counter[tuple[int, int, str]] = Counter()
        totals: Counter[tuple[int, int, str]] = Counter()
        for t, k, n, total in given:
            window = (t // size * size, t // size * size + size, k)
            if window[1] <= truth.a:
                expected[window] += n
                totals[window] += total
        got = world.counts(f"of{size // S}")
        assert got == Counter((*window, n, totals[window]) for window, n in expected.items())
        figures = second.progress.figures()
        assert (figures["late"], figures["lost"]) == (0, 0)
