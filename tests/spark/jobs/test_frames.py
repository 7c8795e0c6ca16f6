"""Rows of a slice are there once, also when chunks are compacted while files are looked up."""

from __future__ import annotations

from tests.spark.jobs.world import S, World

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.store_log import StoreLog
from tidegate.planning.slices import Interval
from tidegate.spark.frames import frames
from tidegate.spark.rows import StreamRows, rows_of, with_files
from tidegate.spark.shape import Plain


def test_files_from_before_and_after_a_compaction_give_every_row_once(world: World) -> None:
    world.stream()
    for n in range(6):
        world.append([("a", 2 * n, n), ("a", 2 * n + 1, n)])
    log = StoreLog(world.store, "orders")
    [segment] = [record.name for record in world.store.segments("orders")]
    columns = ["k", "v", "_event_time"]

    def looked_up(start: int, end: int) -> dict[str, tuple[StreamRows, ...]]:
        spans = log.overlapping(UNKNOWN, 99 * S, {segment: start}, {segment: end})
        rows = rows_of(log, spans, columns, (UNKNOWN, 99 * S))
        return {"orders": tuple(with_files([rows], log))}

    before = [looked_up(0, 5), looked_up(3, 8)]
    assert world.store.maintain("orders").chunks_joined > 0
    parts = {"orders": [*before, looked_up(1, 12), looked_up(0, 12)]}
    schemas = {"orders": rows_of(log, log.snapshot({}).spans, columns, (UNKNOWN, 0)).schema()}
    made = frames(
        world.spark,
        parts,
        Interval(UNKNOWN, 99 * S),
        UNKNOWN,
        Plain(),
        schemas,
    )
    assert sorted(row.v for row in made["orders"].collect()) == list(range(12))
