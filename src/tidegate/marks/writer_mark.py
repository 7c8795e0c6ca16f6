"""The writer mark: how far one writer has promised, and where it stood when it did.

A writer that notes time t promises no later row before t. Its time never goes back, and its
position not on any segment it has noted before; an equal time may be noted again. Whoever changes
the mark says which one it has seen: two processes with one writer id cannot corrupt it.

>>> writers = WriterMarks()
>>> writers.note("shop-eu", 10, Cut({"0": 5, "1": 5}), FLAT)
WriterMark(writer='shop-eu', time=10, position=Cut(0=5, 1=5), alive=True, sink=False)
>>> writers.note("shop-eu", 11, Cut({"1": 6}), FLAT).position     # what is left out stands
Cut(0=5, 1=6)
>>> writers.goodbye("shop-eu").alive
False
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked
from tidegate.eventtime.watermark import UNKNOWN, Known, from_json, to_json
from tidegate.marks.ancestry import FLAT, Ancestry
from tidegate.marks.cut import Cut


@dataclass(frozen=True)
class WriterMark:
    """One writer's record. UNKNOWN: it is registered to note time, and has not yet.

    `sink` is the writer of a job, which is waited for until it says goodbye. A writer that is not
    `alive` has said goodbye: nothing more comes from it.
    """

    writer: str
    time: Known = UNKNOWN
    position: Cut = field(default_factory=Cut)
    alive: bool = True
    sink: bool = False

    def note(self, time: Instant, position: Cut, lineage: Ancestry) -> WriterMark:
        """The record after a note.

        Positions add up, because a note may name only the segments it touched, while the promise
        speaks of all rows. Noting brings a writer that said goodbye back to life.
        """
        if self.time is not UNKNOWN and time < self.time:
            raise errors.time_went_back(f'writer "{self.writer}"', self.time, time)
        return replace(
            self, time=checked(time), position=self._moved(position, lineage), alive=True
        )

    def goodbye(self, position: Cut | None = None, lineage: Ancestry = FLAT) -> WriterMark:
        """The record after a graceful end; `position` if rows followed the last note."""
        moved = self.position if position is None else self._moved(position, lineage)
        return replace(self, position=moved, alive=False)

    def _moved(self, position: Cut, lineage: Ancestry) -> Cut:
        for name, offset in position.items():
            if offset < self.position.get(name, 0):
                raise errors.position_went_back(self.writer, name, self.position[name], offset)
        return self.position.join(position, lineage)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "writer": self.writer,
            "time": to_json(self.time),
            "position": self.position.to_json(),
            "alive": self.alive,
            "sink": self.sink,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> WriterMark:
        """The inverse of `to_json`."""
        time = from_json(value["time"])
        return WriterMark(
            writer=value["writer"],
            time=time if isinstance(time, int) else UNKNOWN,
            position=Cut.from_json(value["position"]),
            alive=value["alive"],
            sink=value["sink"],
        )


class WriterMarks:
    """The known writers of one stream. A stream with none is in no controller's schedule.

    Not thread safe: the caller holds the lock.
    """

    __slots__ = ("_marks",)

    def __init__(self, marks: Iterable[WriterMark] = ()) -> None:
        self._marks = {mark.writer: mark for mark in marks}

    def get(self, writer: str) -> WriterMark | None:
        """The writer's record, if it is known."""
        return self._marks.get(writer)

    def __iter__(self) -> Iterator[WriterMark]:
        return iter(self._marks.values())

    def __len__(self) -> int:
        return len(self._marks)

    def register(self, writer: str, *, sink: bool = False) -> WriterMark:
        """A writer that will note time has opened; what it noted before stands."""
        known = self._marks.get(writer, WriterMark(writer))
        return self._put(replace(known, alive=True, sink=sink or known.sink))

    def note(self, writer: str, time: Instant, position: Cut, lineage: Ancestry) -> WriterMark:
        """Note time; a writer that was not known is from now on."""
        known = self._marks.get(writer, WriterMark(writer))
        return self._put(known.note(time, position, lineage))

    def goodbye(
        self, writer: str, position: Cut | None = None, lineage: Ancestry = FLAT
    ) -> WriterMark:
        """The writer has closed; it stays known until the marks have passed what it noted."""
        known = self._marks.get(writer)
        if known is None:
            raise errors.unknown_writer(writer, self._marks)
        return self._put(known.goodbye(position, lineage))

    def remove(self, seen: WriterMark) -> None:
        """Forget a writer, if its record is still the one that was seen."""
        found = self._marks.get(seen.writer)
        if found != seen:
            raise errors.writer_mark_changed(
                seen.writer, seen.time, None if found is None else found.time
            )
        del self._marks[seen.writer]

    def _put(self, mark: WriterMark) -> WriterMark:
        self._marks[mark.writer] = mark
        return mark
