from __future__ import annotations

import json

import pytest

from tidegate.eventtime.watermark import (
    IDLE,
    UNKNOWN,
    Known,
    Monotone,
    Watermark,
    from_json,
    later,
    to_json,
)


def test_the_words_are_values_of_their_own_and_equal_no_number() -> None:
    words: list[object] = [UNKNOWN, IDLE]
    assert len(set(words)) == 2
    for word in words:
        assert not isinstance(word, int)
        assert word not in [0, -1, None, -(2**63), 2**63 - 1]
    assert [repr(word) for word in words] == ["UNKNOWN", "IDLE"]


def test_a_watermark_begins_unknown_which_is_not_zero() -> None:
    assert Monotone().value is UNKNOWN


def test_the_first_instant_moves_a_watermark_also_a_negative_one() -> None:
    watermark = Monotone()
    assert watermark.advance(-5)
    assert watermark.value == -5


@pytest.mark.parametrize("to", [5, 4, -100, UNKNOWN])
def test_an_equal_or_earlier_time_or_unknown_does_not_move_it(to: Known) -> None:
    watermark = Monotone(5)
    assert not watermark.advance(to)
    assert watermark.value == 5


def test_a_later_time_moves_it() -> None:
    watermark = Monotone(5)
    assert watermark.advance(6)
    assert watermark.value == 6


def test_its_value_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Monotone(5).value = 3  # type: ignore[misc]


def test_a_watermark_shows_where_it_stands() -> None:
    assert repr(Monotone()) == "Monotone(UNKNOWN)"
    assert repr(Monotone(7)) == "Monotone(7)"


@pytest.mark.parametrize(
    ("left", "right", "latest"),
    [
        (UNKNOWN, UNKNOWN, UNKNOWN),
        (UNKNOWN, -5, -5),
        (-5, UNKNOWN, -5),
        (3, 2, 3),
        (2, 3, 3),
        (0, UNKNOWN, 0),
    ],
)
def test_unknown_lies_before_every_instant(left: Known, right: Known, latest: Known) -> None:
    assert later(left, right) == latest


@pytest.mark.parametrize("watermark", [UNKNOWN, IDLE, 0, -1, 10**15])
def test_every_watermark_survives_json(watermark: Watermark) -> None:
    assert from_json(json.loads(json.dumps(to_json(watermark)))) == watermark
