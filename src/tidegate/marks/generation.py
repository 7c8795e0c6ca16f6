"""Generations: the mark controller's cycle, without its clock, its leases and its catalog.

Writers past the last mark form the generation; a mark is emitted only when nobody holds it. A
silent writer is dropped `mark_timeout` after a cycle first saw it behind, and all together hold a
mark no longer than that. So while one writer keeps noting, marks keep coming; only a job's sink is
waited for without end.

>>> from tidegate.marks.lineage import Lineage
>>> lineage, policy = Lineage.start(1), MarkPolicy(mark_timeout=timedelta(seconds=10))
>>> fast, slow = WriterMark("fast", 7, Cut({"0.e0": 2})), WriterMark("slow")
>>> first = cycle(Generation(), [fast, slow], lineage, now=0, policy=policy)
>>> first.mark, first.held_by
(None, ('slow',))
>>> later = cycle(first.state, [fast, slow], lineage, now=10_000_000, policy=policy)
>>> later.mark, [mark.writer for mark in later.dropped]
(Mark(lower=7, upper=7, cut=Cut(0.e0=2), writers=frozenset({'fast'})), ['slow'])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import Any

from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.ancestry import Ancestry
from tidegate.marks.cut import Cut, join_all
from tidegate.marks.mark import Mark, combined
from tidegate.marks.writer_mark import WriterMark


class Standing(Enum):
    """Where a writer stands against the last mark."""

    IN = "in"
    """Past it: in the generation."""
    HOLDING = "holding"
    """Behind it, and waited for."""
    WAITING = "waiting"
    """Came, or came back, behind it: waits until it has caught up, and nobody waits for it."""
    OUT = "out"
    """Behind it, and gone: it said goodbye, or was silent for too long."""


@dataclass(frozen=True)
class MarkPolicy:
    """How long a silent writer is waited for, and how long the very first mark."""

    mark_timeout: timedelta
    first_mark_delay: timedelta = timedelta(0)


@dataclass(frozen=True)
class Generation:
    """What a controller remembers of a stream between two cycles; plain data for the catalog.

    `behind_since` says for each writer that is behind when a cycle first saw it there, `held_since`
    when a cycle first held the next mark for one that is no sink. `parting` is where writers stood
    that have left since the last mark. `started_at` is the first cycle of a stream without a mark.
    """

    last: Mark | None = None
    behind_since: Mapping[str, Instant] = field(default_factory=dict)
    held_since: Instant | None = None
    parting: Cut = field(default_factory=Cut)
    started_at: Instant | None = None

    def is_past(self, time: Known) -> bool:
        """Whether a writer that has noted `time` is in the generation."""
        return time is not UNKNOWN and (self.last is None or time > self.last.lower)

    def watch(self, writers: Iterable[WriterMark], now: Instant) -> Generation:
        """Look at all known writers, and note since when each one is behind.

        A clock that steps back makes nobody silent for longer than it was.
        """
        return replace(
            self,
            behind_since={
                mark.writer: min(self.behind_since.get(mark.writer, now), now)
                for mark in writers
                if not self.is_past(mark.time)
            },
        )

    def standing(self, mark: WriterMark, now: Instant, mark_timeout: timedelta) -> Standing:
        """Where a watched writer stands."""
        if self.is_past(mark.time):
            return Standing.IN
        if not mark.alive:
            return Standing.OUT
        if mark.sink:
            return Standing.HOLDING
        if now - self.behind_since.get(mark.writer, now) >= micros(mark_timeout):
            return Standing.OUT
        # Those of the last mark may be silent for a while, and a writer that has just registered
        # has not spoken yet. Anybody else has come too late for the marks to wait.
        member = self.last is not None and mark.writer in self.last.writers
        return Standing.HOLDING if member or mark.time is UNKNOWN else Standing.WAITING

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "last": None if self.last is None else self.last.to_json(),
            "behind_since": dict(self.behind_since),
            "held_since": self.held_since,
            "parting": self.parting.to_json(),
            "started_at": self.started_at,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Generation:
        """The inverse of `to_json`."""
        return Generation(
            last=None if value["last"] is None else Mark.from_json(value["last"]),
            behind_since=dict(value["behind_since"]),
            held_since=value["held_since"],
            parting=Cut.from_json(value["parting"]),
            started_at=value["started_at"],
        )


@dataclass(frozen=True)
class Cycle:
    """What a cycle decided: the new state, a mark to append, records to remove, and who holds."""

    state: Generation
    mark: Mark | None
    dropped: tuple[WriterMark, ...]
    """To be removed if they are still as they were seen: one that has noted since then stays."""
    held_by: tuple[str, ...]
    scheduled: bool
    """Whether a writer is left. Without any the stream leaves the schedule until the next note."""


def cycle(
    state: Generation,
    writers: Iterable[WriterMark],
    lineage: Ancestry,
    *,
    now: Instant,
    policy: MarkPolicy,
) -> Cycle:
    """Run one cycle over all known writers."""
    known = list(writers)
    state = state.watch(known, now)
    stands: dict[Standing, list[WriterMark]] = {standing: [] for standing in Standing}
    for mark in known:
        stands[state.standing(mark, now, policy.mark_timeout)].append(mark)
    state = _parted(state, stands[Standing.OUT], lineage)
    left = len(known) - len(stands[Standing.OUT])
    state = replace(
        state, started_at=_first_seen(state.started_at, now, state.last is None and left)
    )
    ready, holders = stands[Standing.IN], stands[Standing.HOLDING]
    sinks = [mark for mark in holders if mark.sink]
    held_since = _first_seen(state.held_since, now, ready and holders and not sinks)
    if held_since is not None and now - held_since >= micros(policy.mark_timeout):
        # Each of them may have come only now; but somebody may come at any time, and then there
        # would never be a mark. Whoever is passed over is still known, and holds the next one.
        holders = []
    emitted = None
    if ready and not holders and _may_begin(state, now, policy):
        emitted = combined(ready, state.last, lineage, parting=state.parting)
        state = replace(state, last=emitted, parting=Cut(), started_at=None)
    return Cycle(
        state=replace(state, held_since=held_since if emitted is None else None),
        mark=emitted,
        dropped=tuple(stands[Standing.OUT]),
        held_by=tuple(mark.writer for mark in holders),
        scheduled=left > 0,
    )


def _parted(state: Generation, gone: list[WriterMark], lineage: Ancestry) -> Generation:
    """Forget writers, but not where they stood."""
    if not gone:
        return state
    names = {mark.writer for mark in gone}
    return replace(
        state,
        behind_since={name: at for name, at in state.behind_since.items() if name not in names},
        parting=join_all([state.parting, *(mark.position for mark in gone)], lineage),
    )


def _first_seen(before: Instant | None, now: Instant, still: object) -> Instant | None:
    """Since when something is so; a clock that steps back makes it so for no longer."""
    if not still:
        return None
    return now if before is None else min(before, now)


def _may_begin(state: Generation, now: Instant, policy: MarkPolicy) -> bool:
    return state.started_at is None or now - state.started_at >= micros(policy.first_mark_delay)
