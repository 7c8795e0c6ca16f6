"""Families of marks: a writer's record, who takes part, the controller's cycle, the reader's place.

Segments are told by name, `number.eEPOCH`, or by a bare number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tests.cases.conventions import Asked, bare_segments, duration, with_epoch
from tests.cases.family import Family

from tidegate.marks import (
    FLAT,
    Cut,
    Generation,
    Lineage,
    Mark,
    MarkPolicy,
    Side,
    Standing,
    WriterMark,
    WriterMarks,
    cycle,
    side_of,
)

Offsets = Mapping[int | str, int]


def cut(pos: Offsets) -> Cut:
    """A place, by segment."""
    return Cut({str(segment): offset for segment, offset in pos.items()})


def told(record: WriterMark | None, expected: Any) -> Any:
    """A writer's record in the shape a case tells it: its time, [time, alive, position], names."""
    if record is None:
        return None
    facts = [record.time, record.alive, record.position.to_json()]
    if isinstance(expected, list):
        return facts[: len(expected)]
    if isinstance(expected, Mapping):
        return Asked(zip(("t", "alive", "pos"), facts, strict=True))
    return record.time


class Writers(Family):
    """`WriterMarks`: the acceptance rule, goodbye, and removing only what was seen."""

    def __init__(self) -> None:
        self.writers = WriterMarks()

    def do_note(self, w: str, t: int, pos: Offsets) -> None:
        self.writers.note(w, t, cut(pos), FLAT)

    def do_register(self, w: str) -> None:
        self.writers.register(w)

    def do_shutdown(self, w: str) -> None:
        self.writers.goodbye(w)

    def do_remove(self, w: str) -> None:
        self.writers.remove(self.writers.get(w) or WriterMark(w))

    def do_remove_with_wrong_mark(self, w: str) -> None:
        seen = self.writers.get(w) or WriterMark(w)
        self.writers.remove(replace(seen, time=-1))

    def check_mark(self, w: str, expected: Any) -> Any:
        return told(self.writers.get(w), expected)

    def check_alive(self, w: str) -> bool | None:
        record = self.writers.get(w)
        return None if record is None else record.alive


class Client(Family):
    """`Generation`: who is active and who takes part, relative to the last mark.

    A writer has no name in these cases: it is known by its time. `tracked` speaks of the one that
    was asked about last.
    """

    def __init__(self) -> None:
        self.now = 0
        self.state = Generation()
        self.writers: dict[str, WriterMark] = {}
        self.asked = ""

    def do_emit(self, lower: int, upper: int) -> None:
        self.state = replace(self.state, last=Mark(lower, upper, Cut()))

    def do_emit_none(self) -> None:
        self.state = self.state.watch(self.writers.values(), self.now)

    def do_sleep(self, ms: int) -> None:
        self.now += ms

    def check_active(self, t: int, timeout: int) -> bool:
        self.asked = str(t)
        mark = self.writers[self.asked] = WriterMark(self.asked, t)
        self.state = self.state.watch(self.writers.values(), self.now)
        return self.state.standing(mark, self.now, duration(timeout)) is not Standing.OUT

    def check_participating(self, t: int) -> bool:
        return self.state.is_past(t)

    def check_tracked(self, t: int | None = None) -> bool:
        return (self.asked if t is None else str(t)) in self.state.behind_since

    def check_previous(self) -> list[int] | None:
        last = self.state.last
        return None if last is None else [last.lower, last.upper]


class Controller(Family):
    """`cycle` over writers and a lineage, with its state kept as plain data between cycles."""

    def __init__(self, timeout: int, epochs: Mapping[int, list[list[Any]]]) -> None:
        self.policy = MarkPolicy(duration(timeout))
        self.writers = WriterMarks()
        self.state = Generation().to_json()
        self.removed = 0
        self.scheduled = False
        lineage: Lineage | None = None
        for epoch, rows in sorted(epochs.items()):
            lineage = with_epoch(lineage, epoch, rows)
        assert lineage is not None, "a stream has an epoch"
        self.lineage = lineage

    def do_note(self, w: str, t: int, pos: Offsets) -> None:
        self.writers.note(w, t, cut(pos), self.lineage)
        self.scheduled = True

    def do_register(self, w: str) -> None:
        self.writers.register(w)
        self.scheduled = True

    def do_shutdown(self, w: str) -> None:
        self.writers.goodbye(w)

    def do_scale(self, epoch: int, segs: list[list[Any]]) -> None:
        self.lineage = with_epoch(self.lineage, epoch, segs)

    def do_run(self, now: int) -> list[Any] | None:
        state = Generation.from_json(self.state)
        done = cycle(state, self.writers, self.lineage, now=now, policy=self.policy)
        self.state = done.state.to_json()
        for seen in done.dropped:
            self.writers.remove(seen)
        self.removed += len(done.dropped)
        self.scheduled = done.scheduled
        if done.mark is None:
            return None
        return [done.mark.lower, done.mark.upper, done.mark.cut.to_json()]

    def check_mark(self, w: str, expected: Any) -> Any:
        return told(self.writers.get(w), expected)

    def check_removed_total(self) -> int:
        return self.removed

    def check_in_bucket(self) -> bool:
        return self.scheduled

    def check_writers(self) -> list[str]:
        return sorted(mark.writer for mark in self.writers)


class ReaderCompare(Family):
    """`side_of`: a reader's place beside the cut of a mark."""

    def __init__(self, mark: Mapping[int, int]) -> None:
        self.mark = mark

    def check_cmp(self, pos: Mapping[int, int]) -> Side:
        lineage, names = bare_segments(1 + max([*self.mark, *pos, 1]))
        here, there = (
            Cut({names[number]: offset for number, offset in place.items()})
            for place in (pos, self.mark)
        )
        return Side(int(side_of(here, there, lineage)))


FAMILIES: Final[Mapping[str, type[Family]]] = {
    "writer_mark": Writers,
    "watermark_client": Client,
    "pravega_controller": Controller,
    "reader_compare": ReaderCompare,
}
