"""What a batch has read can be read again, and is what its results were made of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.spark.jobs.world import S, World, begun

from tidegate.errors import TidegateError
from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob


def _rows(job: SlicesJob, batch: int, stream: str = "orders") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = job.rows_of(batch)[stream].toArrow().to_pylist()
    return found


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["_partition"], row["_offset"]


def test_results_of_a_batch_are_made_of_its_rows(world: World) -> None:
    world.stream(segments=2)
    job = world.windows(size=10, max_rows=8, watermark="events")
    for n in range(4):
        world.append([(world.key(m % 2), n, 10 * n + 3 * m) for m in range(8)])
    begun(job).stop()
    batches = job.progress.figures()["batches"]
    assert batches > 2
    # What came afterwards, and how it is kept, changes nothing.
    world.store.split("orders", "0.e0")
    world.append([(world.key(m % 2), 9, 3 * m) for m in range(8)])
    counted: Counter[tuple[int, str]] = Counter()
    seen: Counter[tuple[str, int]] = Counter()
    for batch in range(1, batches + 1):
        rows = _rows(job, batch)
        seen.update(_place(row) for row in rows)
        counted.update((round(row["at"].timestamp()) // 10, row["k"]) for row in rows)
    results = {(r["window_start"] // (10 * S), r["k"]): r["n"] for r in world.read("out")}
    assert counted == results
    assert set(seen.values()) == {1}
    for wrong in (0, batches + 1):
        with pytest.raises(TidegateError) as refused:
            job.rows_of(wrong)
        assert refused.value.code == "batch-not-kept"


def test_rows_that_count_in_the_next_window_are_among_those_of_its_batch(world: World) -> None:
    world.stream()
    job = world.windows(size=10, late="next", watermark="events")
    running = begun(job)
    for rows in ([(1, 4), (2, 21)], [(3, 2), (4, 14), (5, 33)], [(6, 60)]):
        world.append([("a", v, at) for v, at in rows])
        running.process_all()
    running.stop()
    batches = job.progress.figures()["batches"]
    read = [sorted(row["v"] for row in _rows(job, batch)) for batch in range(1, batches + 1)]
    # 3 and 4 came when everything before 20 was closed: they count there.
    assert [values for values in read if values] == [[1], [2, 3, 4], [5]]
    with pytest.raises(TidegateError) as refused:
        world.windows(size=10, slide=5, late="next")
    assert refused.value.code == "next-needs-tumbling"


def test_all_streams_of_a_job_are_read_with_what_lies_around(world: World) -> None:
    world.stream()
    world.stream("payments")
    for at in (5, 15, 25, 35):
        world.append([("a", at, at)])
        world.append([("a", at + 1, at + 1)], stream="payments")
    query = (
        "SELECT o._window_start, o._window_end, o.k, count(*) AS n, sum(p.v) AS total"
        " FROM orders o JOIN payments p ON o.k = p.k AND o._window_end = p._window_end"
        " GROUP BY o._window_start, o._window_end, o.k"
    )
    job = world.windows(
        streams=["orders", "payments"], size=20, slide=10, query=query, sink=StreamSink("out"),
        watermark="events",
    )  # fmt: skip
    begun(job).stop()
    for stream, first in (("orders", 0), ("payments", 1)):
        [bounds] = job.slices_of(1)[stream]
        assert bounds.from_time is None
        assert bounds.to_time == 30 * S
        assert [row["v"] for row in _rows(job, 1, stream)] == [5 + first, 15 + first, 25 + first]
