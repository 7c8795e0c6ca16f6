from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tidegate.marks import (
    Cut,
    Cycle,
    Generation,
    Lineage,
    Mark,
    MarkPolicy,
    Standing,
    WriterMark,
    WriterMarks,
    cycle,
)

MS = 1_000
THIRDS = [
    (0.0, 0.3333333333333333),
    (0.3333333333333333, 0.6666666666666666),
    (0.6666666666666666, 1.0),
]
SECOND = timedelta(seconds=1)


class Stream:
    """One stream with its writers and its controller, which keeps its state as JSON."""

    def __init__(self, lineage: Lineage, timeout: timedelta, **options: timedelta) -> None:
        self.lineage = lineage
        self.policy = MarkPolicy(timeout, **options)
        self.writers = WriterMarks()
        self.state = json.dumps(Generation().to_json())
        self.removed = 0

    def note(self, writer: str, time: int, position: dict[str, int] | None = None) -> None:
        self.writers.note(writer, time, Cut(position or {}), self.lineage)

    def cycle(self, now: int) -> Cycle:
        state = Generation.from_json(json.loads(self.state))
        done = cycle(state, self.writers, self.lineage, now=now * MS, policy=self.policy)
        self.state = json.dumps(done.state.to_json())
        for seen in done.dropped:
            self.writers.remove(seen)
        self.removed += len(done.dropped)
        assert done.scheduled == (len(self.writers) > 0)
        return done

    def run(self, now: int = 0) -> tuple[int, int, dict[str, int]] | None:
        mark = self.cycle(now).mark
        return None if mark is None else (mark.lower, mark.upper, dict(mark.cut))


@pytest.fixture
def stream() -> Stream:
    return Stream(Lineage.start(1), SECOND)


# ---- the cases of the systems we learned from ----


def test_pc01_who_is_active_and_who_takes_part_relative_to_the_last_mark() -> None:
    state, now = Generation(), 0

    def active(time: int, timeout: int) -> bool:
        nonlocal state
        mark = WriterMark("w", time)
        state = state.watch([mark], now)
        return state.standing(mark, now, timedelta(milliseconds=timeout)) is not Standing.OUT

    def emit(lower: int, upper: int) -> None:
        nonlocal state
        state = replace(state, last=Mark(lower, upper, Cut()))

    def tracked() -> bool:
        return "w" in state.behind_since

    assert active(0, 0)
    assert state.is_past(0)
    emit(1, 2)
    assert active(2, 0)
    assert not active(1, 0)
    assert tracked()
    assert not state.is_past(1)
    assert state.is_past(2)
    assert active(2, 0)
    emit(2, 3)
    assert not active(2, 0)
    assert tracked()
    assert active(3, 0)
    assert not state.is_past(2)
    assert state.is_past(3)
    assert active(0, 1000)
    assert tracked()
    assert active(3, 0)
    assert not tracked()
    emit(3, 4)
    assert not active(3, 0)
    assert active(4, 0)
    emit(4, 5)
    assert not active(3, 0)
    assert not state.is_past(4)
    assert state.is_past(5)
    assert active(1, 1000)
    now += 1000 * MS
    assert not active(1, 1)
    assert tracked()
    assert not active(4, 0)
    assert active(5, 0)


