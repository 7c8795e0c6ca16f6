"""The planner at the edges: what few queries meet, and none may lose a row over."""

from __future__ import annotations

from datetime import timedelta
from time import perf_counter

import numpy as np
import pytest
from tests.planning.test_plan import Job, S, mark, seconds

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.planning import (
    BatchPlan,
    Division,
    Facts,
    Interval,
    Late,
    Partitions,
    PlannerState,
    Policy,
    Pressure,
    Query,
    Reason,
    Release,
    Spans,
    Strategy,
    StreamFacts,
    WriterFact,
    plan,
)
from tidegate.testing import MemoryLog

BOTH = Query.windows(["orders", "rates"], seconds(10))


def ranges(batch: BatchPlan, stream: str = "orders") -> dict[str, tuple[int, int]]:
    return batch.streams[stream].ranges() if batch.moved else {}


def behind(batch: BatchPlan) -> list[tuple[int, int]]:
    """The offsets whose rows below A count in this release."""
    assert batch.slice is not None
    found = [task.behind["orders"] for task in batch.slice.tasks if task.behind]
    return [
        (int(start), int(end))
        for spans in found
        for start, end in zip(spans.start, spans.end, strict=True)
    ]


# ---- partitions that give way to others while nobody looks ----


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


def test_successors_do_not_enter_twice_when_a_vanished_predecessor_returns() -> None:
    job = Job()
    job.append(0, 10)
    job.plan()
    job.append(0, 11)
    job.log.hide("orders", "0")
    job.log.scale("orders", ["0", "1"], {"2": (0.0, 1.0)})
    job.append(2, 20)
    assert ranges(job.plan()) == {"2": (0, 1)}
    job.log.hide("orders", "0", hidden=False)
    assert ranges(job.plan()) == {"0": (1, 2)}
    job.append(2, 30)
    batch = job.plan()
    assert job.state.streams["orders"].names == ("2",)
    assert ranges(batch) == {"2": (1, 2)}


def test_a_successor_does_not_enter_again_after_it_has_given_way_itself() -> None:
    job = Job()
    job.plan()
    job.log.hide("orders", "0")
    job.log.scale("orders", ["0", "1"], {"2": (0.0, 1.0)})
    job.append(2, 20)
    job.plan()
    job.log.scale("orders", ["2"], {"3": (0.0, 1.0)})
    job.plan()
    job.log.hide("orders", "0", hidden=False)
    batch = job.plan()
    assert job.state.streams["orders"].names == ("3",)
    assert ranges(batch) == {}


def test_a_successor_that_is_not_there_yet_is_waited_for() -> None:
    job = Job(partitions=1)
    job.append(0, 10)
    job.plan()
    job.log.scale("orders", ["0"], {"1": (0.0, 0.5), "2": (0.5, 1.0)})
    job.append(1, 20)
    job.append(2, 20)
    job.log.hide("orders", "2")
    batch = job.plan()
    assert (batch.moved, batch.holds[0].reason) == (False, Reason.SEALED)
    job.log.hide("orders", "2", hidden=False)
    assert ranges(job.plan()) == {"1": (0, 1), "2": (0, 1)}


def test_rows_of_a_successor_that_were_truncated_unread_are_missed() -> None:
    job = Job(partitions=1)
    job.append(0, 10)
    job.plan()
    job.log.scale("orders", ["0"], {"1": (0.0, 1.0)})
    job.append(1, 20)
    job.append(1, 30)
    job.log.truncate("orders", "1", 1)
    with pytest.raises(TidegateError) as caught:
        job.plan()
    assert caught.value.code == "rows-truncated"


def test_a_query_that_starts_takes_what_retention_has_left_of_a_successor() -> None:
    job = Job(partitions=1)
    job.append(0, 10)
    job.log.scale("orders", ["0"], {"1": (0.0, 1.0)})
    job.append(1, 20)
    job.append(1, 30)
    job.log.truncate("orders", "0", 1)
    job.log.truncate("orders", "1", 1)
    batch = job.plan()
    assert ranges(batch) == {"1": (1, 2)}
    # Nobody may ask the log for what was gone before.
    assert batch.streams["orders"].start_cut == {"0": 1, "1": 1}


def test_what_a_newcomer_had_lost_before_it_came_is_not_asked_for() -> None:
    job = Job(partitions=1)
    job.append(0, 10)
    job.plan()
    job.log.add_partition("orders", "9")
    job.append(9, 1)
    job.append(9, 20)
    job.log.truncate("orders", "9", 1)
    batch = job.plan()
    assert ranges(batch) == {"9": (1, 2)}
    assert batch.streams["orders"].start_cut == {"0": 0, "9": 1}


