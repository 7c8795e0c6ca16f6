from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from tidegate.eventtime.lateness import (
    Forever,
    InAny,
    InJoin,
    InSession,
    InWindows,
    LastUse,
    Once,
    is_late,
    late_rows,
)
from tidegate.eventtime.watermark import UNKNOWN


def us(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def test_a_row_at_the_watermark_is_late_and_one_after_it_is_not() -> None:
    assert is_late(9, 10)
    assert is_late(10, 10)
    assert not is_late(11, 10)


def test_nothing_is_late_while_the_watermark_is_unknown() -> None:
    assert not is_late(-(10**15), UNKNOWN)
    assert late_rows(np.array([1, 2]), UNKNOWN).tolist() == [False, False]


def test_a_row_exactly_the_tolerance_behind_the_maximum_is_on_time() -> None:
    number = 1000 - 100  # N = max seen - tolerance
    claim = number - 1  # W = N - 1 us
    assert not is_late(900, claim)
    assert is_late(899, claim)


def test_a_column_is_judged_row_by_row() -> None:
    assert late_rows(np.array([9, 10, 11]), 10).tolist() == [True, True, False]


USES: list[tuple[LastUse, int, int]] = [
    (InWindows(us(10)), 0, 10),
    (InWindows(us(10)), 9, 10),
    (InWindows(us(10)), 10, 20),
    (InWindows(us(10)), -1, 0),
    (InWindows(us(10), us(5)), 12, 20),
    (InWindows(us(10), us(5)), 15, 25),
    (InWindows(us(10), us(3)), 8, 16),
    (InSession(us(10)), 12, 22),
    (InJoin(us(10)), 12, 23),
    (InJoin(us(0)), 12, 13),
    (Once(), 12, 13),
    (InAny((InWindows(us(10)), InSession(us(10)))), 12, 22),
    (InAny((InWindows(us(100)), InSession(us(10)))), 12, 100),
]


@pytest.mark.parametrize(("use", "time", "end"), USES)
def test_the_last_use_is_the_largest_end_of_what_can_use_the_row(
    use: LastUse, time: int, end: int
) -> None:
    assert use.last_use(time) == end


@pytest.mark.parametrize(("use", "time", "end"), USES)
def test_a_row_is_lost_exactly_when_its_last_use_is_given_out(
    use: LastUse, time: int, end: int
) -> None:
    assert not use.is_lost(time, UNKNOWN)
    assert not use.is_lost(time, end - 1)
    assert use.is_lost(time, end)
    assert use.lost_rows(np.array([time, time]), end).tolist() == [True, True]
    assert use.lost_rows(np.array([time]), end - 1).tolist() == [False]
    assert use.lost_rows(np.array([time]), UNKNOWN).tolist() == [False]


@pytest.mark.parametrize(("use", "time", "end"), USES)
def test_every_lost_row_is_late(use: LastUse, time: int, end: int) -> None:
    for closed in range(end - 25, end + 25):
        if use.is_lost(time, closed):
            assert is_late(time, closed - 1)


def test_a_late_row_that_an_open_window_can_use_is_not_lost() -> None:
    assert is_late(5, 7)
    assert not InWindows(us(10)).is_lost(5, closed=8)


def test_a_hopping_window_uses_a_row_longer_than_a_tumbling_one() -> None:
    assert InWindows(us(10)).is_lost(8, closed=10)
    assert not InWindows(us(10), us(5)).is_lost(8, closed=10)
    assert InWindows(us(10), us(5)).is_lost(8, closed=15)


def test_stateless_queries_and_running_totals_lose_nothing() -> None:
    use = Forever()
    assert use.last_use(5) is None
    assert not use.is_lost(5, closed=10**15)
    assert use.lost_rows(np.array([1, 2]), 10**15).tolist() == [False, False]
