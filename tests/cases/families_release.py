"""Generators, ordered release, and the small pipeline on top of it."""

from __future__ import annotations

from typing import Any

from tests.cases.conventions import START_OF_RELEASE, duration, outcome, plain

from tidegate.eventtime.generators import (
    BoundedDisorder,
    GeneratorConfig,
    Punctuated,
    WithFutureGuard,
    ascending,
)
from tidegate.eventtime.release import OrderedRelease, ReleaseByGenerator, Released
from tidegate.progress import Aggregate, Data, Plan, Tumbling


class Generator:
    """Family `generator`."""

    def __init__(self, type: str, now: int | None = None, skew: int = 0, **options: int) -> None:
        kinds: dict[str, Any] = {
            "bounded": lambda bound: BoundedDisorder(duration(bound)),
            "ascending": ascending,
            "punctuated": lambda every: Punctuated.every(duration(every)),
        }
        config: GeneratorConfig = kinds[type](**options)
        self.now = now
        if now is not None:
            config = WithFutureGuard(config, duration(skew), lambda: self.now or 0)
        self.generator = config.build()

    def do_event(self, ts: int) -> Any:
        return outcome(lambda: self.generator.on_event(ts))

    def do_advance(self, ts: int) -> Any:
        return outcome(lambda: self.generator.advance_to(ts))

    def do_clock(self, now: int) -> None:
        self.now = now

    def check_current(self) -> Any:
        return plain(self.generator.current())


class Release:
    """Family `veloflux_watermark`: `rows` is one batch; out come rows, then the watermark."""

    def __init__(self, tolerance: int) -> None:
        config = ReleaseByGenerator(
            BoundedDisorder(duration(tolerance)), OrderedRelease(watermark=START_OF_RELEASE)
        )
        self.release = config.build()

    def do_rows(self, ts: list[int]) -> Any:
        return self._shown(self.release.push((time, None) for time in ts), "tuples")

    def do_rows_ids(self, rows: list[tuple[int, str]]) -> Any:
        return self._shown(self.release.push(rows), "ids")

    def do_end(self) -> Any:
        return self._shown(self.release.end(), "tuples")

    def check_buffered(self) -> int:
        return self.release.metrics.buffer_size

    def check_late(self) -> int:
        return self.release.metrics.late_count

    @staticmethod
    def _shown(released: Released[Any], word: str) -> Any:
        if not released.rows and released.watermark is None:
            return None
        rows = [row.value if word == "ids" else row.time for row in released.rows]
        return {word: rows, "wm": plain(released.watermark)}


class Pipeline:
    """Family `veloflux_pipeline`: the sum over 10 s tumbling windows, tolerance 7 s, in ms."""

    def __init__(self, size: int = 10_000, tolerance: int = 7_000) -> None:
        self.release = ReleaseByGenerator(BoundedDisorder(duration(tolerance))).build()
        windows = Aggregate(Tumbling(duration(size)), into=sum)
        self.windows = windows.build(Plan())
        self.out: list[Any] = []

    def do_row(self, a: int, ts: int) -> None:
        released = self.release.push([(ts, a)])
        for row in released.rows:
            self.windows.on_data(Data(row.value, row.time))
        if isinstance(released.watermark, int):
            emits = self.windows.on_watermark(released.watermark)
            self.out += [e.message.item.value for e in emits if isinstance(e.message, Data)]

    def check_out(self) -> Any:
        return {"s": self.out.pop(0)} if self.out else None
