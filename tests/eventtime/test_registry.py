"""The registry of event time types."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

import pyarrow as pa
import pytest

from tidegate import errors
from tidegate.eventtime.parsers import BadReason, FunctionTime, IsoTime, PatternTime, UnixTime
from tidegate.eventtime.registry import BUILT_IN, GROUP, EventTimeRegistry

# Named by the entry points below, as a package's own code would be.
OFFERED_PATTERN = "%Y%m%d"
OFFERED_PARSER = UnixTime("ms")
OFFERED_NONSENSE = 17


def offered_function(value: Any) -> int:
    return int(value, base=16)


def offer(name: str, attribute: str, module: str = __name__) -> EntryPoint:
    return EntryPoint(name, f"{module}:{attribute}", GROUP)


def plain(entry_points: Iterable[EntryPoint] = ()) -> EventTimeRegistry:
    """A registry that does not depend on what is installed."""
    return EventTimeRegistry(entry_points)


def test_these_types_are_built_in_and_listed_in_order() -> None:
    assert plain().list() == (
        "iso8601",
        "unixtimestamp",
        "unixtimestamp_ms",
        "unixtimestamp_ns",
        "unixtimestamp_s",
        "unixtimestamp_us",
    )
    assert set(plain().list()) == set(BUILT_IN)


@pytest.mark.parametrize(
    ("name", "value", "instant"),
    [
        ("unixtimestamp", 1, 1_000_000),
        ("unixtimestamp_s", 1, 1_000_000),
        ("unixtimestamp_ms", 1, 1_000),
        ("unixtimestamp_us", 1, 1),
        ("unixtimestamp_ns", 1_000, 1),
        ("iso8601", "1970-01-01T00:00:01Z", 1_000_000),
        ("%d/%m/%Y %H:%M:%S", "01/01/1970 00:00:01", 1_000_000),
    ],
)
def test_a_built_in_type_reads_values_and_columns(name: str, value: object, instant: int) -> None:
    parser = plain().resolve(name)
    assert parser.parse(value) == instant
    assert parser.parse_column(pa.array([value, None])).times.to_pylist() == [instant, None]


def test_any_name_with_a_percent_sign_is_a_pattern() -> None:
    registry = plain()
    assert registry.resolve("%d.%m.%Y") == PatternTime("%d.%m.%Y")
    assert registry.resolve("%d.%m.%Y") is registry.resolve("%d.%m.%Y")
    assert "%d.%m.%Y" not in registry.list()


def test_a_pattern_can_have_a_name() -> None:
    registry = plain()
    registry.register("german", "%d.%m.%Y")
    assert registry.resolve("german") == PatternTime("%d.%m.%Y")
    assert "german" in registry.list()


def test_a_bad_pattern_is_refused_when_it_is_named_or_asked_for() -> None:
    with pytest.raises(errors.InputError, match="pattern cannot be read"):
        plain().register("hours", "%H:%M")
    with pytest.raises(errors.InputError, match="pattern cannot be read"):
        plain().resolve("%H:%M")


def test_a_function_becomes_a_type() -> None:
    registry = plain()
    registry.register("hex", lambda text: int(text, base=16))
    parser = registry.resolve("hex")
    assert parser.parse("ff") == 255
    assert parser.parse("xyz") is BadReason.UNPARSABLE
    assert parser.parse_column(pa.array(["a", None, "?"])).times.to_pylist() == [10, None, None]


def test_a_function_may_bring_one_for_columns() -> None:
    registry = plain()
    registry.register("micros", int, column=lambda array: array.cast(pa.int64()))
    parser = registry.resolve("micros")
    assert isinstance(parser, FunctionTime)
    assert parser.column is not None
    assert parser.parse_column(pa.array(["1", "2"])).times.to_pylist() == [1, 2]


def test_a_parser_becomes_a_type_as_it_is() -> None:
    registry, parser = plain(), UnixTime("ns")
    registry.register("nanos", parser)
    assert registry.resolve("nanos") is parser


@pytest.mark.parametrize("name", ["iso8601", "mine", "packaged"])
def test_registering_a_name_twice_is_an_error_unless_it_replaces(name: str) -> None:
    registry = plain([offer("packaged", "offered_function")])
    registry.register("mine", int)
    with pytest.raises(errors.InputError) as caught:
        registry.register(name, "%Y%m%d")
    assert caught.value.code == "event-time-type-exists"
    registry.register(name, "%Y%m%d", replace=True)
    assert registry.resolve(name) == PatternTime("%Y%m%d")
    assert BUILT_IN["iso8601"] == IsoTime(), "one registry does not change another"


@pytest.mark.parametrize("name", ["", "%Y", "100%", " mine"])
def test_a_name_that_could_not_be_asked_for_is_refused(name: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        plain().register(name, int)
    assert caught.value.code == "event-time-type-misnamed"


@pytest.mark.parametrize("readable", [17, None, UnixTime])
def test_what_reads_nothing_is_refused(readable: Any) -> None:
    with pytest.raises(errors.InputError) as caught:
        plain().register("mine", readable)
    assert caught.value.code == "event-time-type-not-readable"


@pytest.mark.parametrize("readable", ["%Y%m%d", UnixTime("s")])
def test_a_function_for_columns_goes_with_a_function(readable: Any) -> None:
    with pytest.raises(errors.InputError) as caught:
        plain().register("mine", readable, column=lambda array: array)
    assert caught.value.code == "event-time-type-not-readable"


def test_an_unknown_type_names_the_column_the_stream_and_the_known_types() -> None:
    with pytest.raises(errors.InputError) as caught:
        plain().resolve("iso", stream="orders", column="at")
    assert str(caught.value) == (
        "unknown event time type\n"
        'Detail: column "at" of stream "orders" has the type "iso"; known types are: iso8601,'
        " unixtimestamp, unixtimestamp_ms, unixtimestamp_ns, unixtimestamp_s, unixtimestamp_us.\n"
        "Hint: use one of them, a pattern such as %Y-%m-%d, or register the type."
    )


def test_an_unknown_type_asked_for_by_hand_is_told_without_a_stream() -> None:
    with pytest.raises(errors.InputError, match='an event time has the type "iso"'):
        plain().resolve("iso")


# ---- entry points ----


def test_installed_packages_bring_types() -> None:
    registry = plain(
        [
            offer("hex", "offered_function"),
            offer("day", "OFFERED_PATTERN"),
            offer("millis", "OFFERED_PARSER"),
        ]
    )
    assert {"hex", "day", "millis"} < set(registry.list())
    assert registry.resolve("hex").parse("ff") == 255
    assert registry.resolve("day").parse("19700102") == 86_400_000_000
    assert registry.resolve("millis") == UnixTime("ms")
    assert registry.resolve("hex") is registry.resolve("hex")
    assert {"hex", "day", "millis"} < set(registry.list())


def test_the_installed_entry_points_are_asked_for_once_and_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[str] = []

    def installed(*, group: str) -> list[EntryPoint]:
        groups.append(group)
        return [offer("hex", "offered_function")]

    monkeypatch.setattr("importlib.metadata.entry_points", installed)
    registry = EventTimeRegistry()
    assert groups == []
    assert registry.resolve("hex").parse("a") == 10
    assert "hex" in registry.list()
    assert groups == ["tidegate.eventtime"]


def test_listing_does_not_load_a_package() -> None:
    registry = plain([offer("broken", "anything", module="there_is_no_such_module")])
    assert "broken" in registry.list()
    assert registry.resolve("iso8601") == IsoTime()


def test_a_package_that_cannot_be_loaded_is_named() -> None:
    registry = plain([offer("broken", "anything", module="there_is_no_such_module")])
    with pytest.raises(errors.InputError) as caught:
        registry.resolve("broken")
    assert caught.value.code == "event-time-type-not-loaded"
    assert caught.value.fields["package"] == "there_is_no_such_module:anything"
    assert "No module named 'there_is_no_such_module'" in caught.value.fields["reason"]


def test_a_package_that_offers_nonsense_is_refused() -> None:
    with pytest.raises(errors.InputError) as caught:
        plain([offer("odd", "OFFERED_NONSENSE")]).resolve("odd")
    assert caught.value.code == "event-time-type-not-readable"


def test_a_name_offered_by_two_packages_is_an_error_only_for_who_asks_for_it() -> None:
    registry = plain([offer("hex", "offered_function"), offer("hex", "OFFERED_PATTERN")])
    assert registry.list().count("hex") == 1
    assert registry.resolve("iso8601") == IsoTime()
    with pytest.raises(errors.InputError) as caught:
        registry.resolve("hex")
    assert caught.value.code == "event-time-type-ambiguous"


def test_a_package_cannot_silently_replace_what_is_built_in() -> None:
    registry = plain([offer("iso8601", "offered_function")])
    with pytest.raises(errors.InputError) as caught:
        registry.resolve("iso8601")
    assert caught.value.fields["packages"].endswith(":offered_function, tidegate")
    registry.register("iso8601", IsoTime(), replace=True)
    assert registry.resolve("iso8601") == IsoTime()
