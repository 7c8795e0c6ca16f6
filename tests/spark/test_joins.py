"""What is made of the text of an interval join: who drives it, and the time of its results."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.joins import JoinText
from tidegate.spark.sql_text import Statement

BEFORE, AFTER = timedelta(seconds=6), timedelta(seconds=2)
NONE = timedelta(0)

OWN, BOTH = "o.v, p.v AS w", "least(o._event_time, p._event_time) AS _event_time"
OF_LEFT, OF_RIGHT = "o._event_time, p.v", "o.v, p._event_time AS _event_time"


def joined(side: str, columns: str, *, swapped: bool = False) -> JoinText:
    """Orders joined with payments around them; or declared the other way around."""
    text = f"SELECT {columns} FROM orders o {side} JOIN payments p ON o.k = p.k"
    streams, bounds = ["orders", "payments"], (BEFORE, AFTER)
    if swapped:
        streams, bounds = streams[::-1], bounds[::-1]
    statement = Statement.parse(text, streams)
    return JoinText.of(statement, *streams, before=bounds[0], after=bounds[1])


@pytest.mark.parametrize("swapped", [False, True])
def test_a_right_join_is_driven_by_its_right_stream_with_the_bounds_turned_around(
    swapped: bool,
) -> None:
    right = joined("RIGHT", OWN, swapped=swapped)
    assert (right.driver, right.other) == ("payments", "orders")
    assert (right.before, right.after) == (AFTER, BEFORE)
    left = joined("LEFT", OWN, swapped=swapped)
    assert (left.driver, left.other) == ("orders", "payments")
    assert (left.before, left.after) == (BEFORE, AFTER)


@pytest.mark.parametrize(
    ("side", "columns", "behind"),
    [
        *((side, OWN, NONE) for side in ("", "LEFT")),
        *((side, OF_LEFT, NONE) for side in ("", "LEFT")),
        *((side, OF_RIGHT, BEFORE) for side in ("", "LEFT")),
        ("", "o.*, p.v AS w", NONE),
        ("", "o.v AS w, P.*", BEFORE),
        ("LEFT", "o.*, p.v AS w", NONE),
        ("RIGHT", OWN, AFTER),
        ("RIGHT", OF_LEFT, AFTER),
        ("RIGHT", OF_RIGHT, NONE),
        ("RIGHT", "o.v AS w, p.*", NONE),
        *(("FULL", columns, BEFORE) for columns in (OWN, OF_LEFT, OF_RIGHT)),
        *((side, BOTH, BEFORE) for side in ("", "LEFT", "FULL")),
        ("RIGHT", BOTH, AFTER),
        ("", "o.v AS _event_time", BEFORE),  # nobody knows what that is
    ],
)
def test_a_result_is_behind_its_driver_as_far_as_its_time_may_be(
    side: str, columns: str, behind: timedelta
) -> None:
    assert joined(side, columns).time_behind == behind


@pytest.mark.parametrize(
    ("side", "columns"),
    [
        ("LEFT", "o.v AS w, P.*"),
        ("RIGHT", "o.*, p.v AS w"),
        ("FULL", "o.*, p.v AS w"),
        ("FULL", "o.v AS w, p.*"),
    ],
)
def test_a_side_that_may_be_missing_gives_no_row_its_time(side: str, columns: str) -> None:
    with pytest.raises(TidegateError, match="has no time where its side has no row") as refused:
        joined(side, columns)
    assert refused.value.code == "join-not-by-interval"
