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
from tidegate.planning.facts import Flags, Numbers
from tidegate.planning.idleness import idle_partitions
from tidegate.planning.pace import Hindrance
from tidegate.planning.policy import Strategy
from tidegate.planning.reading import Reading
from tidegate.planning.roster import still_to_come
from tidegate.planning.watermarks import (
    choose_strategy,
    clock_number,
    events_numbers,
    passed_mark,
)

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
    strategy = choose_strategy(reading.state, reading.facts, reading.policy)
    state = replace(reading.state, strategy=strategy)
    if strategy is Strategy.EVENTS:
        return _by_events(replace(reading, state=events_numbers(state, reading.policy)))
    if strategy is Strategy.MARKS:
        number = passed_mark(
            reading.facts.marks,
            state.cut(),
            still_to_come(state.names, reading.facts.partitions),
        )
        unwritten = not reading.facts.writers
    else:
        number = clock_number(now, cap, reading.waiting_from(), grid)
        unwritten = False
    number = later(state.stream_number, number)
    state = replace(state, stream_number=number, unwritten=unwritten)
    return Standing(
        replace(reading, state=state),
        (),
        np.array([0 if number is UNKNOWN else number], dtype=np.int64),
        np.array([number is not UNKNOWN]),
        np.array([unwritten or _ended(reading)]),
    )


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
    here = state.present
    return Standing(
        replace(reading, state=state),
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
        return _held_by_writer(reading)
    if reading.state.strategy is Strategy.PROCESSING:
        return Hold(reading.name, Reason.CLOCK)
    unknown = active & ~standing.known
    lowest = np.where(active, standing.number, np.iinfo(np.int64).max)
    slot = int(np.argmax(unknown)) if unknown.any() else int(np.argmin(lowest))
    row = int(np.flatnonzero(reading.state.present)[slot])
    partition = reading.state.names[row]
    hindrance = Hindrance(int(reading.hindrance[row]))
    if hindrance is not Hindrance.NONE:
        why = reading.facts.partitions.unreadable.get(partition, "")
        return Hold(reading.name, _REASONS[hindrance], partition, detail=why)
    if reading.of_facts(reading.facts.partitions.sealed)[row]:
        return Hold(reading.name, Reason.SEALED, partition)
    reason = Reason.LATEST if standing.known[slot] else Reason.NO_DATA
    return Hold(reading.name, reason, partition)


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