def test_pw01_marks_follow_writers_over_a_scale_and_a_goodbye() -> None:
    stream = Stream(Lineage.start(THIRDS), timedelta(milliseconds=10_000))
    stream.note("w1", 100, {"0.e0": 100, "1.e0": 200})
    stream.note("w2", 101, {"1.e0": 100, "2.e0": 200})
    stream.note("w3", 102, {"2.e0": 100, "0.e0": 200})
    assert stream.run() == (100, 102, {"0.e0": 200, "1.e0": 200, "2.e0": 200})
    stream.note("w1", 200, {"1.e0": 300})
    stream.note("w2", 201, {"1.e0": 100, "2.e0": 300})
    stream.note("w3", 202, {"2.e0": 300})
    assert stream.run() == (200, 202, {"0.e0": 200, "1.e0": 300, "2.e0": 300})
    stream.lineage = stream.lineage.scale(["0.e0", "1.e0", "2.e0"], [(0.0, 0.5), (0.5, 1.0)])
    stream.note("w1", 302, {"0.e0": 300, "1.e0": 400})
    stream.note("w2", 301, {"1.e0": 100, "2.e0": 400})
    stream.note("w3", 300, {"3.e1": 100})
    assert stream.run() == (300, 302, {"3.e1": 100, "4.e1": 0})
    stream.note("w1", 400, {"0.e0": 400, "1.e0": 400})
    stream.note("w2", 401, {"1.e0": 100, "2.e0": 400})
    assert stream.run() is None
    silent = stream.writers.get("w3")
    assert silent is not None
    assert (silent.time, silent.alive) == (300, True)
    gone = stream.writers.goodbye("w3")
    assert (gone.time, gone.alive) == (300, False)
    assert stream.run() == (400, 401, {"3.e1": 100, "4.e1": 0})
    assert stream.writers.get("w3") is None
    stream.note("w1", 500, {"0.e0": 500, "1.e0": 500})
    stream.note("w2", 501, {"1.e0": 100, "2.e0": 500})
    stream.note("w3", 502, {"4.e1": 500})
    assert stream.run() == (500, 502, {"3.e1": 100, "4.e1": 500})


def test_pw02_silent_writers_are_dropped_and_the_stream_leaves_and_reenters_the_schedule() -> None:
    stream = Stream(Lineage.start(THIRDS), timedelta(milliseconds=3_000))
    stream.note("w1", 102, {"0.e0": 100, "1.e0": 0, "2.e0": 0})
    stream.note("w2", 101, {"0.e0": 0, "1.e0": 100, "2.e0": 0})
    stream.note("w3", 100, {"0.e0": 0, "1.e0": 0, "2.e0": 100})
    assert stream.run(0) == (100, 102, {"0.e0": 100, "1.e0": 100, "2.e0": 100})
    stream.note("w1", 200, {"0.e0": 200, "1.e0": 0, "2.e0": 0})
    stream.note("w2", 200, {"0.e0": 0, "1.e0": 200, "2.e0": 0})
    assert stream.run(10) is None
    assert stream.run(20) is None
    assert stream.run(5020) == (200, 200, {"0.e0": 200, "1.e0": 200, "2.e0": 100})
    assert stream.removed == 1
    assert stream.run(5030) is None
    assert len(stream.writers) > 0
    assert stream.run(10040) is None
    assert stream.removed == 3
    assert len(stream.writers) == 0
    stream.note("w3", 300, {"0.e0": 300, "1.e0": 0, "2.e0": 0})
    assert stream.run(10050) == (300, 300, {"0.e0": 300, "1.e0": 200, "2.e0": 100})


# ---- our own rules ----


def test_a_writer_is_dropped_exactly_when_the_timeout_has_passed(stream: Stream) -> None:
    stream.writers.register("silent")
    stream.note("busy", 5)
    assert stream.run(0) is None
    assert stream.run(999) is None
    assert stream.run(1000) is not None
    assert stream.writers.get("silent") is None


def test_the_timeout_begins_with_the_cycle_that_saw_the_writer_behind_not_with_its_note(
    stream: Stream,
) -> None:
    stream.note("a", 5)
    stream.note("b", 5)
    assert stream.run(0) is not None
    stream.note("a", 6)
    assert stream.run(5000) is None
    assert stream.run(5999) is None
    assert stream.run(6000) is not None


def test_a_note_that_does_not_pass_the_mark_does_not_start_the_timeout_again(
    stream: Stream,
) -> None:
    stream.note("a", 5)
    stream.note("b", 5)
    stream.run(0)
    stream.note("a", 6)
    assert stream.run(100) is None
    stream.note("b", 5)
    assert stream.run(1099) is None
    assert stream.run(1100) is not None


