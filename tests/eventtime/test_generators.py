from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta

import numpy as np
import pytest

from tidegate import errors
from tidegate.eventtime.generators import (
    AutoDisorder,
    BoundedDisorder,
    FedByMarks,
    GeneratorConfig,
    ProcessingTime,
    Punctuated,
    WatermarkGenerator,
    ascending,
    with_future_guard,
    with_idleness,
)
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.watermark import IDLE, UNKNOWN
from tidegate.testing import ManualClock


def us(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def fed(generator: WatermarkGenerator, *times: int) -> list[int | None]:
    return [generator.on_event(time) for time in times]


# ---- bounded disorder ----


def test_the_number_is_the_maximum_seen_less_the_tolerance() -> None:
    generator = BoundedDisorder(us(100)).build()
    assert generator.current() is UNKNOWN
    assert fed(generator, 1000, 800, 1200) == [900, None, 1100]
    assert generator.current() == 1100


def test_ascending_is_a_tolerance_of_nothing() -> None:
    assert ascending() == BoundedDisorder(us(0)) == BoundedDisorder()
    generator = ascending().build()
    assert fed(generator, 1000, 2000, 1500, 2000) == [1000, 2000, None, None]


def test_the_number_of_a_whole_column_is_the_same_arithmetic() -> None:
    assert BoundedDisorder(us(100)).number(1000) == 900
    assert BoundedDisorder(us(100)).number(np.array([1000, 50])).tolist() == [900, -50]


# ---- tolerance = auto ----


def test_auto_follows_the_largest_disorder_and_never_lowers_what_it_has_said() -> None:
    generator = AutoDisorder().build()
    assert fed(generator, 100) == [100]
    assert fed(generator, 90) == [None]
    assert generator.current() == 100, "ten behind: the next number is ten less, this one stands"
    assert fed(generator, 105, 110, 111) == [None, None, 101]
    assert fed(generator, 81) == [None], "thirty behind"
    assert fed(generator, 131, 132) == [None, 102]
    assert generator.current() == 102


def test_disorder_is_measured_against_the_maximum_not_against_the_event_before() -> None:
    generator = AutoDisorder().build()
    fed(generator, 100, 90, 80)
    assert generator.on_event(125) == 105


def test_auto_as_arithmetic_on_columns() -> None:
    assert AutoDisorder.number(np.array([100, 50]), 10).tolist() == [90, 40]


# ---- punctuation, marks, the clock ----


def test_only_punctuation_moves_the_number() -> None:
    generator = Punctuated.every(us(1000)).build()
    assert fed(generator, 500, 999, 1000, 1500, 2000, 1000) == [
        *(None, None, 1000),
        *(None, 2000, None),
    ]


def test_what_punctuation_says_is_read_from_the_event() -> None:
    generator = Punctuated(lambda time: time - 7 if time % 2 else None).build()
    assert fed(generator, 10, 11, 12, 9) == [None, 4, None, None]


@pytest.mark.parametrize("duration", [us(0), us(-5)])
def test_punctuation_every_nothing_is_an_error(duration: timedelta) -> None:
    with pytest.raises(errors.InputError, match="must be positive"):
        Punctuated.every(duration)


def test_fed_by_marks_listens_to_marks_only() -> None:
    generator = FedByMarks().build()
    assert fed(generator, 5000) == [None]
    assert generator.on_clock() is None
    assert generator.current() is UNKNOWN
    assert generator.advance_to(300) == 300
    assert generator.advance_to(200) is None
    assert generator.current() == 300


def test_processing_time_is_the_clock_whatever_the_events_say() -> None:
    clock = ManualClock(at=50)
    generator = ProcessingTime(clock.now).build()
    assert generator.on_event(9_999) == 50
    assert generator.on_clock() is None
    clock.at = 60
    assert generator.on_clock() == 60
    clock.at = 55
    assert generator.on_clock() is None, "a clock that steps back moves nothing"
    assert generator.current() == 60


# ---- all of them ----

CLOCK = ManualClock(at=1_000_000)
KINDS: dict[str, GeneratorConfig] = {
    "bounded": BoundedDisorder(us(100)),
    "ascending": ascending(),
    "auto": AutoDisorder(),
    "punctuated": Punctuated.every(us(10)),
    "marks": FedByMarks(),
    "processing": ProcessingTime(CLOCK.now),
    "idle": with_idleness(BoundedDisorder(us(5)), us(1000), CLOCK.now),
    "guarded": with_future_guard(AutoDisorder(), us(1000), CLOCK.now),
    "both": with_idleness(with_future_guard(ascending(), us(5), CLOCK.now), us(9), CLOCK.now),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> GeneratorConfig:
    return KINDS[request.param]


def test_a_mark_from_outside_moves_any_generator_and_never_back(kind: GeneratorConfig) -> None:
    generator = kind.build()
    assert generator.advance_to(2_000_000) == 2_000_000
    assert generator.advance_to(1_500_000) is None
    assert generator.current() == 2_000_000
    generator.on_event(1_000_000)
    generator.on_clock()
    assert generator.current() == 2_000_000


def test_a_restored_generator_goes_on_as_the_first_one_does(kind: GeneratorConfig) -> None:
    history = [999_900, 999_950, 999_930, 999_870, 1_000_000]
    for stop in range(len(history)):
        first = kind.build()
        fed(first, *history[:stop])
        restored = kind.build(json.loads(json.dumps(first.snapshot())))
        assert restored.current() == first.current()
        assert fed(restored, *history[stop:]) == fed(first, *history[stop:])
        assert restored.on_clock() == first.on_clock()
        assert restored.snapshot() == first.snapshot()


def test_a_configuration_is_a_frozen_value_that_builds_as_many_as_needed(
    kind: GeneratorConfig,
) -> None:
    one, two = kind.build(), kind.build()
    one.advance_to(7)
    assert two.current() is UNKNOWN
    with pytest.raises(FrozenInstanceError):
        kind.inner = None  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["bounded", "ascending", "auto", "marks", "processing", "idle"])
@pytest.mark.parametrize("beyond", [LIMIT, -LIMIT])
def test_a_number_out_of_range_is_refused_and_moves_nothing(name: str, beyond: int) -> None:
    generator = KINDS[name].build()
    with pytest.raises(errors.InputError, match="out of range"):
        generator.advance_to(beyond)
    assert generator.current() is UNKNOWN


def test_an_event_out_of_range_leaves_the_measured_disorder_alone() -> None:
    generator = AutoDisorder().build()
    generator.on_event(100)
    before = generator.snapshot()
    for beyond in (LIMIT, -LIMIT):
        with pytest.raises(errors.InputError, match="out of range"):
            generator.on_event(beyond)
    assert generator.snapshot() == before


# ---- idleness ----


def test_a_quiet_generator_is_idle_exactly_at_the_timeout() -> None:
    clock = ManualClock()
    generator = with_idleness(ascending(), us(1000), clock.now).build()
    generator.on_event(5)
    clock.at = 999
    generator.on_clock()
    assert generator.current() == 5
    clock.at = 1000
    generator.on_clock()
    assert generator.current() is IDLE


def test_one_that_never_had_an_event_is_idle_the_timeout_after_it_was_built() -> None:
    clock = ManualClock(at=500)
    generator = with_idleness(ascending(), us(1000), clock.now).build()
    clock.at = 1499
    generator.on_clock()
    assert generator.current() is UNKNOWN
    clock.at = 1500
    generator.on_clock()
    assert generator.current() is IDLE


@pytest.mark.parametrize(
    "wake", [lambda generator: generator.on_event(3), lambda generator: generator.advance_to(3)]
)
def test_an_idle_generator_is_active_at_the_next_event_or_mark_and_stands_where_it_stood(
    wake: Callable[[WatermarkGenerator], object],
) -> None:
    clock = ManualClock()
    generator = with_idleness(ascending(), us(1000), clock.now).build()
    generator.on_event(5)
    clock.at = 1000
    generator.on_clock()
    assert generator.current() is IDLE
    wake(generator)
    assert generator.current() == 5
    clock.at = 1999
    generator.on_clock()
    assert generator.current() == 5, "the timer starts anew"


def test_idleness_survives_a_restart_but_its_timer_does_not() -> None:
    clock = ManualClock()
    config = with_idleness(ascending(), us(1000), clock.now)
    generator = config.build()
    generator.on_event(5)
    clock.at = 900
    restored = config.build(generator.snapshot())
    clock.at = 1000
    restored.on_clock()
    assert restored.current() == 5, "the time before the restart is no evidence of silence"
    clock.at = 1900
    restored.on_clock()
    assert restored.current() is IDLE
    assert config.build(restored.snapshot()).current() is IDLE


# ---- the guard against the future ----


def test_an_event_from_the_future_moves_nothing() -> None:
    clock = ManualClock(at=1_000)
    generator = with_future_guard(ascending(), us(300), clock.now).build()
    assert generator.on_event(1_301) is None
    assert generator.current() is UNKNOWN
    assert generator.on_event(1_300) == 1_300, "exactly at the limit it counts"
    clock.at = 1_001
    assert generator.on_event(1_301) == 1_301


def test_an_event_from_the_future_does_not_spoil_the_measured_disorder() -> None:
    clock = ManualClock(at=1_000)
    generator = with_future_guard(AutoDisorder(), us(300), clock.now).build()
    assert fed(generator, 900, 9_999, 910) == [900, None, 910]


def test_marks_and_the_clock_pass_the_guard() -> None:
    clock = ManualClock(at=1_000)
    marked = with_future_guard(FedByMarks(), us(300), clock.now).build()
    assert marked.advance_to(5_000) == 5_000
    timed = with_future_guard(ProcessingTime(clock.now), us(300), clock.now).build()
    assert timed.on_clock() == 1_000
