"""Laws of parsers: one value and a column agree, nothing is fatal, rounding is downward."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.eventtime.instants import LIMIT, format_instant, from_datetime
from tidegate.eventtime.parsers import (
    BadReason,
    EventTimeParser,
    FunctionTime,
    IsoTime,
    PatternTime,
    UnixTime,
)

UNITS: dict[Any, Fraction] = {
    "s": Fraction(10**6),
    "ms": Fraction(1000),
    "us": Fraction(1),
    "ns": Fraction(1, 1000),
}
law = settings(deadline=None, max_examples=100)

units = st.sampled_from(list(UNITS))
int64s = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**12), 10**12)
floats = st.floats() | st.floats(-1e11, 1e11) | st.sampled_from([-0.0, 8.2, 1e-300, 2.0**61])


def agree(parser: EventTimeParser, column: pa.Array, values: list[Any] | None = None) -> None:
    """The column gives, row by row, what its values give; also in pieces."""
    expected = [parser.parse(value) for value in (column.to_pylist() if values is None else values)]
    parsed = parser.parse_column(column)
    assert [parsed.at(row) for row in range(len(column))] == expected
    assert parsed.reasons.is_null().equals(parsed.times.is_valid())
    middle = len(column) // 2
    pieces = pa.chunked_array([column.slice(0, middle), column.slice(middle)], column.type)
    again = parser.parse_column(pieces)
    assert again.times.equals(parsed.times)
    assert again.reasons.to_pylist() == parsed.reasons.to_pylist()


# ---- numbers ----


@law
@given(units, st.lists(st.none() | int64s, max_size=8))
@example("s", [None, 0, LIMIT // 10**6, -(LIMIT // 10**6), 1 - LIMIT // 10**6])
@example("us", [LIMIT, LIMIT - 1, -LIMIT, 1 - LIMIT])
def test_whole_numbers_agree(unit: Any, values: list[int | None]) -> None:
    agree(UnixTime(unit), pa.array(values, pa.int64()))
    unsigned = [None if value is None else value + 2**63 for value in values]
    agree(UnixTime(unit), pa.array(unsigned, pa.uint64()))


@law
@given(units, st.lists(st.none() | floats, max_size=8))
def test_floats_agree(unit: Any, values: list[float | None]) -> None:
    agree(UnixTime(unit), pa.array(values, pa.float64()))


@law
@given(units, st.data())
def test_decimals_agree(unit: Any, data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 76))
    scale = data.draw(st.integers(0, precision))
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    small = st.integers(-1000, 1000).filter(lambda n: abs(n) < 10**precision)
    whole = data.draw(st.lists(st.none() | digits | small, max_size=6))
    values = [None if n is None else Decimal(f"{n}e{-scale}") for n in whole]
    agree(UnixTime(unit), pa.array(values, pa.decimal256(precision, scale)), values)


digit_texts = st.from_regex(
    r"[ ]?[+-]?[0-9]{0,24}(\.[0-9]{0,14})?([eE][+-]?[0-9]{1,3})?[ ]?", fullmatch=True
)


@law
@given(units, st.lists(st.none() | digit_texts | st.text(max_size=5), max_size=8))
def test_texts_of_digits_agree(unit: Any, values: list[str | None]) -> None:
    agree(UnixTime(unit), pa.array(values, pa.string()))


@law
@given(
    units,
    int64s
    | st.decimals(allow_nan=False, allow_infinity=False).filter(
        lambda value: abs(value.adjusted()) < 60
    ),
)
def test_exact_numbers_are_rounded_down(unit: Any, value: int | Decimal) -> None:
    exact = Fraction(value) * UNITS[unit]
    parsed = UnixTime(unit).parse(value)
    if isinstance(parsed, BadReason):
        assert parsed is BadReason.OUT_OF_RANGE
        assert not -LIMIT < exact // 1 < LIMIT
    else:
        assert parsed <= exact < parsed + 1


@law
@given(st.integers(-8_400_000_000_000_000, 8_400_000_000_000_000))
@example(4_503_599_627_370_477)
def test_a_microsecond_written_as_a_float_of_seconds_is_read_back(instant: int) -> None:
    assert UnixTime("s").parse(instant / 10**6) == instant
    assert UnixTime("ms").parse(instant / 1000) == instant


@law
@given(st.floats(-8e9, 8e9))
def test_a_float_is_never_read_as_later_than_it_was_written(value: float) -> None:
    parsed = UnixTime("s").parse(value)
    assert isinstance(parsed, int)
    assert parsed / 10**6 <= value < (parsed + 1) / 10**6


# ---- what is an instant already ----


@law
@given(st.sampled_from(["s", "ms", "us", "ns"]), st.lists(st.none() | int64s, max_size=8))
def test_timestamps_agree(unit: Any, counts: list[int | None]) -> None:
    # The smallest int64 is numpy's word for "not a time".
    counts = [count for count in counts if count != -(2**63)]
    values = [None if count is None else np.datetime64(count, unit) for count in counts]
    for parser in (IsoTime(), UnixTime("s"), PatternTime("%Y-%m-%d")):
        agree(parser, pa.array(counts, pa.timestamp(unit, "UTC")), values)


@law
@given(st.lists(st.none() | st.dates(), max_size=5), st.lists(st.none() | st.datetimes()))
def test_dates_and_datetimes_agree(dates: list[Any], moments: list[Any]) -> None:
    agree(IsoTime(), pa.array(dates, pa.date32()))
    agree(IsoTime(), pa.array(dates, pa.date64()))
    agree(IsoTime(), pa.array(moments, pa.timestamp("us")))


# ---- ISO 8601 ----

two = st.integers(0, 61).map("{:02d}".format) | st.sampled_from(["00", "12", "29", "30", "31"])
years = st.integers(0, 9999).map("{:04d}".format) | st.sampled_from(["2000", "1900", "2024"])
zones = st.sampled_from(["", "Z", "z", "+01", "+0100", "+01:00", "-23:59", "+24:00", "-00:00", "x"])
fractions = st.from_regex(r"(|[.,][0-9]{0,12})", fullmatch=True)
iso_texts = st.one_of(
    st.builds("{}-{}-{}".format, years, two, two),
    st.builds("{}-{}-{}{}{}:{}{}".format, years, two, two, st.sampled_from("T t"), two, two, zones),
    st.builds("{}-{}-{}T{}:{}:{}{}{}".format, years, two, two, two, two, two, fractions, zones),
    st.builds("{}{}{}T{}{}{}{}".format, years, two, two, two, two, two, zones),
    st.text(max_size=6),
)
instants = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))  # noqa: DTZ001


@law
@given(st.lists(st.none() | iso_texts, max_size=8))
def test_iso_texts_agree(values: list[str | None]) -> None:
    agree(IsoTime(), pa.array(values, pa.string()))


@law
@given(st.lists(instants, max_size=5), st.integers(-23, 23))
def test_what_is_printed_is_read_back(moments: list[datetime], hours: int) -> None:
    times = [from_datetime(moment) for moment in moments]
    printed = pa.array([format_instant(time) for time in times], pa.string())
    assert IsoTime().parse_column(printed).times.to_pylist() == times
    zone = timezone(timedelta(hours=hours))
    zoned = pa.array([moment.replace(tzinfo=zone).isoformat() for moment in moments], pa.string())
    moved = [time - hours * 3_600_000_000 for time in times]
    assert IsoTime().parse_column(zoned).times.to_pylist() == moved


# ---- patterns ----

PATTERNS = [
    "%d/%m/%Y %H:%M:%S",
    "%Y%m%d%H%M%S",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%d/%b/%Y:%H:%M:%S %z",
    "%m/%d/%y %I:%M %p",
    "%d.%m.%y",
    "%z%d%m%Y",
    "%Y%m%d%f%H",
    "%A %d %B %Y",
]


@st.composite
def pattern_texts(draw: st.DrawFn, pattern: str) -> str:
    """A time in this pattern, and sometimes one character of it changed or lost."""
    moment = draw(instants.filter(lambda moment: moment.year >= 1000)).replace(tzinfo=UTC)
    text = moment.strftime(pattern)
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text) - 1))
        text = text[:place] + draw(st.sampled_from(["", "0", "9", " ", "x"])) + text[place + 1 :]
    return text


@law
@given(st.data(), st.sampled_from(PATTERNS))
def test_texts_of_a_pattern_agree(data: st.DataObject, pattern: str) -> None:
    values = data.draw(st.lists(st.none() | pattern_texts(pattern), max_size=5))
    agree(PatternTime(pattern), pa.array(values, pa.string()))


# ---- never fatal ----

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(),
    st.binary(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.lists(st.integers()),
    st.complex_numbers(),
)


@law
@given(anything)
def test_no_value_is_fatal(value: object) -> None:
    parsers: list[EventTimeParser] = [UnixTime(unit) for unit in UNITS]
    parsers += [IsoTime(), PatternTime("%d/%m/%Y"), FunctionTime(lambda value: value[0])]
    for parser in parsers:
        parsed = parser.parse(value)
        assert isinstance(parsed, BadReason) or (type(parsed) is int and abs(parsed) < LIMIT)
