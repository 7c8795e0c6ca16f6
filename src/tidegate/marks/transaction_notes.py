"""Notes beside open transactions: when a promise begins to count.

The rows of an open transaction get their offsets when it commits. So a note counts from the moment
no transaction of the writer that was begun before it is open, with the writer's position at *that*
moment. A commit may carry a time: it is a note like any other, but one below the writer's highest
does not raise: the highest stands.

>>> from tidegate.marks.ancestry import FLAT
>>> notes = WriterNotes(WriterMark("shop-eu")).begin("t1").note(100, Cut({"0": 4}), FLAT)
>>> notes.mark.time                                # t1 may still bring rows before 100
UNKNOWN
>>> notes = notes.begin("t2").commit("t1", Cut({"0": 9}), FLAT)
>>> notes.mark.time, notes.mark.position           # t2 was begun after the note
(100, Cut(0=9))
>>> notes.commit("t2", Cut({"0": 12}), FLAT, time=50).mark.time
100
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.marks.ancestry import Ancestry
from tidegate.marks.cut import Cut
from tidegate.marks.writer_mark import WriterMark


@dataclass(frozen=True)
class WriterNotes:
    """One writer's mark, its open transactions, and the notes that wait for some of them.

    Transactions are numbered as they begin. A waiting note is (how many had begun, time); both grow
    along the list.
    """

    mark: WriterMark
    begun: int = 0
    open: Mapping[str, int] = field(default_factory=dict)
    waiting: tuple[tuple[int, Instant], ...] = ()

    @property
    def highest(self) -> Known:
        """The highest time noted so far, whether it counts already or not."""
        return self.waiting[-1][1] if self.waiting else self.mark.time

    def begin(self, transaction: str) -> WriterNotes:
        """Open a transaction."""
        if transaction in self.open:
            raise errors.transaction_begun_twice(self.mark.writer, transaction)
        begun = self.begun + 1
        return replace(self, begun=begun, open={**self.open, transaction: begun})

    def note(self, time: Instant, position: Cut, lineage: Ancestry) -> WriterNotes:
        """Note time, by hand or by the clock, while the writer stands at `position`."""
        if self.highest is not UNKNOWN and time < self.highest:
            raise errors.time_went_back(f'writer "{self.mark.writer}"', self.highest, time)
        return self._noted(time)._settled(position, lineage)

    def commit(
        self, transaction: str, position: Cut, lineage: Ancestry, *, time: Instant | None = None
    ) -> WriterNotes:
        """Commit, and stand at `position` after it; with a time, note that too."""
        closed = self._closed(transaction)
        if time is not None and later(self.highest, time) == time:
            closed = closed._noted(time)
        return closed._settled(position, lineage)

    def abort(self, transaction: str, position: Cut, lineage: Ancestry) -> WriterNotes:
        """Abort, or time out: its rows never come, and nobody waits for them any more."""
        return self._closed(transaction)._settled(position, lineage)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "mark": self.mark.to_json(),
            "begun": self.begun,
            "open": dict(self.open),
            "waiting": [list(note) for note in self.waiting],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> WriterNotes:
        """The inverse of `to_json`."""
        return WriterNotes(
            mark=WriterMark.from_json(value["mark"]),
            begun=value["begun"],
            open=dict(value["open"]),
            waiting=tuple((begun, time) for begun, time in value["waiting"]),
        )

    def _closed(self, transaction: str) -> WriterNotes:
        if transaction not in self.open:
            raise errors.transaction_not_open(self.mark.writer, transaction, self.open)
        return replace(self, open={name: n for name, n in self.open.items() if name != transaction})

    def _noted(self, time: Instant) -> WriterNotes:
        earlier = tuple(note for note in self.waiting if note[0] < self.begun)
        return replace(self, waiting=(*earlier, (self.begun, checked(time))))

    def _settled(self, position: Cut, lineage: Ancestry) -> WriterNotes:
        """Let those notes count that wait for nobody any more."""
        oldest = min(self.open.values(), default=self.begun + 1)
        due = [time for begun, time in self.waiting if begun < oldest]
        if not due:
            return self
        return replace(
            self,
            mark=self.mark.note(due[-1], position, lineage),
            waiting=self.waiting[len(due) :],
        )