class Silent:
    """A log that nobody asks."""

    def overlapping(self, *_: object) -> Spans:
        raise AssertionError("not asked")

    def cut_at(self, *_: object) -> dict[str, int]:
        raise AssertionError("not asked")


def test_scaling_thousands_of_partitions_at_once_is_one_step() -> None:
    """By groups in one pass: that it is not quadratic shows in seconds, not in per cent."""
    count = 10_000
    names = [f"{i}" for i in range(count)]
    heirs = {name: (f"{name}a", f"{name}b") for name in names}
    query = Query.windows(["orders"], seconds(10))
    nothing = Spans.of([])

    def facts(partitions: Partitions) -> Facts:
        return Facts({"orders": StreamFacts(partitions, nothing)}, Silent())

    state = PlannerState.fresh("wide", ["orders"])
    state, _ = plan(state, facts(Partitions.of(dict.fromkeys(names, 0))), query, Policy(), 0)
    every = [*names, *(heir for pair in heirs.values() for heir in pair)]
    scaled = Partitions.of(dict.fromkeys(every, 0), sealed=names, successors=heirs)
    began = perf_counter()
    state, _ = plan(state, facts(scaled), query, Policy(), 0)
    assert len(state.streams["orders"].names) == 2 * count
    assert perf_counter() - began < 10


# ---- streams that wait, and streams that do not ----


def test_a_stream_without_partitions_holds_the_watermark_until_it_is_idle() -> None:
    job = Job(BOTH, partitions=1, idle_after=seconds(3))
    job.log.add_stream("rates", [])
    job.append(0, 50)
    batch = job.plan(now=0)
    assert batch.watermark is UNKNOWN
    assert "rates: no data yet" in [str(hold) for hold in batch.holds]
    seen = [job.plan(now=now).watermark for now in (1, 2, 3)]
    assert seen == [UNKNOWN, UNKNOWN, 50 * S - 1]


def test_a_stream_without_writers_is_not_idle_while_rows_of_it_are_unread() -> None:
    job = Job(BOTH, partitions=1)
    job.log.set_writers("rates", [WriterFact("feed", 5 * S)])
    job.append(0, 5)
    job.append(0, 5, stream="rates")
    job.log.mark("rates", mark(5, p0=1))
    assert job.plan().watermark == 5 * S - 1
    job.append(0, 7, stream="rates")
    job.append(0, 90)
    job.log.set_writers("rates", [])
    job.pressure = Pressure(paused={("rates", "0"): "slow"})
    batch = job.plan()
    assert batch.watermark == 5 * S - 1
    assert "rates, partition 0: paused: slow" in [str(hold) for hold in batch.holds]
    job.pressure = Pressure()
    batch = job.plan()
    assert len(batch.streams["rates"].late) == 0
    assert batch.watermark == 90 * S - 1


def test_a_mark_that_is_not_reached_is_held_by_the_partition_and_not_by_its_writer() -> None:
    job = Job(watermark=Strategy.MARKS)
    job.log.set_writers("orders", [WriterFact("w", 30 * S)])
    job.append(0, 5)
    job.append(1, 6)
    job.log.mark("orders", mark(30, p0=1, p1=1))
    job.pressure = Pressure(paused={("orders", "1"): "saturated"})
    [hold] = job.plan().holds
    assert str(hold) == "orders, partition 1: paused: saturated"
    job.pressure = Pressure()
    [hold] = job.plan().holds
    assert hold.writer == "w"


def test_a_stream_that_follows_the_clock_is_held_by_no_partition() -> None:
    job = Job(partitions=1, watermark=Strategy.PROCESSING)
    job.append(0, 10)
    assert [str(hold) for hold in job.plan(now=5).holds] == ["orders: at the clock"]


# ---- quiet means unchanged ----


def test_disorder_in_what_is_not_read_is_no_reason_for_a_batch() -> None:
    job = Job(partitions=1)
    job.append(0, 10)
    job.plan()
    job.pressure = Pressure(paused={("orders", "0"): "slow"})
    for at in (9, 5, 1):
        job.append(0, at)
        assert not job.plan().moved


def test_another_policy_alone_is_no_reason_for_a_batch() -> None:
    job = Job(partitions=1, release=Release.TIME)
    job.append(0, 1, 12)
    job.plan()
    for late in (Late.NEXT, Late.DROP, Late.NEXT):
        job.policy = Policy(release=Release.TIME, late=late)
        assert not job.plan().moved


# ---- pace and alignment ----


