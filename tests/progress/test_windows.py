from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidegate.errors import TidegateError
from tidegate.progress import (
    Aggregate,
    Data,
    Emit,
    Emits,
    Ending,
    Plan,
    Session,
    Sliding,
    Tumbling,
    WindowRow,
)
from tidegate.progress.windows import Windows


def us(number: int) -> timedelta:
    return timedelta(microseconds=number)


def rows(emits: Emits, output: str = "out") -> list[Any]:
    return [
        emit.message.item
        for emit in emits
        if isinstance(emit.message, Data) and emit.output == output
    ]


def values(emits: Emits) -> list[Any]:
    return [row.value for row in rows(emits)]


def numbers(emits: Emits, output: str = "out") -> list[Any]:
    return [
        emit.message
        for emit in emits
        if not isinstance(emit.message, Data) and emit.output == output
    ]


def test_a_window_closes_when_the_number_reaches_its_end() -> None:
    node = Aggregate(Tumbling(us(1000))).build(Plan())
    assert node.on_data(Data(1, 100)) == []
    assert node.on_data(Data(2, 500)) == []
    assert values(node.on_watermark(999)) == []
    assert values(node.on_watermark(1000)) == [[1, 2]]
    assert node.on_data(Data(3, 1100)) == []
    assert values(node.on_watermark(2000)) == [[3]]


def test_a_lost_row_leaves_by_the_late_output_and_the_end_flushes_the_rest() -> None:
    node = Aggregate(Tumbling(us(1000))).build(Plan())
    node.on_data(Data(1, 100))
    assert values(node.on_watermark(1000)) == [[1]]
    assert node.on_data(Data(2, 50)) == [Emit(Data(2, 50), "late")]
    assert node.on_data(Data(3, 1100)) == []
    assert values(node.on_end(Ending.GRACEFUL)) == [[3]]
    assert node.counts() == {"rows": 3, "late": 1, "lost": 1, "dropped": 0}


def test_a_windowed_row_has_the_time_just_before_its_end() -> None:
    node = Aggregate(Tumbling(us(10)), into=len).build(Plan())
    node.on_data(Data("x", 3))
    assert node.on_watermark(10)[0] == Emit(Data(WindowRow(0, 10, 1), 9))


def test_a_late_row_counts_in_a_window_that_is_still_open() -> None:
    node = Aggregate(Tumbling(us(10))).build(Plan())
    node.on_watermark(7)
    assert node.on_data(Data("late", 3)) == []
    assert values(node.on_watermark(10)) == [["late"]]
    assert node.counts() == {"rows": 1, "late": 1, "lost": 0, "dropped": 0}


def test_a_row_equal_to_the_number_is_on_time() -> None:
    node = Aggregate(Tumbling(us(10))).build(Plan())
    node.on_watermark(10)
    assert node.on_data(Data("x", 10)) == []
    assert node.counts()["late"] == 0


def test_windows_lie_on_the_grid_also_before_the_epoch() -> None:
    node = Aggregate(Tumbling(us(10))).build(Plan())
    for time in (-11, -10, -1, 0):
        node.on_data(Data(time, time))
    flushed = rows(node.on_end(Ending.GRACEFUL))
    assert [(row.start, row.end, row.value) for row in flushed] == [
        (-20, -10, [-11]),
        (-10, 0, [-10, -1]),
        (0, 10, [0]),
    ]


def test_windows_are_kept_apart_by_key_and_close_in_the_order_of_end_then_arrival() -> None:
    node = Aggregate(Tumbling(us(10)), into=len, by=lambda item: item).build(Plan())
    for item, time in (("b", 15), ("b", 4), ("a", 2), ("b", 5)):
        node.on_data(Data(item, time))
    closed = rows(node.on_watermark(20))
    assert [(row.end, row.key, row.value) for row in closed] == [
        (10, "b", 2),
        (10, "a", 1),
        (20, "b", 1),
    ]


def test_a_window_keeps_its_rows_in_the_order_in_which_they_came() -> None:
    node = Aggregate(Tumbling(us(10))).build(Plan())
    for time in (3, 1, 2):
        node.on_data(Data(time, time))
    assert values(node.on_watermark(10)) == [[3, 1, 2]]


# ---- sliding ----


def test_a_row_counts_in_every_sliding_window_over_it() -> None:
    node = Aggregate(Sliding(us(1000), us(400)), into=len).build(Plan())
    node.on_data(Data("x", 500))
    assert [(row.start, row.end) for row in rows(node.on_end(Ending.GRACEFUL))] == [
        (-400, 600),
        (0, 1000),
        (400, 1400),
    ]


