"""A batch that did not come to its end is the same batch when it runs again.

Meanwhile rows are appended and chunks compacted; the sink may have had it already.
"""

from __future__ import annotations

from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, S, World


def test_a_batch_that_runs_again_is_the_same_whatever_came_meanwhile(world: World) -> None:
    world.stream(segments=2)
    here, there = world.key(0), world.key(1)
    for t in (1, 2, 3):
        world.append([(here, 7, t), (there, 7, t)])
    job = world.windows(size=10, slide=4, start="latest")
    both = Both(world, job, Truth(10 * S, 4 * S))

    # The first batch resolves where "latest" is; it must not do so again.
    both.fail("batch: begun")
    both.truth = Truth(10 * S, 4 * S)
    for t in (12, 15, 31):
        world.append([(here, 1, t), (there, 2, t - 1)])
    both.go()

    for step in ("batch: written", "batch: before commit", "batch: committed"):
        top = (both.truth.w or 0) / S
        both.stop()  # nobody plans between two appends: they all come in the batch that fails
        for by in (-30, -3, 9, 22):
            world.append([(here, 3, top + by), (there, 4, top + by + 1)])
        both.fail(step)
        world.append([(here, 5, top - 8), (there, 6, top + 25), (here, 6, top + 28)])
        assert world.store.maintain("orders").chunks_joined > 0
        both.go()
    both.stop()
    assert both.truth.lost.total() > 0
    both.check()
