"""What streams declare, what queries ask for, and how both are checked."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from tidegate import errors
from tidegate.eventtime.declaration import (
    EventTimeDeclaration,
    EventTimeOptions,
    Message,
    event_time_of,
)
from tidegate.eventtime.parsers import BadReason, IsoTime, UnixTime
from tidegate.eventtime.registry import EventTimeRegistry

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us")),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("coded", pa.dictionary(pa.int8(), pa.string())),
    ]
)


@pytest.fixture
def registry() -> EventTimeRegistry:
    return EventTimeRegistry(entry_points=())


# ---- the declaration of a stream ----


def test_a_stream_declares_its_column_and_type() -> None:
    options = {"eventtime.column": "at", "eventtime.type": "unixtimestamp_ms", "format": "json"}
    declared = EventTimeDeclaration.from_mapping(options)
    assert declared == EventTimeDeclaration("at", "unixtimestamp_ms")


def test_a_stream_may_declare_nothing() -> None:
    assert EventTimeDeclaration.from_mapping({"format": "json"}) is None


def test_the_type_may_be_left_out_for_timestamps_and_iso_texts() -> None:
    declared = EventTimeDeclaration.from_mapping({"eventtime.column": "at"})
    assert declared == EventTimeDeclaration("at", "iso8601")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"eventtime.type": "iso8601"}, "eventtime.column"),
        ({"eventtime.column": ""}, "eventtime.column"),
        ({"eventtime.column": 5}, "eventtime.column"),
        ({"eventtime.column": "at", "eventtime.type": " "}, "eventtime.type"),
        ({"eventtime.column": "at", "eventtime.type": None}, "eventtime.type"),
    ],
)
def test_half_a_declaration_is_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeDeclaration.from_mapping(options)
    assert caught.value.code == "wrong-setting"
    assert caught.value.fields["name"] == name


@pytest.mark.parametrize("key", ["eventtime.colum", "eventtime.enabled", "eventtime.lateTolerance"])
def test_keys_that_a_stream_cannot_honour_are_refused_with_the_known_ones(key: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeDeclaration.from_mapping({"eventtime.column": "at", key: "x"})
    assert caught.value.code == "unknown-setting"
    assert caught.value.detail == (
        f"'{key}' is not a setting; settings are: eventtime.column, eventtime.type."
    )


def test_a_declaration_cannot_change() -> None:
    with pytest.raises(FrozenInstanceError):
        EventTimeDeclaration("at").column = "id"  # type: ignore[misc]


# ---- against the schema ----


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("at", "iso8601"),
        ("at", "unixtimestamp_ms"),
        ("at", "%d/%m/%Y"),
        ("id", "unixtimestamp_ms"),
        ("text", "unixtimestamp_ms"),
        ("text", "iso8601"),
        ("text", "%d/%m/%Y"),
        ("coded", "iso8601"),
    ],
)
def test_a_right_declaration_gives_its_parser(
    registry: EventTimeRegistry, column: str, kind: str
) -> None:
    declaration = EventTimeDeclaration(column, kind)
    assert declaration.validate(SCHEMA, registry, stream="orders") == registry.resolve(kind)


def test_a_missing_column_lists_those_there_are(registry: EventTimeRegistry) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeDeclaration("when").validate(SCHEMA, registry, stream="orders")
    assert caught.value.code == "event-time-column-missing"
    assert caught.value.detail == (
        'stream "orders" has no column "when"; its columns are: at, coded, flag, id, text.'
    )


def test_a_column_that_occurs_twice_cannot_be_meant(registry: EventTimeRegistry) -> None:
    schema = pa.schema([("at", pa.int64()), ("at", pa.int64())])
    with pytest.raises(errors.InputError, match='has 2 columns "at"'):
        EventTimeDeclaration("at", "unixtimestamp").validate(schema, registry, stream="orders")


@pytest.mark.parametrize(
    ("column", "kind"), [("id", "iso8601"), ("id", "%Y%m%d"), ("flag", "unixtimestamp")]
)
def test_a_column_that_the_type_cannot_read_is_refused(
    registry: EventTimeRegistry, column: str, kind: str
) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeDeclaration(column, kind).validate(SCHEMA, registry, stream="orders")
    assert caught.value.code == "event-time-column-unreadable"
    assert f'column "{column}" of stream "orders" is ' in caught.value.detail
    assert caught.value.hint.endswith(f"known types are: {', '.join(registry.list())}.")


def test_an_unknown_type_names_who_declared_it(registry: EventTimeRegistry) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeDeclaration("at", "iso").validate(SCHEMA, registry, stream="orders")
    assert caught.value.code == "unknown-event-time-type"
    assert caught.value.fields == {"type": "iso", "stream": "orders", "column": "at"}


def test_a_bad_pattern_names_who_declared_it(registry: EventTimeRegistry) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeDeclaration("text", "%H:%M").validate(SCHEMA, registry, stream="orders")
    assert caught.value.detail == (
        'column "text" of stream "orders" has the pattern "%H:%M": it does not tell the day.'
    )


# ---- the options of a query ----


def test_event_time_is_off_and_tolerates_nothing_by_default() -> None:
    assert EventTimeOptions.from_mapping({}) == EventTimeOptions(False, timedelta(0))
    assert EventTimeOptions.from_mapping({"format": "json"}) == EventTimeOptions()


@pytest.mark.parametrize(
    ("value", "enabled"),
    [(True, True), ("true", True), ("ON", True), (1, True), (False, False), ("off", False)],
)
def test_event_time_is_switched_by_a_word(value: object, enabled: bool) -> None:
    assert EventTimeOptions.from_mapping({"eventtime.enabled": value}).enabled is enabled


@pytest.mark.parametrize("value", ["maybe", "", None, 2])
def test_other_words_switch_nothing(value: object) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeOptions.from_mapping({"eventtime.enabled": value})
    assert caught.value.code == "wrong-setting"


@pytest.mark.parametrize(
    "key", ["eventtime.late_tolerance", "eventtime.lateTolerance", "lateTolerance"]
)
@pytest.mark.parametrize(
    ("value", "tolerance"),
    [
        ("5s", timedelta(seconds=5)),
        ("500ms", timedelta(milliseconds=500)),
        ("5 minutes", timedelta(minutes=5)),
        (timedelta(hours=1), timedelta(hours=1)),
        (0, timedelta(0)),
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
    ],
)
def test_the_tolerance_is_a_duration_under_any_of_its_names(
    key: str, value: object, tolerance: timedelta
) -> None:
    assert EventTimeOptions.from_mapping({key: value}).late_tolerance == tolerance


@pytest.mark.parametrize("value", [5, 5000, "5", 1.5, None, "", "5 moons", "-5s", True, False])
def test_a_tolerance_without_a_unit_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeOptions.from_mapping({"lateTolerance": value})
    assert caught.value.detail == (
        f"lateTolerance cannot be {value!r};"
        " it can be: a number with a unit, such as 500ms or 5s, 0."
    )


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(errors.InputError, match="late_tolerance cannot be '-5s'"):
        EventTimeOptions(late_tolerance=timedelta(seconds=-5))


def test_two_spellings_of_the_tolerance_are_one_too_many() -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeOptions.from_mapping({"lateTolerance": "5s", "eventtime.late_tolerance": "6s"})
    assert caught.value.code == "setting-given-twice"


@pytest.mark.parametrize("key", ["eventtime.tolerance", "eventtime.column", "eventtime."])
def test_keys_that_a_query_cannot_honour_are_refused_with_the_known_ones(key: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        EventTimeOptions.from_mapping({key: "x"})
    assert caught.value.code == "unknown-setting"
    assert caught.value.detail.endswith(
        "settings are: eventtime.enabled, eventtime.lateTolerance, eventtime.late_tolerance,"
        " lateTolerance."
    )


def test_event_time_without_a_declaration_is_a_planning_error_that_names_the_stream() -> None:
    options = EventTimeOptions(enabled=True)
    with pytest.raises(errors.InputError) as caught:
        options.require({"orders": None})
    assert caught.value.code == "event-time-not-declared"
    assert caught.value.detail == "no event time column is declared by: orders."


def test_one_declaring_stream_is_enough_and_none_is_needed_without_event_time() -> None:
    EventTimeOptions(enabled=True).require({"rates": None, "orders": EventTimeDeclaration("at")})
    EventTimeOptions(enabled=False).require({"orders": None})


# ---- a tuple of several messages ----

DECLARED = {
    "orders": EventTimeDeclaration("at", "unixtimestamp_ms"),
    "payments": EventTimeDeclaration("paid", "iso8601"),
}
RATE = Message("rates", {"at": 7})
ORDER = Message("orders", {"at": 5})
PAYMENT = Message("payments", {"paid": "1970-01-01T00:00:01Z"})


@pytest.mark.parametrize(
    ("messages", "instant"),
    [
        ([ORDER], 5_000),
        ([ORDER, PAYMENT], 5_000),
        ([PAYMENT, ORDER], 1_000_000),
        ([RATE, PAYMENT, ORDER], 1_000_000),
    ],
)
def test_the_first_message_whose_stream_declares_event_time_decides(
    registry: EventTimeRegistry, messages: list[Message], instant: int
) -> None:
    assert event_time_of(messages, DECLARED, registry) == instant


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, BadReason.MISSING),
        ({"at": None}, BadReason.MISSING),
        ({"at": "soon"}, BadReason.UNPARSABLE),
        ({"at": 1 << 62}, BadReason.OUT_OF_RANGE),
    ],
)
def test_it_decides_also_when_its_time_is_bad(
    registry: EventTimeRegistry, row: dict[str, object], reason: BadReason
) -> None:
    assert event_time_of([Message("orders", row), PAYMENT], DECLARED, registry) is reason


def test_a_tuple_of_which_no_stream_declares_event_time_has_none(
    registry: EventTimeRegistry,
) -> None:
    assert event_time_of([RATE], DECLARED, registry) is BadReason.MISSING
    assert event_time_of([], DECLARED, registry) is BadReason.MISSING


def test_an_unknown_type_in_a_declaration_is_the_declarers_mistake_not_a_bad_row(
    registry: EventTimeRegistry,
) -> None:
    with pytest.raises(errors.InputError, match='column "at" of stream "orders"'):
        event_time_of([ORDER], {"orders": EventTimeDeclaration("at", "iso")}, registry)


def test_a_declaration_resolves_to_the_registered_parser(registry: EventTimeRegistry) -> None:
    assert DECLARED["orders"].resolve(registry, stream="orders") == UnixTime("ms")
    assert DECLARED["payments"].resolve(registry, stream="payments") == IsoTime()