def test_a_late_row_counts_only_in_the_sliding_windows_that_are_open() -> None:
    node = Aggregate(Sliding(us(10), us(5))).build(Plan())
    node.on_watermark(10)
    assert node.on_data(Data("late", 7)) == []
    assert node.on_data(Data("lost", 4)) == [Emit(Data("lost", 4), "late")]
    closed = rows(node.on_watermark(20))
    assert [(row.start, row.end, row.value) for row in closed] == [(5, 15, ["late"])]
    assert node.counts() == {"rows": 2, "late": 2, "lost": 1, "dropped": 0}


# ---- sessions ----


def test_a_session_ends_when_no_row_follows_within_the_gap() -> None:
    node = Aggregate(Session(us(500))).build(Plan())
    for time in (100, 200, 800):
        node.on_data(Data(time, time))
    assert rows(node.on_end(Ending.GRACEFUL)) == [
        WindowRow(100, 700, [100, 200]),
        WindowRow(800, 1300, [800]),
    ]


def test_a_row_exactly_one_gap_later_opens_the_next_session() -> None:
    node = Aggregate(Session(us(10))).build(Plan())
    for time in (0, 9, 19):
        node.on_data(Data(time, time))
    assert rows(node.on_watermark(19)) == [WindowRow(0, 19, [0, 9])]
    assert rows(node.on_watermark(29)) == [WindowRow(19, 29, [19])]


def test_a_row_between_two_sessions_makes_them_one_in_the_order_of_arrival() -> None:
    node = Aggregate(Session(us(10))).build(Plan())
    for name, time in (("1st", 15), ("2nd", 0), ("apart", 40), ("3rd", 16), ("bridge", 8)):
        node.on_data(Data(name, time))
    assert rows(node.on_end(Ending.GRACEFUL)) == [
        WindowRow(0, 26, ["1st", "2nd", "3rd", "bridge"]),
        WindowRow(40, 50, ["apart"]),
    ]


def test_sessions_of_different_keys_do_not_meet() -> None:
    node = Aggregate(Session(us(10)), into=len, by=lambda item: item).build(Plan())
    for item, time in (("a", 0), ("b", 5), ("a", 9)):
        node.on_data(Data(item, time))
    assert rows(node.on_end(Ending.GRACEFUL)) == [
        WindowRow(5, 15, 1, "b"),
        WindowRow(0, 19, 2, "a"),
    ]


def test_a_late_row_opens_a_session_unless_its_gap_is_over_too() -> None:
    node = Aggregate(Session(us(10))).build(Plan())
    node.on_watermark(20)
    assert node.on_data(Data("lost", 10)) == [Emit(Data("lost", 10), "late")]
    assert node.on_data(Data("late", 11)) == []
    [closed, *_] = node.on_watermark(21)
    assert closed == Emit(Data(WindowRow(11, 21, ["late"]), 20))


# ---- what a window node says ----


@pytest.mark.parametrize(
    ("windows", "number", "said"),
    [
        (Tumbling(us(10)), 0, 9),
        (Tumbling(us(10)), 9, 9),
        (Tumbling(us(10)), 10, 19),
        (Tumbling(us(10)), -1, -1),
        (Sliding(us(10), us(4)), 0, 1),  # windows end at ..., -2, 2, 6, 10, 14, ...
        (Sliding(us(10), us(4)), 2, 5),
        (Sliding(us(10), us(10)), 10, 19),
        (Session(us(10)), 7, 7),
    ],
)
def test_a_window_node_says_the_smallest_time_it_may_still_give_out(
    windows: Windows, number: int, said: int
) -> None:
    emits = Aggregate(windows).build(Plan()).on_watermark(number)
    assert numbers(emits) == [said]
    assert numbers(emits, "late") == [number]


# ---- ends ----


@pytest.mark.parametrize("windows", [Tumbling(us(10)), Sliding(us(10), us(5)), Session(us(3))])
def test_a_quick_end_drops_what_is_open_and_counts_it_once_per_row(windows: Windows) -> None:
    node = Aggregate(windows).build(Plan())
    for time in (1, 11, 12):
        node.on_data(Data(time, time))
    assert node.on_end(Ending.QUICK) == []
    assert node.counts() == {"rows": 3, "late": 0, "lost": 0, "dropped": 3}
    assert node.on_end(Ending.GRACEFUL) == []


def test_a_graceful_end_says_no_number() -> None:
    node = Aggregate(Tumbling(us(10))).build(Plan())
    node.on_data(Data("x", 3))
    assert numbers(node.on_end(Ending.GRACEFUL)) == []


# ---- windows that cannot be ----


def test_durations_must_be_positive() -> None:
    for make in (
        lambda: Tumbling(us(0)),
        lambda: Sliding(us(-1), us(1)),
        lambda: Sliding(us(1), us(0)),
        lambda: Session(us(0)),
    ):
        with pytest.raises(TidegateError) as caught:
            make()
        assert caught.value.code == "not-a-positive-duration"


def test_windows_may_not_leave_holes() -> None:
    with pytest.raises(TidegateError) as caught:
        Sliding(us(5), us(6))
    assert caught.value.code == "slide-exceeds-size"