def test_an_outlier_does_not_slow_the_pace_to_one_span_per_plan() -> None:
    job = Job(partitions=1, max_rows=50)
    job.append(0, 1000)
    for at in range(100):
        job.append(0, at)
    assert [ranges(job.plan()) for _ in range(3)] == [
        {"0": (0, 50)},
        {"0": (50, 100)},
        {"0": (100, 101)},
    ]


def test_nobody_creeps_past_the_drift_of_a_held_partition_plan_by_plan() -> None:
    job = Job(max_drift=seconds(10))
    job.append(0, 1)
    job.append(1, 1)
    job.plan()
    job.append(1, 5)
    for at in (8, 12, 90):
        job.append(0, at)
    job.pressure = Pressure(paused={("orders", "1"): "slow"})
    assert [ranges(job.plan()) for _ in range(3)] == [{"0": (1, 2)}, {}, {}]


def test_spans_longer_than_the_drift_do_not_slow_a_backlog_to_one_span_per_plan() -> None:
    job = Job(max_drift=seconds(20), max_rows=40)
    for minute in range(100):
        job.append(0, 60 * minute)
        job.append(1, 60 * minute + 30)
    assert ranges(job.plan()) == {"0": (0, 20), "1": (0, 20)}
    assert ranges(job.plan()) == {"0": (20, 40), "1": (20, 40)}


def test_where_nobody_may_go_first_the_slowest_does() -> None:
    job = Job(max_drift=seconds(10), max_rows=1)
    for at in (1, 100, 101):
        job.append(0, at)
    for at in (1, 50, 51):
        job.append(1, at)
    taken = [ranges(job.plan()) for _ in range(4)]
    assert taken == [{"0": (0, 1)}, {"1": (0, 1)}, {"1": (1, 2)}, {"0": (1, 2)}]


def test_a_partition_read_by_marks_is_waited_for_as_any_other() -> None:
    job = Job(max_drift=seconds(10), watermark=Strategy.MARKS)
    job.log.set_writers("orders", [WriterFact("w")])
    job.append(0, 1)
    job.append(1, 1)
    job.plan()
    job.append(1, 5)
    for at in (8, 90):
        job.append(0, at)
    job.pressure = Pressure(paused={("orders", "1"): "slow"})
    assert [ranges(job.plan()) for _ in range(2)] == [{"0": (1, 2)}, {}]


# ---- rows below A that count in the next release ----


def test_a_row_that_waits_behind_a_is_released_when_the_input_ends() -> None:
    job = Job(partitions=1, release=Release.TIME, late=Late.NEXT, watermark=Strategy.MARKS)
    job.append(0, 1)
    job.log.mark("orders", mark(40, p0=1))
    assert job.plan().interval == Interval(UNKNOWN, 40 * S)
    job.append(0, 3)
    job.log.end("orders", "0")
    batch = job.plan()
    assert batch.interval == Interval(40 * S, 50 * S)
    assert batch.finished
    assert behind(batch) == [(1, 2)]


def test_a_processing_time_row_behind_a_does_not_wait_for_another_row() -> None:
    job = Job(partitions=1, watermark=Strategy.PROCESSING, release=Release.TIME)
    job.append(0, 1)
    assert job.plan(now=12).interval == Interval(UNKNOWN, 10 * S)
    job.append(0, 3)
    job.plan(now=13)
    batch = job.plan(now=21)
    assert batch.interval == Interval(10 * S, 20 * S)
    assert behind(batch) == [(1, 2)]
    assert [job.plan(now=now).moved for now in (22, 99)] == [False, False]


def test_rows_that_were_released_under_another_policy_do_not_wait_behind_a() -> None:
    job = Job(partitions=1, release=Release.TIME, late=Late.NEXT)
    job.append(0, 1, 12)
    job.plan()
    job.policy = Policy(release=Release.TIME)
    job.append(0, 15, 25)
    assert job.plan().interval == Interval(10 * S, 20 * S)
    job.policy = Policy(release=Release.TIME, late=Late.NEXT)
    job.append(0, 2, 35)
    batch = job.plan()
    assert batch.interval == Interval(20 * S, 30 * S)
    assert behind(batch) == [(4, 6)]  # the row at 2 s, and not those at 12 s and 15 s


# ---- when what is seen has had its last use ----


def test_the_clock_waits_as_long_as_lateness_is_allowed_and_then_rests() -> None:
    job = Job(
        partitions=1,
        watermark=Strategy.PROCESSING,
        release=Release.TIME,
        allowed_lateness=seconds(15),
    )
    job.append(0, 1)
    seen = [job.plan(now=now).interval for now in (16, 24, 31, 99)]
    assert seen[2:] == [Interval(0, 10 * S), None]


