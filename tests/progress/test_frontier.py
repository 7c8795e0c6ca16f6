from __future__ import annotations

from datetime import timedelta

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.progress import CompletedFrontier, Ending, ProgressHandle
from tidegate.progress.messages import combined_ending


def test_a_frontier_is_unknown_until_it_is_first_told() -> None:
    frontier = CompletedFrontier()
    assert frontier.frontier() is UNKNOWN
    assert frontier.less_than(-(10**15))
    assert frontier.less_equal(-(10**15))
    assert not frontier.complete_before(-(10**15))


def test_a_frontier_never_goes_back() -> None:
    frontier = CompletedFrontier()
    assert frontier.advance(5)
    assert not frontier.advance(3)
    assert frontier.frontier() == 5
    assert not frontier.advance(5)
    assert frontier.advance(10)
    assert frontier.frontier() == 10


def test_a_frontier_may_be_negative_or_zero() -> None:
    frontier = CompletedFrontier()
    assert frontier.advance(-7)
    assert not frontier.less_than(-7)
    assert frontier.advance(0)
    assert frontier.frontier() == 0


def test_less_than_and_less_equal_compare_the_frontier_with_a_time() -> None:
    frontier = CompletedFrontier()
    handle = ProgressHandle.from_frontiers([frontier])
    assert handle.less_than(1)
    assert handle.less_equal(0)
    frontier.advance(1)
    assert not handle.less_than(1)
    assert handle.less_than(2)
    assert handle.less_equal(1)
    frontier.advance(2)
    assert not handle.less_equal(1)
    assert handle.less_equal(2)
    assert handle.frontier() == 2


def test_the_progress_of_several_sinks_is_their_minimum() -> None:
    first, second = CompletedFrontier(), CompletedFrontier()
    handle = ProgressHandle.from_frontiers([first, second])
    assert handle.frontier() is UNKNOWN
    first.advance(5)
    assert handle.frontier() is UNKNOWN
    second.advance(3)
    assert handle.frontier() == 3
    second.advance(10)
    assert handle.frontier() == 5


def test_the_progress_of_several_workers_is_the_minimum_over_their_handles() -> None:
    sinks = [CompletedFrontier() for _ in range(4)]
    workers = [ProgressHandle.from_frontiers(sinks[:2]), ProgressHandle.from_frontiers(sinks[2:])]
    job = ProgressHandle.from_frontiers(workers)
    for sink, number in zip(sinks, (8, 7, 6, 9), strict=True):
        assert job.frontier() is UNKNOWN
        sink.advance(number)
    assert [worker.frontier() for worker in workers] == [7, 6]
    assert job.frontier() == 6


def test_the_progress_of_no_sink_is_unknown() -> None:
    handle = ProgressHandle([])
    assert handle.frontier() is UNKNOWN
    assert handle.ending is None


def test_a_number_out_of_range_is_refused() -> None:
    with pytest.raises(TidegateError) as caught:
        CompletedFrontier().advance(1 << 62)
    assert caught.value.code == "instant-out-of-range"


def test_the_first_end_of_a_frontier_stands_and_the_number_stays() -> None:
    frontier = CompletedFrontier()
    frontier.advance(4)
    assert frontier.end(Ending.GRACEFUL)
    assert not frontier.end(Ending.QUICK)
    assert frontier.ending is Ending.GRACEFUL
    assert frontier.frontier() == 4


def test_after_a_graceful_end_everything_is_complete_without_an_artificial_number() -> None:
    frontier = CompletedFrontier()
    frontier.advance(4)
    frontier.end(Ending.GRACEFUL)
    assert frontier.complete_before(1000)
    assert frontier.frontier() == 4
    assert frontier.less_than(1000)


def test_after_a_quick_end_nothing_more_is_complete() -> None:
    frontier = CompletedFrontier()
    frontier.advance(4)
    frontier.end(Ending.QUICK)
    assert frontier.complete_before(4)
    assert not frontier.complete_before(5)


@pytest.mark.parametrize(
    ("endings", "expected"),
    [
        ([], None),
        ([None], None),
        ([Ending.QUICK, None], None),
        ([Ending.GRACEFUL, Ending.GRACEFUL], Ending.GRACEFUL),
        ([Ending.GRACEFUL, Ending.QUICK], Ending.QUICK),
    ],
)
def test_several_streams_end_gracefully_only_together(
    endings: list[Ending | None], expected: Ending | None
) -> None:
    assert combined_ending(endings) is expected


# ---- waiting ----


class Waiter:
    """A clock and a wait that lets it run, and then lets something happen."""

    def __init__(self, frontier: CompletedFrontier, *, steps: dict[int, int]) -> None:
        self.now = 100.0
        self.asked: list[timedelta] = []
        self._frontier = frontier
        self._steps = steps

    def clock(self) -> float:
        return self.now

    def wait(self, left: timedelta) -> None:
        self.asked.append(left)
        self.now += 1
        if len(self.asked) in self._steps:
            self._frontier.advance(self._steps[len(self.asked)])


def test_waiting_ends_when_the_frontier_reaches_the_time() -> None:
    frontier = CompletedFrontier()
    waiter = Waiter(frontier, steps={1: 5, 3: 10})
    handle = ProgressHandle([frontier])
    assert handle.wait_for(10, timedelta(seconds=60), wait=waiter.wait, clock=waiter.clock)
    assert waiter.asked == [timedelta(seconds=left) for left in (60, 59, 58)]


def test_waiting_for_what_is_there_does_not_wait() -> None:
    frontier = CompletedFrontier()
    frontier.advance(10)
    waiter = Waiter(frontier, steps={})
    handle = ProgressHandle([frontier])
    assert handle.wait_for(10, timedelta(0), wait=waiter.wait, clock=waiter.clock)
    assert waiter.asked == []


def test_waiting_gives_up_after_the_timeout() -> None:
    frontier = CompletedFrontier()
    waiter = Waiter(frontier, steps={1: 9})
    handle = ProgressHandle([frontier])
    assert not handle.wait_for(10, timedelta(seconds=3), wait=waiter.wait, clock=waiter.clock)
    assert len(waiter.asked) == 3


@pytest.mark.parametrize(("ending", "came"), [(Ending.GRACEFUL, True), (Ending.QUICK, False)])
def test_waiting_stops_at_an_end(ending: Ending, came: bool) -> None:
    frontier = CompletedFrontier()
    frontier.advance(4)
    frontier.end(ending)
    waiter = Waiter(frontier, steps={})
    handle = ProgressHandle([frontier])
    wait = timedelta(days=1)
    assert handle.wait_for(10, wait, wait=waiter.wait, clock=waiter.clock) is came
    assert waiter.asked == []
