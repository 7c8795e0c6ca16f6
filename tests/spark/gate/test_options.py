"""The options of a gated stream: each is honoured, or refused with what there is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.spark.gate.loop import gate
from tests.spark.jobs.world import S, World

from tidegate.errors import TidegateError
from tidegate.eventtime.lateness import Forever, InAny, InSession, InWindows, Late, Once
from tidegate.logs.nexmark import NexmarkLog
from tidegate.planning.policy import Start, Strategy
from tidegate.spark.gate.options import KNOWN, asks_for_stream, gate_of, gate_schema
from tidegate.spark.gate.trick import WATERMARK


@pytest.fixture
def world(bare: World) -> World:
    bare.stream()
    return bare


def _options(world: World, **more: str) -> dict[str, str]:
    return {"store": str(world.folder / "store"), "stream": "orders", "query": "q", **more}


def test_an_unknown_option_is_refused_and_the_known_ones_are_listed(world: World) -> None:
    with pytest.raises(TidegateError) as unknown:
        gate_of(_options(world, windws="10 s"), ["k"])
    assert unknown.value.code == "unknown-setting"
    assert "'windws'" in str(unknown.value)
    for name in KNOWN:
        assert name in str(unknown.value)
    # Two settings have no meaning in arrival order: they are refused, and not ignored.
    for name in ("release", "max_amplification"):
        with pytest.raises(TidegateError, match="unknown setting"):
            gate_of(_options(world, **{name: "1"}), ["k"])


def test_only_a_stream_has_a_policy() -> None:
    """Spark asks for columns before it says of what: who forgets `query` must hear of that."""
    place = {"store": "/data/shop", "stream": "orders"}
    assert not asks_for_stream({**place, "columns": "k", "tasks": "2"})
    assert asks_for_stream({**place, "query": "q"})
    assert asks_for_stream({**place, "Idle_After": "1 s"})
    assert asks_for_stream({**place, "windows": "1 s"})


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"query": ""}, "option-missing", "query is not given"),
        ({"query": "", "idle_after": "1 s"}, "option-missing", "that idle_after is for"),
        ({"late": "update"}, "update-needs-slices", "slices"),
        ({"late": "later"}, "wrong-setting", "route, drop, next, update"),
        ({"last_use": "twice"}, "wrong-setting", "once, never"),
        ({"last_use": "never", "windows": "1 s"}, "use-given-twice", "windows"),
        ({"last_use": "never", "gap": "1 s"}, "use-given-twice", "gap"),
        ({"start": "{17}"}, "wrong-setting", '{"0.e0": 17}'),
        ({"start": '{"0.e0": -1}'}, "wrong-setting", '{"0.e0": 17}'),
        ({"start": '{"0.e0": "x"}'}, "wrong-setting", '{"0.e0": 17}'),
        ({"max_rows": "0"}, "wrong-setting", "1 or more"),
        ({"max_future": "1 min"}, "future-is-the-writers", "orders"),
        ({"windows": "ten"}, "duration-not-parsed", "ten"),
        ({"tasks": "many"}, "wrong-setting", "tasks"),
        ({"tasks": "0"}, "wrong-setting", "tasks"),
    ],
)
def test_a_wrong_value_is_refused_with_what_it_can_be(
    world: World, options: dict[str, str], code: str, words: str
) -> None:
    with pytest.raises(TidegateError) as wrong:
        gate_of(_options(world, **options), ["k"])
    assert wrong.value.code == code
    assert words in str(wrong.value)


def test_names_are_known_in_any_case_and_by_their_other_names(world: World) -> None:
    made = gate_of(
        _options(world, **{"Late.Data.Strategy": "drop", "EVENTTIME.LATETOLERANCE": "3s"}), ["k"]
    )
    assert (made.policy.late, made.policy.tolerance) == (Late.DROP, timedelta(seconds=3))
    # By default a key is remembered for as long as the tolerance is.
    assert made.within == timedelta(seconds=3)
    assert gate_of(_options(world, within="9s", tolerance="auto"), ["k"]).within.seconds == 9
    assert gate_of(_options(world, tolerance="auto"), ["k"]).within == timedelta(0)


def test_the_uses_of_a_row(world: World) -> None:
    ten, five = timedelta(seconds=10), timedelta(seconds=5)
    cases: list[tuple[dict[str, str], Any, bool]] = [
        ({}, Forever(), False),
        ({"windows": "10 s"}, InWindows(ten), True),
        ({"windows": "10 s / 5 s"}, InWindows(ten, five), True),
        ({"windows": "10 s, 5 s"}, InAny((InWindows(ten), InWindows(five))), True),
        ({"gap": "5 s"}, InSession(five), False),
        ({"windows": "10 s", "gap": "5 s"}, InAny((InWindows(ten), InSession(five))), False),
        ({"last_use": "once"}, Once(), False),
        ({"last_use": "never"}, Forever(), False),
    ]
    for options, use, exact in cases:
        made = gate_of(_options(world, **options), ["k"])
        assert (made.use, made.exact_ends) == (use, exact)


def test_values_of_python_come_through_as_they_are(world: World) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    cases: list[tuple[dict[str, Any], str, Any]] = [
        ({"start": at}, "start", 1_767_225_600 * S),
        ({"start": 17 * S}, "start", 17 * S),
        ({"start": "latest"}, "start", Start.LATEST),
        ({"start": Start.LATEST}, "start", Start.LATEST),
        ({"start": {"0.e0": 17}}, "start", {"orders": {"0.e0": 17}}),
        ({"idle_after": None}, "idle_after", None),
        ({"idle_after": timedelta(seconds=7)}, "idle_after", timedelta(seconds=7)),
        ({"max_drift": None}, "max_drift", None),
        ({"watermark": Strategy.EVENTS}, "watermark", Strategy.EVENTS),
        ({"max_rows": 5}, "max_rows", 5),
        ({"max_rows": None}, "max_rows", None),
        ({"tolerance": timedelta(microseconds=1500)}, "tolerance", timedelta(microseconds=1500)),
        ({"late": Late.NEXT}, "late", Late.NEXT),
    ]
    for settings, name, value in cases:
        assert getattr(gate(world, **settings).gate.policy, name) == value


def test_processing_time_needs_rows_that_are_timed_by_their_commit(world: World) -> None:
    with pytest.raises(TidegateError) as refused:
        gate(world, watermark="processing")
    assert refused.value.code == "processing-needs-commit-time"


def test_columns_and_the_one_that_has_the_time(world: World) -> None:
    def columns(**more: str) -> list[str]:
        return list(gate_schema(_options(world, **more)).names)

    assert columns() == ["k", "v", "at", WATERMARK]
    assert columns(columns="v, at") == ["v", "at", WATERMARK]
    # Whatever is asked for, Spark's operators need a time.
    assert columns(columns="v") == ["v", "_event_time", WATERMARK]
    assert columns(columns="_offset,_event_time") == ["_offset", "_event_time", WATERMARK]
    assert gate(world, columns="v,_partition").gate.event_column == "_event_time"
    assert gate(world, columns="v,at").gate.event_column == "at"
    assert all(field.nullable for field in gate_schema(_options(world)))
    with pytest.raises(TidegateError) as unknown:
        columns(columns="v,price")
    assert "price" in str(unknown.value)
    assert "k" in str(unknown.value)


def test_any_other_log_wants_a_store_beside_it(world: World) -> None:
    log = NexmarkLog("bids", "bid", total=100)
    made = gate(world, log)
    assert (made.gate.stream, made.gate.record, made.gate.node) == ("bids", "q/bids", "source:bids")
    assert made.gate.event_column == "_event_time"
    with pytest.raises(TidegateError) as missing:
        gate_of({"log": json.dumps(log.describe()), "query": "q"}, ["auction"])
    assert missing.value.code == "option-missing"
    assert "store is not given" in str(missing.value)


def test_two_sources_of_one_stream_are_told_apart_by_name(world: World) -> None:
    made = gate(world, source="again").gate
    assert (made.record, made.stream) == ("q/again", "orders")
