"""The planner's rules, one by one; the laws over random scripts are in tests/laws."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.lanes import GlobalWatermarkCollector
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks.cut import Cut
from tidegate.marks.mark import Mark
from tidegate.planning import (
    AUTO,
    BatchPlan,
    Division,
    IdleTimers,
    Interval,
    Late,
    OnUnreadable,
    PlannerState,
    Policy,
    Pressure,
    Query,
    Reason,
    Release,
    Start,
    Strategy,
    WriterFact,
    plan,
)
from tidegate.planning.assignment import lanes_of
from tidegate.testing import MemoryLog

S = 1_000_000
MINUTE = timedelta(minutes=1)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


WINDOWS = Query.windows(["orders"], seconds(10))


class Job:
    """A query that plans again and again over one log."""

    def __init__(
        self,
        query: Query = WINDOWS,
        *,
        partitions: int = 2,
        overrides: Mapping[str, Policy] | None = None,
        arrived_at: int | None = None,
        poll: timedelta = timedelta(seconds=1),
        **policy: object,
    ) -> None:
        self.query = query
        self.policy = Policy(**policy)  # type: ignore[arg-type]
        self.overrides = overrides
        self.pressure = Pressure()
        self.log = MemoryLog()
        for name in query.streams:
            self.log.add_stream(name, [str(i) for i in range(partitions)], arrived_at=arrived_at)
        self.state = PlannerState.fresh("test", query.streams)
        self.timers = IdleTimers(poll)
        self.now = 0

    def append(self, partition: int | str, *at: float, stream: str = "orders") -> None:
        self.log.append(stream, str(partition), [round(t * S) for t in at])

    def plan(self, *, now: float | None = None, cores: int = 2) -> BatchPlan:
        self.now = self.now if now is None else round(now * S)
        facts = self.timers.observe(self.log.facts(self.state), self.state, self.now)
        self.state, batch = plan(
            self.state,
            facts,
            self.query,
            self.policy,
            self.now,
            overrides=self.overrides,
            pressure=self.pressure,
            cores=cores,
        )
        return batch


# ---- late, on time, and the edge between ----


def test_a_row_exactly_tolerance_behind_the_maximum_is_on_time() -> None:
    job = Job(tolerance=seconds(5))
    job.append(0, 20)
    job.append(1, 20)
    assert job.plan().watermark == 15 * S - 1
    job.append(0, 15)
    batch = job.plan()
    assert len(batch.streams["orders"].late) == 0


def test_a_window_closes_when_the_maximum_less_tolerance_reaches_its_end() -> None:
    job = Job(release=Release.TIME, tolerance=seconds(5))
    job.append(0, 1, 14.999999)
    job.append(1, 2, 20)
    assert job.plan().interval == Interval(UNKNOWN, 0)
    job.append(0, 15)
    assert job.plan().interval == Interval(0, 10 * S)


def test_a_late_row_that_an_open_window_can_use_is_not_lost() -> None:
    hopping = Query.windows(["orders"], seconds(10), slide=seconds(5))
    job = Job(hopping, release=Release.TIME, partitions=1)
    job.append(0, 1, 16)
    assert job.plan().interval == Interval(UNKNOWN, 15 * S)
    job.append(0, 12, 4, 16)
    stream = job.plan().streams["orders"]
    judged = stream.judge(stream.late.min_time * 0 + 12 * S)
    assert (judged.late[0], judged.lost[0]) == (True, False)
    judged = stream.judge(stream.late.min_time)
    assert (judged.late[0], judged.lost[0]) == (True, True)


def test_chunk_statistics_show_that_a_batch_has_no_late_rows() -> None:
    job = Job(partitions=1)
    job.append(0, 10)
    job.plan()
    job.append(0, 11)
    job.append(0, 9, 12)
    late = job.plan().streams["orders"].late
    assert (late.start.tolist(), late.end.tolist()) == ([2], [4])


# ---- who holds the watermark ----


def test_an_empty_partition_holds_the_watermark_and_is_named() -> None:
    job = Job()
    job.append(0, 50)
    batch = job.plan()
    assert batch.watermark is UNKNOWN
    [hold] = batch.holds
    assert (hold.partition, hold.reason) == ("1", Reason.NO_DATA)
    assert str(hold) == "orders, partition 1: no data yet"


def test_the_slowest_partition_is_named_as_the_one_that_holds() -> None:
    job = Job()
    job.append(0, 50)
    job.append(1, 20)
    [hold] = job.plan().holds
    assert (hold.partition, hold.reason) == ("1", Reason.LATEST)


def test_a_paused_partition_holds_the_watermark_and_is_never_idle() -> None:
    job = Job(idle_after=seconds(5))
    job.append(0, 50)
    job.append(1, 20)
    job.plan(now=0)
    job.pressure = Pressure(paused={("orders", "1"): "saturated"})
    job.append(0, 90)
    for now in range(1, 20):
        batch = job.plan(now=now)
    assert job.state.watermark == 20 * S - 1
    assert batch.holds[0].reason is Reason.PAUSED


def test_an_unreadable_partition_is_held_with_its_reason_while_the_others_go_on() -> None:
    job = Job()
    job.append(0, 50)
    job.append(1, 20, 60)
    job.log.break_partition("orders", "1", "checksum does not match")
    batch = job.plan()
    assert batch.streams["orders"].ranges() == {"0": (0, 1)}
    assert batch.holds[0].reason is Reason.UNREADABLE
    assert batch.holds[0].detail == "checksum does not match"
    job.log.break_partition("orders", "1", None)
    assert job.plan().watermark == 50 * S - 1


def test_an_unreadable_partition_fails_the_job_where_that_is_asked_for() -> None:
    job = Job(on_unreadable=OnUnreadable.FAIL)
    job.log.break_partition("orders", "1", "checksum does not match")
    with pytest.raises(TidegateError) as caught:
        job.plan()
    assert caught.value.code == "partition-unreadable"


def test_a_throttled_partition_says_so() -> None:
    job = Job()
    job.append(0, 10)
    for at in (1, 2, 3):
        job.append(1, at)
    job.pressure = Pressure(max_rows={("orders", "1"): 2})
    batch = job.plan()
    assert batch.streams["orders"].ranges() == {"0": (0, 1), "1": (0, 2)}
    assert (batch.holds[0].partition, batch.holds[0].reason) == ("1", Reason.THROTTLED)


# ---- idleness needs evidence ----


def test_a_partition_is_idle_when_the_others_arrived_long_after_it() -> None:
    job = Job(idle_after=MINUTE, arrived_at=0)
    job.log.append("orders", "0", [10 * S], arrived_at=30 * S)
    assert job.plan().watermark is UNKNOWN
    job.log.append("orders", "0", [70 * S], arrived_at=60 * S)
    assert job.plan().watermark == 70 * S - 1


def test_without_an_arrival_clock_idleness_needs_polls_that_saw_nothing() -> None:
    job = Job(idle_after=seconds(3))
    job.append(0, 10)
    seen = [job.plan(now=now).watermark for now in range(5)]
    assert seen[:3] == [UNKNOWN] * 3
    assert job.state.watermark == 10 * S - 1


def test_a_gap_between_polls_counts_as_one_poll_interval() -> None:
    job = Job(idle_after=seconds(3))
    job.append(0, 10)
    job.plan(now=0)
    job.plan(now=1000)
    assert job.plan(now=2000).watermark is UNKNOWN


def test_a_clock_that_steps_back_makes_nothing_idle() -> None:
    job = Job(idle_after=seconds(3))
    job.append(0, 10)
    for now in (100, 50, 101, 40, 102):
        batch = job.plan(now=now)
    assert batch.watermark is UNKNOWN


def test_time_spent_behind_is_no_evidence_of_silence() -> None:
    job = Job(idle_after=seconds(3))
    job.append(0, 10)
    job.append(1, 1)
    job.append(1, 2)
    job.pressure = Pressure(max_rows={("orders", "1"): 1})
    job.plan(now=0)
    job.pressure = Pressure(paused={("orders", "1"): "slow"})
    for now in range(1, 10):
        job.plan(now=now)
    job.pressure = Pressure()
    assert job.plan(now=10).watermark == 2 * S - 1


def test_a_returning_partition_is_active_at_once_and_turns_nothing_back() -> None:
    job = Job(idle_after=seconds(2))
    job.append(0, 50)
    job.append(1, 10)
    for now in range(4):
        job.plan(now=now)
    assert job.state.watermark == 50 * S - 1
    job.append(1, 20)
    batch = job.plan(now=4)
    assert batch.watermark == 50 * S - 1
    assert batch.streams["orders"].idle.tolist() == [True, False]
    assert len(batch.streams["orders"].late) == 1


def test_never_switches_idleness_off() -> None:
    job = Job(idle_after=None)
    job.append(0, 10)
    for now in range(500):
        batch = job.plan(now=now)
    assert batch.watermark is UNKNOWN


# ---- pace and alignment ----


def test_a_limited_batch_is_cut_at_a_time_not_at_a_share_of_rows() -> None:
    job = Job(max_rows=4)
    for at in (1, 2, 3, 4):
        job.append(0, at)
    for moment in (2.5, 3.5, 100):
        job.append(1, moment)
    ranges = job.plan().streams["orders"].ranges()
    assert ranges == {"0": (0, 3), "1": (0, 1)}


def test_a_backlog_replays_without_a_late_row() -> None:
    job = Job(max_rows=20)
    for start in range(0, 100, 10):
        job.append(0, *range(start, start + 10))
    for start in range(0, 100, 10):
        job.append(1, *range(start, start + 10))
    late = 0
    while (batch := job.plan()).moved:
        late += len(batch.streams["orders"].late)
    assert late == 0
    assert job.state.watermark == 99 * S - 1


def test_one_span_of_the_slowest_is_always_taken() -> None:
    job = Job(max_rows=1)
    job.append(0, 5, 6, 7)
    job.append(1, 1, 2, 3)
    assert job.plan().streams["orders"].ranges() == {"1": (0, 3)}
    assert job.plan().streams["orders"].ranges() == {"0": (0, 3)}


def test_nobody_reads_further_than_the_drift_past_a_held_partition() -> None:
    job = Job(max_drift=seconds(10))
    job.append(0, 1)
    job.append(1, 1)
    job.plan()
    job.append(1, 5)
    for at in (8, 11, 12, 90):
        job.append(0, at)
    job.pressure = Pressure(paused={("orders", "1"): "slow"})
    batch = job.plan()
    assert batch.streams["orders"].ranges() == {"0": (1, 3)}
    assert batch.holds[0].reason is Reason.PAUSED
    job.pressure = Pressure()
    assert job.plan().streams["orders"].ranges() == {"0": (3, 5), "1": (1, 2)}


def test_aligning_does_not_slow_a_backlog_to_one_drift_per_plan() -> None:
    job = Job(max_drift=seconds(1))
    for at in range(100):
        job.append(0, at)
        job.append(1, at)
    assert job.plan().watermark == 99 * S - 1


def test_alignment_spans_the_streams_of_a_query() -> None:
    job = Job(Query.windows(["orders", "rates"], seconds(10)), partitions=1, max_drift=seconds(10))
    job.append(0, 1)
    job.append(0, 1, stream="rates")
    job.plan()
    job.append(0, 5, stream="rates")
    job.append(0, 9)
    job.append(0, 50)
    job.pressure = Pressure(paused={("rates", "0"): "slow"})
    assert job.plan().streams["orders"].ranges() == {"0": (1, 2)}


# ---- marks, processing time, auto ----


def mark(lower: int, **cut: int) -> Mark:
    offsets = {name.removeprefix("p"): offset for name, offset in cut.items()}
    return Mark(lower * S, lower * S, Cut(offsets), frozenset({"w"}))


def test_a_mark_counts_when_the_plan_has_passed_its_cut() -> None:
    job = Job(watermark=Strategy.MARKS, max_rows=2)
    job.log.set_writers("orders", [WriterFact("w", 30 * S)])
    for at in (1, 5, 9):
        job.append(0, at)
    job.append(1, 2)
    job.log.mark("orders", mark(5, p0=1, p1=1))
    job.log.mark("orders", mark(30, p0=3, p1=1))
    assert job.plan().watermark == 5 * S - 1
    assert job.plan().watermark == 30 * S - 1


def test_auto_follows_marks_from_the_first_writer_on_and_for_good() -> None:
    job = Job()
    job.append(0, 50)
    job.append(1, 50)
    assert job.plan().watermark == 50 * S - 1
    job.log.set_writers("orders", [WriterFact("till")])
    job.append(0, 90)
    job.append(1, 90)
    batch = job.plan()
    assert batch.watermark == 50 * S - 1
    [hold] = batch.holds
    assert (hold.reason, hold.writer) == (Reason.MARKS, "till")
    assert str(hold) == "orders, writer till: waiting for marks: it has not noted a time yet"
    job.log.set_writers("orders", [])
    job.log.mark("orders", mark(70, p0=2, p1=2))
    assert job.plan().watermark == 70 * S - 1


def test_a_stream_read_by_marks_is_idle_only_when_no_writer_is_left() -> None:
    job = Job(Query.windows(["orders", "rates"], seconds(10)), partitions=1, idle_after=seconds(2))
    job.log.set_writers("rates", [WriterFact("feed")])
    job.append(0, 50)
    for now in range(10):
        batch = job.plan(now=now)
    assert batch.watermark is UNKNOWN
    job.log.set_writers("rates", [])
    assert job.plan().watermark == 50 * S - 1


def test_processing_time_follows_the_clock_and_comes_to_rest() -> None:
    job = Job(partitions=1, watermark=Strategy.PROCESSING, release=Release.TIME)
    job.append(0, 1, 2)
    assert job.plan(now=5).interval == Interval(UNKNOWN, 0)
    assert job.plan(now=12).interval == Interval(0, 10 * S)
    assert [job.plan(now=now).moved for now in (13, 25, 99)] == [False] * 3


def test_a_processing_time_row_behind_a_is_not_late_and_counts_in_the_next_release() -> None:
    job = Job(partitions=1, watermark=Strategy.PROCESSING, release=Release.TIME)
    job.append(0, 1)
    job.plan(now=12)
    job.append(0, 3)  # a slow transaction
    job.append(0, 13)
    batch = job.plan(now=25)
    assert len(batch.streams["orders"].late) == 0
    assert batch.slice is not None
    assert batch.interval == Interval(10 * S, 20 * S)
    behind = batch.slice.tasks[0].behind["orders"]
    assert (behind.start.tolist(), behind.end.tolist()) == ([1], [2])


def test_auto_tolerance_is_the_largest_disorder_the_log_has_recorded() -> None:
    job = Job(partitions=1, tolerance=AUTO)
    job.append(0, 10, 7, 20)
    assert job.plan().watermark == 17 * S - 1
    job.append(0, 30, 20)
    assert job.plan().watermark == 20 * S - 1


# ---- several streams ----


def test_a_quiet_stream_does_not_hold_the_others() -> None:
    job = Job(Query.windows(["orders", "rates"], seconds(10)), partitions=1, idle_after=seconds(2))
    job.append(0, 50)
    for now in range(4):
        job.plan(now=now)
    assert job.state.watermark == 50 * S - 1


def test_an_interval_join_waits_until_the_other_side_is_complete() -> None:
    join = Query.interval_join("orders", "rates", before=seconds(5), after=seconds(20))
    job = Job(join, partitions=1, release=Release.TIME)
    job.append(0, 10, 100)
    job.append(0, 6, 40, stream="rates")
    batch = job.plan()
    assert batch.interval == Interval(UNKNOWN, 20 * S)
    job.append(0, 120, stream="rates")
    batch = job.plan()
    assert batch.interval == Interval(20 * S, 80 * S)
    assert batch.slice is not None
    read = [int(t) for task in batch.slice.tasks for t in task.reads["rates"].max_time]
    assert min(read) >= 15 * S


def test_a_stream_may_have_settings_of_its_own() -> None:
    query = Query.windows(["orders", "rates"], seconds(10))
    job = Job(query, partitions=1, overrides={"rates": Policy(tolerance=seconds(30))})
    job.append(0, 50)
    job.append(0, 50, stream="rates")
    assert job.plan().watermark == 20 * S - 1


# ---- start ----


def test_start_latest_sees_only_what_comes() -> None:
    job = Job(start=Start.LATEST)
    job.append(0, 1)
    job.append(1, 1)
    job.plan()
    job.append(0, 5)
    assert job.plan().streams["orders"].ranges() == {"0": (1, 2)}


def test_start_at_a_time_emits_whole_windows_only() -> None:
    job = Job(release=Release.TIME, partitions=1, start=12 * S)
    job.append(0, 1, 2)
    job.append(0, 11, 13, 21, 45)
    batch = job.plan()
    assert batch.interval == Interval(20 * S, 40 * S)
    stream = batch.streams["orders"]
    assert stream.start_cut == {"0": 2}
    judged = stream.judge(stream.arrived.min_time)
    assert (judged.late[0], judged.lost[0], judged.before_start[0]) == (False, False, True)


def test_start_at_a_cut_must_cover_the_stream() -> None:
    job = Job(start={"orders": {"0": 1}})
    with pytest.raises(TidegateError) as caught:
        job.plan()
    assert caught.value.code == "start-cut-incomplete"
    job = Job(start={"orders": {"0": 1, "1": 0}})
    job.append(0, 1, 2)
    assert job.plan().streams["orders"].ranges() == {"0": (1, 2)}


def test_a_job_that_falls_behind_its_retention_fails_loudly() -> None:
    job = Job(partitions=1)
    job.append(0, 1, 2, 3)
    job.log.truncate("orders", "0", 2)
    job.plan()
    job.append(0, 4, 5)
    job.log.truncate("orders", "0", 4)
    with pytest.raises(TidegateError) as caught:
        job.plan()
    assert caught.value.code == "rows-truncated"


# ---- sealed partitions ----


def test_successors_are_not_read_before_every_predecessor_is_planned_to_its_end() -> None:
    job = Job()
    job.append(0, 10)
    job.append(1, 20)
    job.append(1, 25)
    job.log.scale("orders", ["0", "1"], {"2": (0.0, 1.0)})
    job.append(2, 30)
    job.pressure = Pressure(max_rows={("orders", "1"): 1})
    assert job.plan().streams["orders"].ranges() == {"0": (0, 1), "1": (0, 1)}
    batch = job.plan()
    assert batch.streams["orders"].ranges() == {"1": (1, 2)}
    assert batch.watermark == 10 * S - 1
    batch = job.plan()
    assert batch.streams["orders"].ranges() == {"2": (0, 1)}
    assert batch.watermark == 30 * S - 1
    assert batch.streams["orders"].rebalanced


def test_successors_enter_with_the_minimum_of_their_predecessors_numbers() -> None:
    job = Job(idle_after=seconds(1))
    job.append(0, 10)
    job.append(1, 20)
    job.plan()
    job.log.scale("orders", ["0"], {"2": (0.0, 0.25), "3": (0.25, 0.5)})
    job.append(2, 40)
    job.append(1, 50)
    batch = job.plan()
    assert batch.watermark == 10 * S - 1
    assert dict(
        zip(batch.streams["orders"].names, batch.streams["orders"].number, strict=True)
    ) == {
        "1": 50 * S,
        "2": 40 * S,
        "3": 10 * S,
    }


# ---- slices ----


def test_rows_above_b_stay_in_the_log() -> None:
    job = Job(release=Release.TIME, partitions=1)
    job.append(0, 1, 12)
    job.append(0, 33)
    batch = job.plan()
    assert batch.interval == Interval(UNKNOWN, 30 * S)
    assert batch.slice is not None
    assert {int(end) for task in batch.slice.tasks for end in task.reads["orders"].end} == {2}


def test_a_paced_release_takes_at_least_one_step_of_the_grid() -> None:
    job = Job(release=Release.TIME, partitions=1, max_rows=3)
    for at in range(100):
        job.append(0, at)
    batch = job.plan()
    assert batch.interval == Interval(UNKNOWN, 10 * S)
    assert "one step of the grid" in batch.warnings[0]
    job.policy = Policy(release=Release.TIME, max_rows=35)
    assert job.plan().interval == Interval(10 * S, 40 * S)
    assert job.plan().interval == Interval(40 * S, 70 * S)


def test_work_is_divided_by_time_with_whole_windows_in_each_task() -> None:
    job = Job(release=Release.TIME, partitions=1)
    for at in range(1000):
        job.append(0, at)
    piece = job.plan(cores=4).slice
    assert piece is not None
    assert piece.division is Division.TIME
    assert len(piece.tasks) == 4
    assert all(task.interval.b % (10 * S) == 0 for task in piece.tasks)
    rows = [task.rows for task in piece.tasks]
    assert max(rows) <= 1.2 * min(rows)


def test_fewer_windows_than_cores_are_divided_by_key_range() -> None:
    query = Query.windows(["orders"], seconds(10), keyed=True)
    job = Job(query, release=Release.TIME, partitions=4)
    for partition in range(4):
        job.append(partition, 1, 2, 3)
    job.log.scale("orders", ["0"], {"4": (0.0, 0.125), "5": (0.125, 0.25)})
    for partition in (1, 2, 3, 4, 5):
        job.append(partition, 5, 12)
    job.plan(cores=2)
    piece = None
    while piece is None:
        piece = job.plan(cores=2).slice
    assert piece.division is Division.KEY_RANGE
    assert [(task.low, task.high) for task in piece.tasks] == [(0.0, 0.5), (0.5, 1.0)]
    # A key's rows in a sealed segment and in its heir go to the same task.
    first = piece.tasks[0].reads["orders"]
    assert {first.names[i] for i in first.partition} == {"0", "1", "4", "5"}


def test_fewer_windows_than_cores_without_a_routing_key_need_a_shuffle() -> None:
    job = Job(release=Release.TIME)
    job.append(0, 1, 12)
    job.append(1, 1, 12)
    piece = job.plan(cores=4).slice
    assert piece is not None
    assert piece.division is Division.SHUFFLE


def test_a_plan_says_when_it_reads_many_rows_for_few() -> None:
    job = Job(release=Release.TIME, partitions=1)
    job.append(0, *range(1000))
    job.plan()
    job = Job(release=Release.TIME, partitions=1, max_rows=20, max_amplification=4.0)
    job.append(0, *range(1000))
    batch = job.plan()
    assert batch.slice is not None
    assert batch.slice.amplification > 4
    assert "reads 1000 rows to release about" in batch.warnings[0]


def test_hopping_windows_read_back_before_a() -> None:
    hopping = Query.windows(["orders"], seconds(10), slide=seconds(5))
    job = Job(hopping, release=Release.TIME, partitions=1)
    job.append(0, 6)
    job.append(0, 10)
    job.plan()
    job.append(0, 15)
    batch = job.plan()
    assert batch.interval == Interval(10 * S, 15 * S)
    assert batch.slice is not None
    assert batch.slice.tasks[0].reads["orders"].min_time.tolist() == [6 * S, 10 * S]


def test_allowed_lateness_is_waited_for() -> None:
    job = Job(release=Release.TIME, partitions=1, allowed_lateness=seconds(10))
    job.append(0, 1, 15)
    assert job.plan().interval == Interval(UNKNOWN, 0)
    job.append(0, 20)
    assert job.plan().interval == Interval(0, 10 * S)


def test_update_runs_correctable_windows_again_and_waits_for_nothing() -> None:
    job = Job(release=Release.TIME, partitions=1, late=Late.UPDATE, allowed_lateness=seconds(20))
    job.append(0, 1, 35)
    batch = job.plan()
    assert batch.interval == Interval(UNKNOWN, 30 * S)
    assert batch.frontier == 10 * S
    job.append(0, 25)
    batch = job.plan()
    assert batch.correction is not None
    assert batch.correction.interval == Interval(20 * S, 30 * S)
    stream = batch.streams["orders"]
    assert not stream.judge(stream.late.min_time).lost.any()
    job.append(0, 5)
    batch = job.plan()
    stream = batch.streams["orders"]
    assert stream.judge(stream.late.min_time).lost.all()


def test_next_is_refused_where_there_is_more_than_one_next_window() -> None:
    hopping = Query.windows(["orders"], seconds(10), slide=seconds(5))
    with pytest.raises(TidegateError) as caught:
        Job(hopping, release=Release.TIME, late=Late.NEXT).plan()
    assert caught.value.code == "next-needs-tumbling"


def test_update_is_refused_in_arrival_order() -> None:
    with pytest.raises(TidegateError) as caught:
        Policy(late=Late.UPDATE)
    assert caught.value.code == "update-needs-slices"


# ---- the end ----


def test_the_end_flushes_what_is_open_and_finishes_the_query() -> None:
    job = Job(release=Release.TIME, partitions=1)
    job.append(0, 1, 12)
    job.log.end("orders", "0")
    batch = job.plan()
    assert batch.interval == Interval(UNKNOWN, 20 * S)
    assert batch.finished
    assert not job.plan().moved
    with pytest.raises(TidegateError) as caught:
        job.state.begin_run()
    assert caught.value.code == "query-finished"


def test_the_end_in_arrival_order_closes_what_is_open_and_nothing_more() -> None:
    job = Job(partitions=1)
    job.append(0, 1, 12)
    job.log.end("orders", "0")
    batch = job.plan()
    assert batch.finished
    assert batch.watermark == 20 * S - 1


def test_an_ended_partition_does_not_hold_the_others() -> None:
    job = Job()
    job.append(0, 1)
    job.log.end("orders", "0")
    job.append(1, 50)
    assert job.plan().watermark == 50 * S - 1


# ---- lanes ----


def test_the_lanes_together_say_what_the_planner_says() -> None:
    job = Job(partitions=5)
    for partition, at in enumerate((50, 20, 90, 70, 40)):
        job.append(partition, at)
    batch = job.plan()
    lanes = lanes_of(batch, 3)
    collector = GlobalWatermarkCollector(3)
    collector.gather(lanes)
    assert sum(len(lane) for lane in lanes) == 5
    number = collector.global_watermark
    assert isinstance(number, int)
    assert number - 1 == batch.watermark


# ---- state ----


def test_a_damaged_state_is_refused_with_its_reason() -> None:
    for text in ("", "{}", '{"version":7}', '{"version":1,"lineage":"q"}'):
        with pytest.raises(TidegateError) as caught:
            PlannerState.from_json(text)
        assert caught.value.code == "state-not-read"


def test_the_state_of_many_partitions_is_packed() -> None:
    job = Job(partitions=1000)
    for partition in range(1000):
        job.append(partition, 10 + partition / 1000)
    job.plan()
    assert len(job.state.to_json()) < 20_000
