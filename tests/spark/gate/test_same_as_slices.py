"""Two gears, one answer: slices and the gate give the same windows of the same rows."""

from __future__ import annotations

import math
import random

import pytest
from pyspark.sql import functions as F
from tests.spark.jobs.world import S, World, begun

from tidegate.spark import StreamSink, read_stream, write_stream


@pytest.mark.parametrize(
    ("seed", "size", "slide"),
    [pytest.param(1, 10, None, marks=pytest.mark.faults), (3, 7, 3)],
    ids=["10", "7/3"],
)
def test_the_same_windows_of_rows_that_are_not_late(
    world: World, seed: int, size: int, slide: int | None
) -> None:
    random_ = random.Random(seed)
    world.stream(segments=2)
    slices = world.windows(size=size, slide=slide, name="slices", sink=StreamSink("by_slices"))
    hop = f"{slide or size} seconds"
    orders = read_stream(
        world.spark,
        "orders",
        store=world.store,
        query="gate",
        windows=(f"{size} s", f"{slide or size} s"),
        max_rows=random_.choice([3, 1000]),
    )
    counts = orders.groupBy(F.window("at", f"{size} seconds", hop), "k")
    made = counts.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
    gate = write_stream(made, sink=StreamSink("by_gate"), query="gate", store=world.store)
    tops = [0.0, 0.0]
    for _ in range(4):
        rows = []
        for place in (0, 1):
            for _ in range(random_.randint(1, 6)):
                # In order in each segment: whole seconds, borders of windows, and just before them.
                step = random_.choice([0, 0, 1, 2, 5, 30])
                tops[place] = math.ceil(tops[place]) + step
                if random_.random() < 0.3 and step:
                    tops[place] -= random_.choice([0.000001, 0.001, 0.0005])
                key = world.key(place, nth=random_.randint(0, 2))
                rows.append((key, random_.randint(1, 99), tops[place]))
        world.append(rows)
    world.append([(world.key(place), 1, max(tops) // size * size + size) for place in (0, 1)])
    for job in (slices, gate):
        with begun(job) as running:
            running.process_all()
            told = running.figures()
            assert (told["late"], told["lost"]) == (0, 0)
    assert world.counts("by_slices") == world.counts("by_gate")
    assert len(world.counts("by_gate")) > 3
    if slide is None:
        # The last rows lie at the end of the window before them: that is enough to give it out.
        last = max(tops) // size * size + size
        assert max(row["window_end"] for row in world.read("by_gate")) == last * S
        assert gate.progress.frontier() == slices.progress.frontier() == last * S
