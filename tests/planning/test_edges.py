"""The planner at the edges: partitions that give way to others while nobody looks."""

from __future__ import annotations

from tests.planning.test_plan import Job, S, mark, seconds

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.planning import Query, Release, WriterFact


def test_a_stream_that_nobody_writes_is_waited_for_until_its_successors_are_read() -> None:
    job = Job(Query.windows(["orders", "rates"], seconds(10)), partitions=1)
    job.log.set_writers("rates", [WriterFact("feed")])
    job.plan()
    job.log.set_writers("rates", [])
    job.append(0, 5, stream="rates")
    job.log.scale("rates", ["0"], {"2": (0.0, 1.0)})
    job.append(2, 7, stream="rates")
    job.log.mark("rates", mark(8, p0=1, p2=1))
    job.append(0, 50)
    batch = job.plan()
    assert batch.streams["rates"].ranges() == {"0": (0, 1)}
    assert batch.watermark is UNKNOWN  # the row at 7 s is still to come
    batch = job.plan()
    assert batch.streams["rates"].ranges() == {"2": (0, 1)}
    assert len(batch.streams["rates"].late) == 0
    assert batch.watermark == 50 * S - 1


def test_rows_of_a_vanished_partition_are_released_though_its_successors_came_first() -> None:
    job = Job(partitions=2, release=Release.TIME)
    job.append(0, 1)
    job.append(1, 1)
    job.plan()
    job.log.scale("orders", ["0", "1"], {"2": (0.0, 1.0)})
    job.append(2, 3)
    job.plan()
    job.log.hide("orders", "2")
    job.log.scale("orders", ["2"], {"3": (0.0, 0.5), "4": (0.5, 1.0)})
    job.append(3, 15)
    job.append(4, 15)
    batch = job.plan()
    assert batch.slice is not None
    read = [task.reads["orders"] for task in batch.slice.tasks]
    assert {spans.names[i] for spans in read for i in spans.partition} == {"0", "1", "2"}
