"""Writer marks, generations, cuts over lineage, reader windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.cases.conventions import duration as micros
from tests.cases.conventions import outcome, plain

from tidegate.marks import (
    FLAT,
    Cut,
    Generation,
    Lineage,
    Mark,
    MarkPolicy,
    Standing,
    WriterMark,
    WriterMarks,
    cycle,
    side_of,
)


def cut(position: dict[Any, int]) -> Cut:
    return Cut({str(name): offset for name, offset in position.items()})


class Writers:
    """Family `writer_mark`."""

    def __init__(self) -> None:
        self.writers = WriterMarks()

    def do_note(self, w: str, t: int, pos: dict[Any, int]) -> Any:
        noted = outcome(lambda: self.writers.note(w, t, cut(pos), FLAT))
        return noted if isinstance(noted, str) else "SUCCESS"

    def do_shutdown(self, w: str) -> None:
        self.writers.goodbye(w)

    def do_remove(self, w: str) -> Any:
        return outcome(lambda: self.writers.remove(self._seen(w)))

    def do_remove_with_wrong_mark(self, w: str) -> Any:
        seen = self._seen(w)
        assert isinstance(seen.time, int)
        other = replace(seen, time=seen.time + 1)
        return outcome(lambda: self.writers.remove(other))

    def check_mark(self, w: str) -> Any:
        found = self.writers.get(w)
        return None if found is None else [plain(found.time), found.alive]

    def check_alive(self, w: str) -> bool:
        return self._seen(w).alive

    def _seen(self, w: str) -> WriterMark:
        found = self.writers.get(w)
        assert found is not None
        return found


class WatermarkClient:
    """Family `watermark_client`: one writer against the last mark."""

    def __init__(self) -> None:
        self.state = Generation()
        self.now = 0

    def do_emit(self, lower: int, upper: int) -> None:
        self.state = replace(self.state, last=Mark(lower, upper, Cut()))

    def do_emit_none(self) -> None:
        """A cycle that emits nothing changes nothing."""

    def do_sleep(self, ms: int) -> None:
        self.now += ms

    def check_active(self, t: int, timeout: int) -> bool:
        mark = WriterMark("w", t)
        self.state = self.state.watch([mark], self.now)
        return self.state.standing(mark, self.now, micros(timeout)) is not Standing.OUT

    def check_participating(self, t: int) -> bool:
        return self.state.is_past(t)

    def check_tracked(self) -> bool:
        return "w" in self.state.behind_since


class Controller:
    """Family `pravega_controller`."""

    def __init__(self, timeout: int, epochs: dict[int, list[tuple[str, float, float]]]) -> None:
        self.lineage = Lineage.start([(low, high) for _, low, high in epochs[0]])
        self.policy = MarkPolicy(micros(timeout))
        self.writers = WriterMarks()
        self.state = Generation()
        self.removed = 0
        self.scheduled = True
        for _, segments in sorted(epochs.items())[1:]:
            self._open(segments)

    def do_note(self, w: str, t: int, pos: dict[str, int]) -> Any:
        self.scheduled = True
        noted = outcome(lambda: self.writers.note(w, t, cut(pos), self.lineage))
        return noted if isinstance(noted, str) else "SUCCESS"

    def do_scale(self, epoch: int, segs: list[tuple[str, float, float]]) -> None:
        assert epoch == self.lineage.epoch + 1
        self._open(segs)

    def do_shutdown(self, w: str) -> None:
        self.writers.goodbye(w)

    def do_run(self, now: int) -> Any:
        done = cycle(self.state, self.writers, self.lineage, now=now, policy=self.policy)
        for seen in done.dropped:
            self.writers.remove(seen)
        self.state, self.scheduled = done.state, done.scheduled
        self.removed += len(done.dropped)
        if done.mark is None:
            return None
        return [done.mark.lower, done.mark.upper, dict(done.mark.cut)]

    def check_mark(self, w: str) -> Any:
        found = self.writers.get(w)
        return None if found is None else [plain(found.time), found.alive]

    def check_removed_total(self) -> int:
        return self.removed

    def check_in_bucket(self) -> bool:
        return self.scheduled

    def _open(self, segments: list[tuple[str, float, float]]) -> None:
        """Open these ranges and seal whatever covers the same keys now."""
        low, high = min(s[1] for s in segments), max(s[2] for s in segments)
        here = self.lineage.open_in(self.lineage.epoch)
        sealed = [s.name for s in here if low <= float(s.low) and float(s.high) <= high]
        self.lineage = self.lineage.scale(sealed, [(a, b) for _, a, b in segments])
        opened = [s.name for s in self.lineage.open_in(self.lineage.epoch)]
        assert {name for name, _, _ in segments} <= set(opened)


class ReaderCompare:
    """Family `reader_compare`: segments 0 and 1 are halves; 2 follows 0, and 3 follows 1."""

    LINEAGE = Lineage.start(2).scale(["0.e0"], [(0, "1/2")]).scale(["1.e0"], [("1/2", 1)])
    NAMES = ("0.e0", "1.e0", "2.e1", "3.e2")

    def __init__(self, mark: dict[int, int]) -> None:
        self.mark = self._at(mark)

    def check_cmp(self, pos: dict[int, int]) -> int:
        return int(side_of(self._at(pos), self.mark, self.LINEAGE))

    def _at(self, position: dict[int, int]) -> Cut:
        return Cut({self.NAMES[segment]: offset for segment, offset in position.items()})