def test_a_clock_that_steps_back_only_makes_the_wait_longer(stream: Stream) -> None:
    stream.writers.register("silent")
    stream.note("busy", 5)
    assert stream.run(10_000) is None
    assert stream.run(4_000) is None
    assert stream.run(4_999) is None
    assert stream.run(5_000) is not None


def test_a_registered_writer_holds_the_marks_until_its_first_note(stream: Stream) -> None:
    stream.writers.register("new")
    stream.note("old", 5)
    held = stream.cycle(0)
    assert held.mark is None
    assert held.held_by == ("new",)
    stream.note("new", 3)
    assert stream.run(10) == (3, 5, {"0.e0": 0})


def test_newcomers_one_after_another_hold_a_mark_no_longer_than_one_alone(stream: Stream) -> None:
    stream.note("busy", 5)
    for number in range(10):
        stream.writers.register(f"new{number}")
        assert stream.cycle(number * 100).held_by
    stream.writers.register("new10")
    done = stream.cycle(1000)
    assert done.mark is not None
    assert done.held_by == ()
    # The others are passed over, not dropped: each of them holds the next mark.
    assert [mark.writer for mark in done.dropped] == ["new0"]
    stream.note("busy", 6)
    assert "new10" in stream.cycle(1001).held_by


def test_the_time_a_sink_holds_the_marks_is_not_counted_against_newcomers(stream: Stream) -> None:
    stream.writers.register("job", sink=True)
    stream.note("busy", 5)
    assert stream.run(0) is None
    assert stream.run(9000) is None
    stream.writers.register("new")
    assert stream.run(9500) is None
    stream.note("job", 5)
    assert stream.cycle(9600).held_by == ("new",)
    assert stream.cycle(10_499).held_by == ("new",)
    assert stream.run(10_500) is not None


def test_a_writer_that_came_back_behind_waits_and_holds_nobody(stream: Stream) -> None:
    stream.note("a", 5)
    stream.note("b", 4)
    stream.run(0)
    stream.note("a", 10)
    stream.run(10)
    assert stream.run(1010) == (10, 10, {"0.e0": 0})
    stream.note("b", 6)
    stream.note("a", 20)
    done = stream.cycle(1020)
    assert done.mark is not None
    assert (done.mark.lower, sorted(done.mark.writers), done.held_by) == (20, ["a"], ())
    stream.note("b", 30)
    stream.note("a", 31)
    caught_up = stream.cycle(1030).mark
    assert caught_up is not None
    assert (caught_up.lower, sorted(caught_up.writers)) == (30, ["a", "b"])


def test_a_waiting_writer_that_falls_silent_is_forgotten(stream: Stream) -> None:
    stream.note("a", 50)
    stream.run(0)
    stream.note("late", 6)
    stream.note("a", 60)
    assert stream.run(10) == (60, 60, {"0.e0": 0})
    assert stream.writers.get("late") is not None
    stream.run(1010)
    assert stream.writers.get("late") is None


def test_a_jobs_sink_is_waited_for_without_end(stream: Stream) -> None:
    stream.writers.register("job", sink=True)
    stream.note("busy", 5)
    assert stream.run(0) is None
    held = stream.cycle(1_000_000_000)
    assert held.mark is None
    assert held.held_by == ("job",)
    stream.note("job", 4)
    assert stream.run(1_000_000_001) == (4, 5, {"0.e0": 0})
    stream.note("busy", 9)
    assert stream.run(2_000_000_000) is None
    assert stream.run(3_000_000_000) is None


def test_a_sink_behind_the_last_mark_is_waited_for_because_marks_survive_the_hop(
    stream: Stream,
) -> None:
    stream.note("busy", 50)
    stream.run(0)
    stream.writers.register("job", sink=True)
    stream.note("job", 6)
    stream.note("busy", 60)
    assert stream.cycle(10).held_by == ("job",)


