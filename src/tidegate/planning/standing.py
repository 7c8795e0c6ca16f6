"""Standing: what a stream says to the merge, and who holds it back.

A stream that is followed by its events has a number per partition; one that is read by marks or by
the clock has one for all of it. The same columns tell who holds the watermark, and why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.planning.batch import Hold, Reason
from tidegate.planning.facts import Flags, Numbers, Offsets
from tidegate.planning.idleness import empty_stream_idle, idle_partitions
from tidegate.planning.pace import Hindrance
from tidegate.planning.policy import Strategy
from tidegate.planning.reading import Reading
from tidegate.planning.roster import still_to_come
from tidegate.planning.watermarks import clock_number, events_numbers, passed_marks

_REASONS = {
    Hindrance.BEHIND: Reason.BEHIND,
    Hindrance.THROTTLED: Reason.THROTTLED,
    Hindrance.ALIGNED: Reason.ALIGNED,
    Hindrance.PAUSED: Reason.PAUSED,
    Hindrance.UNREADABLE: Reason.UNREADABLE,
}


@dataclass(frozen=True, eq=False)
class Standing:
    """What a stream brings into the merge: a row per name, or, without names, one for all."""

    reading: Reading
    names: tuple[str, ...]
    number: Numbers
    known: Flags
    idle: Flags

    @property
    def ended(self) -> bool:
        """Whether every partition has ended and been read to its end."""
        return _ended(self.reading)


def take_stand(reading: Reading, now: Instant, cap: Known, grid: int) -> Standing:
    """Find a stream's numbers and who is idle; `cap` is where a clock would change nothing."""
    state = reading.state
    if state.strategy is Strategy.EVENTS:
        return _by_events(replace(reading, state=events_numbers(state, reading.policy)))
    number: Known = UNKNOWN
    unwritten = False
    if state.strategy is Strategy.MARKS:
        if passed := _passed(reading):
            number = reading.facts.marks[passed - 1].lower
        unwritten = not reading.facts.writers
    else:
        number = clock_number(now, cap, reading.waiting_from(), grid)
    number = later(state.stream_number, number)
    reading = replace(reading, state=replace(state, stream_number=number, unwritten=unwritten))
    # What lies unread may still be early, whoever is left to write more; a sealed partition that is
    # still here has successors that are not read.
    read_up = reading.at_end & ~reading.of_facts(reading.facts.partitions.sealed)
    read = bool((read_up | ~state.present).all())
    return _for_all(reading, number, idle=(unwritten and read) or _ended(reading))


def _for_all(reading: Reading, number: Known, *, idle: bool) -> Standing:
    """One row for the whole stream."""
    return Standing(
        reading,
        (),
        np.array([0 if number is UNKNOWN else number], dtype=np.int64),
        np.array([number is not UNKNOWN]),
        np.array([idle]),
    )


def _passed(reading: Reading) -> int:
    to_come = still_to_come(reading.state.names, reading.facts.partitions)
    return passed_marks(reading.facts.marks, reading.state.cut(), to_come)


def _ended(reading: Reading) -> bool:
    return len(reading.over) > 0 and bool(reading.over.all())


def _by_events(reading: Reading) -> Standing:
    state, partitions = reading.state, reading.facts.partitions
    candidates = np.zeros(len(partitions), dtype=np.bool_)
    at_end = reading.at_end & ~reading.of_facts(partitions.sealed)
    candidates[reading.place[at_end]] = True
    judged = idle_partitions(reading.facts, candidates, reading.policy.idle_after)
    idle = at_end & (state.idle | reading.of_facts(judged))
    state = replace(state, idle=idle)
    reading = replace(reading, state=state)
    if not state.names:
        idle_stream = empty_stream_idle(reading.facts, reading.policy.idle_after)
        return _for_all(reading, UNKNOWN, idle=idle_stream)
    here = state.present
    return Standing(
        reading,
        state.names if here.all() else tuple(state.names[i] for i in np.flatnonzero(here)),
        state.number[here],
        state.known[here],
        (idle | reading.over)[here],
    )


def find_hold(standing: Standing) -> Hold | None:
    """Who holds the stream's watermark, and why; None when nobody waits for the stream."""
    reading = standing.reading
    active = ~standing.idle
    if not active.any():
        return None
    if reading.state.strategy is Strategy.MARKS:
        return _held_by_reading(reading) or _held_by_writer(reading)
    if reading.state.strategy is Strategy.PROCESSING:
        return Hold(reading.name, Reason.CLOCK)
    if not standing.names:
        return Hold(reading.name, Reason.NO_DATA)
    unknown = active & ~standing.known
    lowest = np.where(active, standing.number, np.iinfo(np.int64).max)
    slot = int(np.argmax(unknown)) if unknown.any() else int(np.argmin(lowest))
    row = int(np.flatnonzero(reading.state.present)[slot])
    if hold := _hindered_or_sealed(reading, row):
        return hold
    reason = Reason.LATEST if standing.known[slot] else Reason.NO_DATA
    return Hold(reading.name, reason, reading.state.names[row])


def _hindered_or_sealed(reading: Reading, row: int) -> Hold | None:
    """Why a partition is not read on, if it is the planner's doing."""
    partition = reading.state.names[row]
    hindrance = Hindrance(int(reading.hindrance[row]))
    if hindrance is not Hindrance.NONE:
        why = reading.why.get(partition, "")
        return Hold(reading.name, _REASONS[hindrance], partition, detail=why)
    if reading.of_facts(reading.facts.partitions.sealed)[row]:
        return Hold(reading.name, Reason.SEALED, partition)
    return None


def _held_by_reading(reading: Reading) -> Hold | None:
    """A partition that is short of the next mark, or, when nobody writes any more, of its end."""
    marks, passed, state = reading.facts.marks, _passed(reading), reading.state
    goal: Offsets = dict(zip(state.names, reading.latest.tolist(), strict=True))
    if passed < len(marks):
        goal = marks[passed].cut
    elif reading.facts.writers:
        return None
    short = [i for i, name in enumerate(state.names) if state.position[i] < goal.get(name, 0)]
    # If none is short, the mark is about partitions that those which are sealed give way to.
    sealed = reading.of_facts(reading.facts.partitions.sealed)
    found = (_hindered_or_sealed(reading, row) for row in short or np.flatnonzero(sealed).tolist())
    return next((hold for hold in found if hold is not None), None)


def _held_by_writer(reading: Reading) -> Hold | None:
    """The writer whose last note is the earliest; one that has not noted anything comes first."""
    writers = reading.facts.writers
    if not writers:
        return None
    silent = [writer for writer in writers if writer.noted is UNKNOWN]
    slowest = silent[0] if silent else min(writers, key=lambda w: _instant(w.noted))
    detail = "it has not noted a time yet" if silent else f"it has noted {slowest.noted}"
    return Hold(reading.name, Reason.MARKS, writer=slowest.name, detail=detail)


def _instant(value: Known) -> Instant:
    assert value is not UNKNOWN
    return value
