from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tidegate import errors
from tidegate.eventtime.instants import (
    LIMIT,
    ceil_to,
    checked,
    floor_to,
    floor_to_millis,
    format_duration,
    format_instant,
    from_datetime,
    micros,
    parse_duration,
    parse_instant,
    to_datetime,
)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T00:00:00.000001", 1),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2026-01-31T12:00:00.5+01:00", 1_769_857_200_500_000),
        ("19700101T000001Z", 1_000_000),
        ("  1970-01-01T00:00:00Z ", 0),
        ("0001-01-01", -62_135_596_800_000_000),
    ],
)
def test_iso_texts_are_read_as_microseconds_in_utc(text: str, instant: int) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize("text", ["", "noon", "12:00", "1970-13-01", "1970-W01-1", "0", "1970"])
def test_what_is_no_date_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        parse_instant(text)
    assert caught.value.code == "instant-not-parsed"
    assert caught.value.fields == {"text": text}


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_500_000, "1970-01-01T00:00:01.500Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (10**18, "1000000000000000000us"),
    ],
)
def test_instants_print_with_as_few_digits_as_tell_them_exactly(instant: int, text: str) -> None:
    assert format_instant(instant) == text


@pytest.mark.parametrize("instant", [0, 1, -1, 999, 1_000, 1_234_567_890_123_456, -(10**15)])
def test_what_is_printed_reads_back_as_itself(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant
    assert from_datetime(to_datetime(instant)) == instant


def test_a_datetime_without_a_zone_is_utc_and_one_with_a_zone_is_converted() -> None:
    naive = datetime(1970, 1, 1, 1)  # noqa: DTZ001 (this is what is tested)
    assert from_datetime(naive) == 3_600_000_000
    assert from_datetime(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
    assert to_datetime(0) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("instant", [LIMIT, -LIMIT, LIMIT * 4])
def test_an_instant_beyond_the_limit_is_an_error(instant: int) -> None:
    with pytest.raises(errors.InputError, match="out of range"):
        checked(instant)


def test_an_instant_just_inside_the_limit_is_itself() -> None:
    assert checked(LIMIT - 1) == LIMIT - 1
    assert checked(1 - LIMIT) == 1 - LIMIT


@pytest.mark.parametrize(
    ("instant", "millis"), [(0, 0), (999, 0), (1000, 1), (-1, -1), (-1000, -1), (-1001, -2)]
)
def test_milliseconds_are_rounded_down_also_before_1970(instant: int, millis: int) -> None:
    assert floor_to_millis(instant) == millis


@pytest.mark.parametrize(
    ("instant", "floor", "ceil"),
    [(0, 0, 0), (1, 0, 10), (10, 10, 10), (25, 20, 30), (-1, -10, 0), (-10, -10, -10)],
)
def test_a_grid_has_points_before_1970_too(instant: int, floor: int, ceil: int) -> None:
    assert floor_to(instant, 10) == floor
    assert ceil_to(instant, 10) == ceil


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0s", timedelta(0)),
        ("1us", timedelta(microseconds=1)),
        ("500ms", timedelta(milliseconds=500)),
        ("5s", timedelta(seconds=5)),
        ("5 seconds", timedelta(seconds=5)),
        ("1 sec", timedelta(seconds=1)),
        ("2m", timedelta(minutes=2)),
        ("2 Minutes", timedelta(minutes=2)),
        ("3 mins", timedelta(minutes=3)),
        ("1.5 h", timedelta(minutes=90)),
        ("1 hour", timedelta(hours=1)),
        ("7d", timedelta(days=7)),
        (" 2 weeks ", timedelta(weeks=2)),
        ("10 microseconds", timedelta(microseconds=10)),
        ("10 milliseconds", timedelta(milliseconds=10)),
    ],
)
def test_durations_are_a_number_and_a_unit(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    ["", "5", "s", "-5s", "5 moons", "5 s s", "1,5h", "999999999999 weeks", "9" * 400 + ".0d"],
)
def test_what_is_no_duration_is_an_error_never_a_guess(text: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        parse_duration(text)
    assert caught.value.code == "duration-not-parsed"


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(microseconds=1), "1us"),
        (timedelta(milliseconds=1500), "1500ms"),
        (timedelta(minutes=90), "90m"),
        (timedelta(days=14), "2w"),
    ],
)
def test_durations_print_in_the_largest_unit_that_tells_them(
    duration: timedelta, text: str
) -> None:
    assert format_duration(duration) == text
    assert parse_duration(text) == duration


def test_a_duration_counts_whole_microseconds() -> None:
    assert micros(timedelta(seconds=1.5)) == 1_500_000