def test_the_end_in_arrival_order_closes_windows_that_wait_for_late_rows() -> None:
    job = Job(partitions=1, allowed_lateness=seconds(15))
    job.append(0, 1, 12)
    job.log.end("orders", "0")
    batch = job.plan()
    assert batch.finished
    assert batch.watermark == 35 * S - 1  # W less the allowance closes the window that ends at 20 s
    assert batch.frontier == 20 * S


def test_a_row_between_windows_is_not_lost_before_it_is_late() -> None:
    apart = Query.windows(["orders"], seconds(5), slide=seconds(10))
    job = Job(apart, partitions=1, release=Release.TIME)
    job.append(0, 1, 5)
    assert job.plan().interval == Interval(UNKNOWN, 5 * S)
    job.append(0, 7)
    stream = job.plan().streams["orders"]
    judged = stream.judge(np.array([7 * S, 4 * S]))
    assert judged.late.tolist() == judged.lost.tolist() == [False, True]
    job.log.end("orders", "0")
    assert job.plan().interval == Interval(5 * S, 10 * S)


# ---- start, corrections, division ----


def test_a_start_that_is_given_later_changes_nothing() -> None:
    job = Job(partitions=1, release=Release.TIME)
    job.append(0, 1, 12)
    job.plan()
    job.policy = Policy(release=Release.TIME, start=1000 * S)
    job.append(0, 25, 35)
    batch = job.plan()
    assert batch.interval == Interval(10 * S, 30 * S)
    assert batch.streams["orders"].origin is UNKNOWN


def test_windows_that_begin_before_the_start_of_one_stream_are_not_emitted() -> None:
    job = Job(BOTH, partitions=1, release=Release.TIME, overrides={"rates": Policy(start=12 * S)})
    for stream in ("orders", "rates"):
        job.append(0, 1, 13, 21, 45, stream=stream)
    assert job.plan().interval == Interval(20 * S, 40 * S)


def test_windows_before_the_start_are_not_corrected() -> None:
    job = Job(
        partitions=1,
        release=Release.TIME,
        late=Late.UPDATE,
        allowed_lateness=seconds(50),
        start=20 * S,
    )
    job.append(0, 25, 45)
    job.plan()
    job.append(0, 5, 22, 46)
    correction = job.plan().correction
    assert correction is not None
    assert correction.interval == Interval(20 * S, 40 * S)


def test_a_late_row_of_the_other_side_corrects_the_rows_it_meets() -> None:
    join = Query.interval_join("orders", "rates", before=seconds(5), after=seconds(20))
    job = Job(
        join, partitions=1, release=Release.TIME, late=Late.UPDATE, allowed_lateness=seconds(50)
    )
    job.append(0, 75, 100)
    job.append(0, 100, stream="rates")
    assert job.plan().interval == Interval(UNKNOWN, 80 * S)
    job.append(0, 90, stream="rates")
    correction = job.plan().correction
    assert correction is not None
    assert correction.interval == Interval(70 * S, 80 * S)


def test_a_plan_says_that_it_divided_by_key_range_though_some_pieces_of_time_are_empty() -> None:
    query = Query.windows(["orders"], seconds(10), keyed=True)
    job = Job(query, partitions=2, release=Release.TIME)
    for partition in range(2):
        for at in (1, 5, 61):
            job.append(partition, at)
    piece = job.plan(cores=4).slice
    assert piece is not None
    assert [(task.interval.b // S, task.low, task.high) for task in piece.tasks] == [
        (10, 0.0, 0.5),
        (10, 0.5, 1.0),
    ]
    assert piece.division is Division.KEY_RANGE


def test_a_compacted_span_counts_only_the_rows_that_are_new() -> None:
    log = MemoryLog()
    log.add_stream("orders", ["0"])
    log.append("orders", "0", [1 * S, 2 * S])
    query = Query.windows(["orders"], timedelta(seconds=10))
    state = PlannerState.fresh("compact", ["orders"])
    state, _ = plan(state, log.facts(state), query, Policy(), 0)
    # A log may tell the whole chunk, which begins before the position.
    chunk = Spans.of([("0", 0, 5, 1 * S, 5 * S)])
    facts = Facts({"orders": StreamFacts(Partitions.of({"0": 5}), chunk)}, log)
    _, batch = plan(state, facts, query, Policy(), 0)
    assert ranges(batch) == {"0": (2, 5)}
    assert batch.rows_arrived == 3