def test_a_sink_leaves_with_its_goodbye(stream: Stream) -> None:
    stream.writers.register("job", sink=True)
    stream.note("busy", 5)
    stream.writers.goodbye("job")
    assert stream.run(0) == (5, 5, {"0.e0": 0})


def test_what_a_writer_noted_before_its_goodbye_still_counts(stream: Stream) -> None:
    stream.note("a", 5)
    stream.note("b", 9)
    stream.writers.goodbye("a")
    assert stream.run(0) == (5, 9, {"0.e0": 0})
    assert stream.run(1) == (9, 9, {"0.e0": 0})
    assert stream.writers.get("a") is None
    stream.writers.goodbye("b")
    last = stream.cycle(2)
    assert last.mark is None
    assert not last.scheduled


def test_rows_between_the_last_note_and_the_goodbye_lie_before_the_next_cut(
    stream: Stream,
) -> None:
    stream.note("a", 5, {"0.e0": 2})
    stream.note("b", 9, {"0.e0": 3})
    assert stream.run(0) == (5, 9, {"0.e0": 3})
    stream.writers.goodbye("a", Cut({"0.e0": 7}))
    assert stream.run(1) == (9, 9, {"0.e0": 7})


def test_parting_positions_are_kept_until_there_is_a_mark(stream: Stream) -> None:
    stream.note("a", 5, {"0.e0": 2})
    stream.run(0)
    stream.writers.goodbye("a", Cut({"0.e0": 7}))
    assert not stream.cycle(1).scheduled
    stream.note("b", 9, {"0.e0": 3})
    assert stream.run(2) == (9, 9, {"0.e0": 7})


def test_equal_notes_do_not_make_a_new_mark(stream: Stream) -> None:
    stream.note("a", 5)
    assert stream.run(0) is not None
    stream.note("a", 5, {"0.e0": 3})
    assert stream.run(10) is None


def test_a_stream_without_writers_has_no_mark_and_no_schedule(stream: Stream) -> None:
    done = stream.cycle(0)
    assert (done.mark, done.scheduled, done.dropped) == (None, False, ())


def test_a_writer_that_notes_while_it_is_being_dropped_stays(stream: Stream) -> None:
    stream.writers.register("slow")
    stream.note("busy", 5)
    stream.run(0)
    state = Generation.from_json(json.loads(stream.state))
    done = cycle(state, stream.writers, stream.lineage, now=2_000 * MS, policy=stream.policy)
    stream.note("slow", 8)
    assert [mark.writer for mark in done.dropped] == ["slow"]
    # Its record is no longer the one that was seen, so nobody removes it; it is past the mark.
    assert stream.writers.get("slow") not in done.dropped
    stream.state = json.dumps(done.state.to_json())
    stream.note("busy", 9)
    assert stream.run(2001) == (8, 9, {"0.e0": 0})


def test_the_first_mark_may_be_delayed() -> None:
    stream = Stream(Lineage.start(1), SECOND, first_mark_delay=timedelta(milliseconds=300))
    assert stream.run(0) is None
    stream.note("a", 5)
    assert stream.run(1000) is None
    assert stream.run(1299) is None
    assert stream.run(1300) == (5, 5, {"0.e0": 0})
    stream.note("a", 6)
    assert stream.run(1301) == (6, 6, {"0.e0": 0})


def test_the_state_survives_json() -> None:
    state = Generation(Mark(1, 2, Cut({"0.e0": 3})), {"w": 5}, 6, Cut({"0.e0": 4}), None)
    assert Generation.from_json(json.loads(json.dumps(state.to_json()))) == state
    fresh = Generation(started_at=7)
    assert Generation.from_json(json.loads(json.dumps(fresh.to_json()))) == fresh
