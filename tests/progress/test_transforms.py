from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.instants import parse_instant
from tidegate.progress import (
    BadRow,
    Data,
    Emit,
    Ending,
    ExtractTime,
    Filter,
    FlatMap,
    InjectWatermarks,
    Map,
    Node,
    NodeConfig,
    Plan,
    Union,
)

PROCESSING = Plan("processing", clock=lambda: 0)


def us(number: int) -> timedelta:
    return timedelta(microseconds=number)


@pytest.mark.parametrize(
    ("config", "items"),
    [
        (Map(lambda n: n + 1), [11]),
        (Filter(lambda n: n == 10), [10]),
        (Filter(lambda n: n != 10), []),
        (FlatMap(lambda n: [n, n * 2]), [10, 20]),
        (Union(), [10]),
    ],
)
def test_a_derived_row_carries_the_time_of_its_row_and_numbers_pass(
    config: NodeConfig, items: list[int]
) -> None:
    node = config.build(Plan())
    assert node.on_data(Data(10, 7)) == [Emit(Data(item, 7)) for item in items]
    assert node.on_watermark(9) == [Emit(9)]
    assert node.on_end(Ending.GRACEFUL) == []


# ---- extracting event time ----


def test_the_extracted_time_replaces_the_one_a_row_came_with() -> None:
    node = ExtractTime(lambda row: parse_instant(row["at"])).build(Plan())
    row = {"at": "1970-01-01T00:00:01Z"}
    assert node.on_data(Data(row, 3)) == [Emit(Data(row, 1_000_000))]
    assert node.counts() == {"bad": 0}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"at": None}, "event time is missing"),
        ({"at": 1.5}, "event time is not an instant: 1.5"),
        ({"at": True}, "event time is not an instant: True"),
        ({"at": "7"}, "event time is not an instant: '7'"),
        ({}, "KeyError: 'at'"),
        (None, "TypeError: 'NoneType' object is not subscriptable"),
    ],
)
def test_a_row_without_a_readable_time_leaves_by_the_errors_output(row: Any, reason: str) -> None:
    node = ExtractTime(lambda row: row["at"]).build(Plan())
    assert node.on_data(Data(row, 3)) == [Emit(Data(BadRow(row, reason), 3), "errors")]
    assert node.counts() == {"bad": 1}


def test_a_time_that_cannot_be_parsed_or_ordered_is_a_bad_row_and_the_next_goes_on() -> None:
    def time_of(text: str) -> int:
        return 1 << 62 if text == "far" else parse_instant(text)

    node = ExtractTime(time_of).build(Plan())
    for text, start in (("noon", "InputError: not an instant"), ("far", "InputError: instant is")):
        [emit] = node.on_data(Data(text, 3))
        assert emit.output == "errors"
        assert isinstance(emit.message, Data)
        assert emit.message.item.reason.startswith(start)
    assert node.on_data(Data("1970-01-01", 3)) == [Emit(Data("1970-01-01", 0))]
    assert node.counts() == {"bad": 2}


def test_numbers_about_the_old_times_say_nothing_about_the_new_ones() -> None:
    node = ExtractTime(lambda row: 5).build(Plan())
    assert node.on_watermark(1000) == [Emit(1000, "errors")]


def test_on_processing_time_nothing_is_extracted_and_nothing_is_bad() -> None:
    node = ExtractTime(lambda row: row["at"]).build(PROCESSING)
    assert node.on_data(Data({}, 3)) == [Emit(Data({}, 3))]
    assert node.on_watermark(4) == [Emit(4), Emit(4, "errors")]


# ---- injecting watermarks ----


def messages(node: Node, times: list[int]) -> list[object]:
    """What leaves the node for rows at these times: a row as [its time], a number bare."""
    out: list[object] = []
    for time in times:
        for emit in node.on_data(Data("row", time)):
            out.append([emit.message.time] if isinstance(emit.message, Data) else emit.message)
    return out


def test_without_a_period_the_maximum_is_said_at_the_end_only() -> None:
    node = InjectWatermarks().build(Plan())
    assert messages(node, [100, 200, 150]) == [[100], [200], [150]]
    assert node.on_end(Ending.GRACEFUL) == [Emit(200)]


def test_a_quick_end_says_nothing() -> None:
    node = InjectWatermarks(us(10)).build(Plan())
    assert messages(node, [1, 5]) == [[1], 1, [5]]
    assert node.on_end(Ending.QUICK) == []


def test_an_end_without_rows_says_nothing() -> None:
    assert InjectWatermarks().build(Plan()).on_end(Ending.GRACEFUL) == []


def test_with_a_period_the_number_is_said_when_it_passes_another_multiple() -> None:
    node = InjectWatermarks(us(10)).build(Plan())
    said = messages(node, [3, 9, 10, 19, 12, 34, 39, 40])
    assert said == [[3], 3, [9], [10], 10, [19], [12], [34], 34, [39], [40], 40]
    assert node.on_end(Ending.GRACEFUL) == [Emit(40)]


def test_the_generator_decides_what_the_number_is() -> None:
    node = InjectWatermarks(us(10), BoundedDisorder(us(5))).build(Plan())
    assert messages(node, [3, 14, 15, 16]) == [[3], -2, [14], 9, [15], 10, [16]]
    assert node.on_end(Ending.GRACEFUL) == [Emit(11)]


def test_a_number_from_before_passes_at_once_and_is_never_undercut() -> None:
    node = InjectWatermarks(us(10)).build(Plan())
    assert node.on_watermark(25) == [Emit(25)]
    assert messages(node, [12, 29, 30]) == [[12], [29], [30], 30]
    assert node.on_watermark(28) == []


def test_on_processing_time_nothing_is_injected() -> None:
    node = InjectWatermarks(us(10)).build(PROCESSING)
    assert messages(node, [3, 14]) == [[3], [14]]
    assert node.on_watermark(20) == [Emit(20)]
    assert node.on_end(Ending.GRACEFUL) == []


def test_a_period_must_be_positive() -> None:
    with pytest.raises(TidegateError) as caught:
        InjectWatermarks(us(0))
    assert caught.value.code == "not-a-positive-duration"
