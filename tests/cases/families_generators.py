"""The family of generators: bounded disorder, ascending, punctuated, the clock, wrappers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.cases.conventions import duration
from tests.cases.family import Family

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
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import IDLE, Watermark
from tidegate.testing import ManualClock


class Generator(Family):
    """Any generator, with the wrappers a case asks for."""

    def __init__(
        self,
        type: str,
        bound: int = 0,
        every: int = 1,
        now: int = 0,
        skew: int | None = None,
        idle_timeout: int | None = None,
    ) -> None:
        self.clock = ManualClock(at=now)
        kinds: dict[str, GeneratorConfig] = {
            "bounded": BoundedDisorder(duration(bound)),
            "ascending": ascending(),
            "auto": AutoDisorder(),
            "punctuated": Punctuated.every(duration(every)),
            "processing": ProcessingTime(self.clock.now),
            "marks": FedByMarks(),
        }
        assert type in kinds, f"no type {type!r}; there are: {', '.join(kinds)}"
        self.config = kinds[type]
        if skew is not None:
            self.config = with_future_guard(self.config, duration(skew), self.clock.now)
        if idle_timeout is not None:
            self.config = with_idleness(self.config, duration(idle_timeout), self.clock.now)
        self.generator: WatermarkGenerator = self.config.build()

    def do_event(self, ts: int, now: int | None = None) -> Instant | None:
        self.clock.at = self.clock.at if now is None else now
        return self.generator.on_event(ts)

    def do_advance(self, ts: int) -> Instant | None:
        return self.generator.advance_to(ts)

    def do_clock(self, now: int | None = None) -> Instant | None:
        self.clock.at = self.clock.at if now is None else now
        return self.generator.on_clock()

    do_periodic = do_clock

    def do_sleep(self, ms: int) -> None:
        self.clock.advance(duration(ms))

    def do_restart(self) -> None:
        self.generator = self.config.build(self.generator.snapshot())

    def check_current(self) -> Watermark:
        return self.generator.current()

    def check_is_idle(self) -> bool:
        return self.generator.current() is IDLE


FAMILIES: Final[Mapping[str, type[Family]]] = {"generator": Generator}
