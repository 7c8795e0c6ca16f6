"""Parsers: values and columns, good rows and bad ones with their reasons."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate import errors
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.parsers import (
    BadReason,
    EventTimeParser,
    FunctionTime,
    IsoTime,
    Parsed,
    PatternTime,
    UnixTime,
)

MISSING, UNPARSABLE, OUT = BadReason.MISSING, BadReason.UNPARSABLE, BadReason.OUT_OF_RANGE

BUILT_IN: list[EventTimeParser] = [
    UnixTime("s"),
    UnixTime("ms"),
    UnixTime("us"),
    UnixTime("ns"),
    IsoTime(),
    PatternTime("%d/%m/%Y %H:%M:%S"),
]


def results(parser: EventTimeParser, column: Any) -> list[Parsed]:
    """Every row of a parsed column, as `parse` would say it."""
    parsed = parser.parse_column(column)
    assert parsed.times.type == pa.int64()
    assert len(parsed.times) == len(parsed.reasons) == len(column)
    return [parsed.at(row) for row in range(len(column))]


# ---- unix time ----


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("s", 1, 1_000_000),
        ("s", -1, -1_000_000),
        ("s", 1.5, 1_500_000),
        ("s", 8.2, 8_200_000),  # 8.2 * 1e6 is 8199999.999999999
        ("s", 1700000000.123456, 1_700_000_000_123_456),
        ("s", -0.0000001, -1),
        ("s", Decimal("1.9999999"), 1_999_999),
        ("s", Decimal("-0.0000001"), -1),
        ("s", "1700000000", 1_700_000_000_000_000),
        ("s", " 1.5\n", 1_500_000),
        ("s", "-1.5", -1_500_000),
        ("s", "+2.", 2_000_000),
        ("s", ".5", 500_000),
        ("s", "1.7e9", 1_700_000_000_000_000),
        ("s", "-0.0000001", -1),
        ("ms", 1, 1_000),
        ("ms", "0.0015", 1),
        ("ms", 1.001, 1_001),
        ("us", 7, 7),
        ("us", -0.5, -1),
        ("ns", 1999, 1),
        ("ns", -1, -1),
        ("ns", -1000, -1),
        ("ns", -1001, -2),
        ("ns", 1999.5, 1),
        ("ns", 2**64 - 1, 18_446_744_073_709_551),
        ("s", np.int32(3), 3_000_000),
        ("s", np.float32(0.5), 500_000),
    ],
)
def test_a_count_of_units_is_an_instant_rounded_down(unit: Any, value: Any, expected: int) -> None:
    assert UnixTime(unit).parse(value) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, MISSING),
        (float("nan"), MISSING),
        (Decimal("nan"), MISSING),
        (Decimal("snan"), MISSING),
        (np.datetime64("NaT"), MISSING),
        ("", MISSING),
        (" \t", MISSING),
        (float("inf"), OUT),
        (float("-inf"), OUT),
        (Decimal("inf"), OUT),
        (Decimal("1e999999"), OUT),
        ("9" * 4000, OUT),
        ("1e9999", OUT),
        (1 << 80, OUT),
        (-LIMIT, OUT),
        (True, UNPARSABLE),
        ("soon", UNPARSABLE),
        ("nan", UNPARSABLE),
        ("1_000", UNPARSABLE),
        ("0x10", UNPARSABLE),
        ("1.2.3", UNPARSABLE),
        ("\u0661", UNPARSABLE),  # a digit, but not one that any writer of JSON means
        (b"5", UNPARSABLE),
        ([5], UNPARSABLE),
        (object(), UNPARSABLE),
    ],
)
def test_what_is_no_count_has_its_reason(value: object, reason: BadReason) -> None:
    assert UnixTime("s").parse(value) is reason


def test_the_range_ends_at_the_same_microsecond_for_every_kind_of_number() -> None:
    for last in (LIMIT - 1, Decimal(LIMIT - 1), str(LIMIT - 1)):
        assert UnixTime("us").parse(last) == LIMIT - 1
    for beyond in (LIMIT, Decimal(LIMIT), str(LIMIT), float(LIMIT)):
        assert UnixTime("us").parse(beyond) is OUT
    inside = [1 - LIMIT, LIMIT - 1]
    for column in (pa.array(inside), pa.array(map(Decimal, inside)), pa.array(map(str, inside))):
        assert results(UnixTime("us"), column) == inside
    outside = [-LIMIT, LIMIT]
    for column in (pa.array(outside), pa.array(map(Decimal, outside)), pa.array(map(str, outside))):
        assert results(UnixTime("us"), column) == [OUT, OUT]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64()),
        *(pa.decimal32(5, 2), pa.decimal64(10, 3), pa.decimal128(38, 9)),
        *(pa.decimal256(65, 60), pa.decimal256(76, 20)),
        *(pa.string(), pa.large_string(), pa.string_view()),
        *(pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_columns_of_every_width_are_read(kind: pa.DataType) -> None:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_decimal(plain):
        column = pa.array([Decimal(5), None, Decimal(7)], plain)
    else:
        column = pa.array([5, None, 7]).cast(plain)
    if plain != kind:
        column = column.dictionary_encode()
    parser = UnixTime("s")
    assert parser.accepts(column.type)
    assert results(parser, column) == [5_000_000, MISSING, 7_000_000]
    assert results(parser, column.slice(1)) == [MISSING, 7_000_000]


def test_an_unsigned_column_may_go_beyond_the_signed_range() -> None:
    column = pa.array([2**64 - 1, 5], pa.uint64())
    assert results(UnixTime("ns"), column) == [18_446_744_073_709_551, 0]
    assert results(UnixTime("s"), column) == [OUT, 5_000_000]


def test_a_column_of_floats_tells_nan_from_infinity() -> None:
    column = pa.array([1.5, float("nan"), None, float("inf"), -1e300])
    assert results(UnixTime("s"), column) == [1_500_000, MISSING, MISSING, OUT, OUT]
    assert results(IsoTime(), column) == [UNPARSABLE, MISSING, MISSING, UNPARSABLE, UNPARSABLE]


# ---- what is an instant already ----


@pytest.mark.parametrize("parser", BUILT_IN, ids=repr)
def test_what_is_an_instant_already_is_taken_as_it_is(parser: EventTimeParser) -> None:
    berlin = timezone(timedelta(hours=1))
    assert parser.parse(datetime(1970, 1, 1, 1, 0, 0, 1, tzinfo=berlin)) == 1
    assert parser.parse(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000  # noqa: DTZ001
    assert parser.parse(date(1970, 1, 2)) == 86_400_000_000
    assert parser.parse(np.datetime64(-1, "ns")) == -1
    assert parser.parse(np.datetime64(1, "D")) == 86_400_000_000
    assert parser.parse(np.datetime64(1, "h")) == 3_600_000_000
    assert parser.parse(np.datetime64(2, ("s", 10))) == 20_000_000
    assert parser.parse(np.datetime64(1 << 60, "s")) is OUT
    for unit, count in (("s", 1), ("ms", 1_000), ("us", 10**6), ("ns", 10**9)):
        for zone in (None, "UTC", "Europe/Berlin"):
            column = pa.array([count, None, -count], pa.timestamp(unit, zone))
            assert results(parser, column) == [1_000_000, MISSING, -1_000_000]
    assert results(parser, pa.array([-1, 1999], pa.timestamp("ns"))) == [-1, 1]
    assert results(parser, pa.array([1 << 60, 1], pa.timestamp("s"))) == [OUT, 1_000_000]
    assert results(parser, pa.array([1, None], pa.date32())) == [86_400_000_000, MISSING]
    assert results(parser, pa.array([2**31 - 1], pa.date32())) == [OUT]
    assert results(parser, pa.array([86_400_000], pa.date64())) == [86_400_000_000]
    assert all(parser.accepts(kind) for kind in (pa.timestamp("ns"), pa.date32(), pa.null()))


def test_pandas_times_are_instants_too() -> None:
    pandas = pytest.importorskip("pandas")
    assert IsoTime().parse(pandas.Timestamp("1969-12-31T23:59:59.999999999Z")) == -1
    assert IsoTime().parse(pandas.NaT) is MISSING


@pytest.mark.parametrize("parser", BUILT_IN, ids=repr)
def test_columns_that_cannot_hold_times_are_refused_and_yet_not_fatal(
    parser: EventTimeParser,
) -> None:
    for column in (
        pa.array([True, None]),
        pa.array([b"5", None]),
        pa.array([[5], None]),
        pa.array([{"a": 5}, None]),
        pa.array([5, None], pa.time64("us")),
        pa.array([5, None], pa.duration("us")),
    ):
        assert not parser.accepts(column.type)
        assert results(parser, column) == [UNPARSABLE, MISSING]
    assert results(parser, pa.nulls(2)) == [MISSING, MISSING]


def test_a_chunked_column_gives_one_array() -> None:
    column = pa.chunked_array([[1, None], [], [3]], pa.int64())
    parsed = UnixTime("us").parse_column(column)
    assert parsed.times.to_pylist() == [1, None, 3]
    assert parsed.reasons.to_pylist() == [None, "missing", None]
    empty = UnixTime("us").parse_column(pa.chunked_array([], pa.int64()))
    assert len(empty.times) == len(empty.reasons) == 0


def test_bad_rows_are_counted_by_reason() -> None:
    parsed = UnixTime("s").parse_column(pa.array(["1", None, "", "x", "9e99"]))
    assert parsed.counts() == {MISSING: 2, UNPARSABLE: 1, OUT: 1}
    assert UnixTime("s").parse_column(pa.array([1, 2])).counts() == {}


def test_the_reasons_have_names_that_users_read() -> None:
    assert [reason.value for reason in BadReason] == [
        "missing",
        "unparsable",
        "out of range",
        "future",
    ]


# ---- ISO 8601 ----

NOON = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        (" 2026-01-31 12:00:00 ", NOON),
        ("2026-01-31T12:00", NOON),
        ("2026-01-31T13:00:00+01:00", NOON),
        ("2026-01-31T13:00:00+0100", NOON),
        ("2026-01-31T13:00+01", NOON),
        ("2026-01-31T12:00:00.5Z", NOON + 500_000),
        ("2026-01-31T12:00:00.123456789Z", NOON + 123_456),
        ("2026-01-31T12:00:00,5Z", NOON + 500_000),
        ("20260131T120000Z", NOON),
        ("2026-01-31", NOON - 12 * 3_600_000_000),
        ("1969-12-31T23:59:59.9999999", -1),
        ("2024-02-29", 1_709_164_800_000_000),
        ("2000-02-29", 951_782_400_000_000),
        ("0001-01-01", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999-23:59", 253_402_387_139_999_999),
        ("", MISSING),
        ("noon", UNPARSABLE),
        ("2026-02-29", UNPARSABLE),
        ("1900-02-29", UNPARSABLE),
        ("2026-04-31T00:00:00Z", UNPARSABLE),
        ("2026-13-01", UNPARSABLE),
        ("0000-01-01", UNPARSABLE),
        ("2026-01-31T24:00:00Z", UNPARSABLE),
        ("2026-01-31T12:00:60Z", UNPARSABLE),
        ("2026-01-31T12:00:00+24:00", UNPARSABLE),
        ("2026-01-31Z", UNPARSABLE),
        ("1769860800", UNPARSABLE),
    ],
)
def test_iso_texts_are_read_alike_alone_and_in_a_column(text: str, expected: Parsed) -> None:
    assert IsoTime().parse(text) == expected
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert results(IsoTime(), pa.array(["2026-01-31", text, None], kind))[1] == expected


def test_a_number_is_no_iso_text() -> None:
    assert IsoTime().parse(20260131) is UNPARSABLE
    assert not IsoTime().accepts(pa.int64())
    assert results(IsoTime(), pa.array([20260131, None])) == [UNPARSABLE, MISSING]


def test_one_odd_text_does_not_disturb_its_column() -> None:
    texts = ["2026-01-31T12:00:00Z"] * 50
    texts[17], texts[31] = "2026-02-30T12:00:00Z", "20260131T120000Z"
    expected: list[Parsed] = [NOON] * 50
    expected[17] = UNPARSABLE
    assert results(IsoTime(), pa.array(texts)) == expected


# ---- patterns ----


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("%d/%m/%Y %H:%M:%S", "31/01/2026 12:00:00", NOON),
        ("%d/%m/%Y %H:%M:%S", " 31/01/2026   12:00:00 ", NOON),
        ("%d/%m/%Y %H:%M:%S", "31/1/2026 12:0:0", NOON),
        ("%d/%m/%Y %H:%M:%S", "31/02/2026 12:00:00", UNPARSABLE),
        ("%d/%m/%Y %H:%M:%S", "31/01/2026 12:00:00 and more", UNPARSABLE),
        ("%d/%m/%Y %H:%M:%S", "", MISSING),
        ("%Y%m%d%H%M%S", "20260131120000", NOON),
        ("%Y-%m-%dT%H:%M:%S.%f", "2026-01-31T12:00:00.5", NOON + 500_000),
        ("%Y-%m-%dT%H:%M:%S.%f", "2026-01-31T12:00:00.1234567", UNPARSABLE),
        ("%Y-%m-%d %H:%M:%S%z", "2026-01-31 13:00:00+01:00", NOON),
        ("%Y-%m-%d %H:%M:%S%z", "2026-01-31 12:00:00Z", NOON),
        ("%Y-%m-%d %H:%M:%S%z", "2026-01-31 12:00:00", UNPARSABLE),
        ("%Y-%m-%d %H:%M:%S%z", "2026-01-31 12:00:00+99:00", UNPARSABLE),
        ("%d/%b/%Y:%H:%M:%S %z", "31/Jan/2026:13:00:00 +0100", NOON),
        ("%d/%b/%Y:%H:%M:%S %z", "31/JAN/2026:13:00:00 +0100", NOON),
        ("%d/%b/%Y:%H:%M:%S %z", "31/Foo/2026:13:00:00 +0100", UNPARSABLE),
        ("%d.%m.%y %H", "31.01.26 12", NOON),
        ("%d.%m.%y", "01.01.69", -31_536_000_000_000),
        ("%d.%m.%y", "01.01.68", 3_092_601_600_000_000),
        ("%d.%m.%Y %I:%M %p", "31.01.2026 12:00 PM", NOON),
        ("%Y %j %H", "2026 031 12", NOON),
        ("%G-W%V-%u", "2026-W05-6", NOON - 12 * 3_600_000_000),
        ("%Y-%m-%d 100%% UTC", "2026-01-31 100% UTC", NOON - 12 * 3_600_000_000),
    ],
)
def test_texts_are_read_by_the_pattern_alike_alone_and_in_a_column(
    pattern: str, text: str, expected: Parsed
) -> None:
    parser = PatternTime(pattern)
    assert parser.parse(text) == expected
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert results(parser, pa.array([text, None, "x"], kind)) == [expected, MISSING, UNPARSABLE]


@pytest.mark.parametrize("pattern", ["%z%d%m%Y", "%Y%m%d%f%H"])
def test_where_a_field_could_end_in_several_places_the_column_follows_strptime(
    pattern: str,
) -> None:
    parser = PatternTime(pattern)
    # Read with all fields filled, these would be 12 December and 11 hours.
    texts = ["+010012122026", "202601311234511", "2026013112345678"]
    assert results(parser, pa.array(texts)) == [parser.parse(text) for text in texts]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("%Y-%Q", "'Q' is a bad directive in format '%Y-%Q'"),
        ("%Y-%m-%d%", "stray % in format '%Y-%m-%d%'"),
        ("%H:%M:%S", "it does not tell the day"),
        ("%d/%m %H:%M", "it does not tell the day"),
        ("no time at all", "it does not tell the day"),
        ("%Y-%m-%d %Z", "names of zones (%Z) mean different hours in different places"),
    ],
)
def test_a_pattern_that_gives_no_instant_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        PatternTime(pattern)
    assert caught.value.code == "event-time-pattern-refused"
    assert caught.value.detail == f'an event time has the pattern "{pattern}": {reason}.'


def test_a_pattern_that_names_a_field_twice_is_refused() -> None:
    with pytest.raises(errors.InputError, match="pattern cannot be read"):
        PatternTime("%Y-%m-%d %Y")


def test_a_pattern_shows_in_errors_what_it_reads() -> None:
    assert PatternTime("%d.%m.%Y").reads == 'texts like "31.07.2026", timestamps and dates'


def test_built_in_parsers_travel_to_executors() -> None:
    for parser in BUILT_IN:
        parser.parse_column(pa.array(["31/01/2026 12:00:00"]))
        assert pickle.loads(pickle.dumps(parser)) == parser


# ---- the user's own ----


def by_thousands(value: Any) -> int:
    return int(value) * 1000


def test_a_function_gives_microseconds_a_datetime_or_nothing() -> None:
    answers = {
        "a": 5,
        "b": np.int64(6),
        "c": datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC),
        "d": None,
        "e": LIMIT,
        "f": BadReason.OUT_OF_RANGE,
        "g": 1.5,
        "h": True,
    }
    parser = FunctionTime(answers.__getitem__)  # type: ignore[arg-type]
    expected: list[Parsed] = [5, 6, 7_000_000, MISSING, OUT, OUT, UNPARSABLE, UNPARSABLE]
    assert [parser.parse(key) for key in answers] == expected
    assert parser.parse("not there") is UNPARSABLE
    assert results(parser, pa.array([*answers, "not there"])) == [*expected, UNPARSABLE]


def test_a_function_is_not_asked_about_what_is_missing() -> None:
    asked: list[object] = []
    parser = FunctionTime(lambda value: asked.append(value))
    assert results(parser, pa.array([None, float("nan")], pa.float64())) == [MISSING, MISSING]
    assert parser.parse(None) is MISSING
    assert asked == []


def test_a_function_sees_timestamps_too_and_may_shift_them() -> None:
    parser = FunctionTime(lambda local: local - timedelta(hours=1))
    hour = 3_600_000_000
    assert parser.parse(datetime(1970, 1, 1, 1, tzinfo=UTC)) == 0
    assert results(parser, pa.array([hour, None], pa.timestamp("us"))) == [0, MISSING]
    assert results(parser, pa.array([-1], pa.timestamp("ns", "UTC"))) == [-hour - 1]
    assert results(parser, pa.array([1 << 60], pa.timestamp("us"))) == [OUT]


def test_a_function_for_columns_is_asked_once_per_chunk() -> None:
    calls: list[int] = []

    def column(array: pa.Array) -> pa.Array:
        calls.append(len(array))
        return array.cast(pa.int64())

    parser = FunctionTime(by_thousands, column)
    chunked = pa.chunked_array([[1, None], [1 << 61]], pa.int64())
    assert results(parser, chunked) == [1, MISSING, OUT]
    assert calls == [2, 1]


def test_a_function_for_columns_may_give_timestamps_and_mark_bad_rows_by_null() -> None:
    stamps = pa.array([1, None, 3], pa.timestamp("ms"))
    parser = FunctionTime(by_thousands, lambda array: pa.chunked_array([stamps]))
    assert results(parser, pa.array([1, 2, None])) == [1000, UNPARSABLE, MISSING]


def test_where_a_function_for_columns_fails_the_rows_are_read_one_by_one() -> None:
    parser = FunctionTime(by_thousands, lambda array: array.cast(pa.int64()))
    assert results(parser, pa.array(["1", "x", None])) == [1000, UNPARSABLE, MISSING]


@pytest.mark.parametrize(
    ("answer", "described"),
    [
        (pa.array([1, 2]), "2 values of type int64"),
        (pa.array([1.5]), "1 values of type double"),
        ([1], "a list"),
    ],
)
def test_a_function_for_columns_that_gives_no_times_is_told_so(answer: Any, described: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        FunctionTime(by_thousands, lambda array: answer).parse_column(pa.array([1]))
    assert caught.value.code == "column-parser-broken"
    assert caught.value.fields == {"given": described, "rows": 1}


def test_any_column_may_hold_times_of_a_users_own() -> None:
    assert FunctionTime(by_thousands).accepts(pa.list_(pa.int8()))
    assert FunctionTime(by_thousands).reads == "whatever its function reads"
