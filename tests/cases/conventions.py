"""The few places where the convention of a case differs from ours: one table.

The cases are numbers from other systems, and those disagree with us, and with each other, on how to
say some things. Every such place is a row of `CONVENTIONS`, and what a row says is done by what it
names and nowhere else: a family compares with `agrees`, or reads a value with one of the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tidegate.errors import TidegateError
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.marks import Lineage, Segment, SegmentId


class Convention(NamedTuple):
    """One place: which families, how a case says it, how we say it, and what reads it."""

    families: tuple[str, ...]
    theirs: str
    ours: str
    read_by: object


# ---- comparing ----

UNKNOWN_TO_THEM: Final = (None, "MIN", -(2**63))
NOTHING_TO_THEM: Final[tuple[Any, ...]] = (None, "ok", "SUCCESS", [])

ERRORS: Final[Mapping[str, str]] = {
    "exists": "partition-exists",
    "unknown": "unknown-partition",
    "unknown_partition": "unknown-partition",
    "unknown_source": "unknown-source",
    "out_of_range": "partition-out-of-range",
    "unknown_core": "unknown-core",
    "unknown_writer": "unknown-writer",
    "conflict": "writer-mark-changed",
    "going_back": "time-went-back",
    "INVALID_TIME": "time-went-back",
    "INVALID_POSITION": "position-went-back",
}
"""What a case calls an error, and our code for it; any other name is our code itself."""

NOT_THERE: Final = {
    "unknown-core",
    "unknown-member",
    "unknown-partition",
    "unknown-source",
    "partition-out-of-range",
}


class Refusal(NamedTuple):
    """What a step came to when it raised one of our errors."""

    error: TidegateError
    asked: bool
    """Whether it was a question, and not an act."""


class Either(NamedTuple):
    """What we say, and what the same thing is by the convention of a case."""

    ours: Any
    theirs: Any


class Asked(dict[str, Any]):
    """Facts by name, of which a case compares those that it names."""


def agrees(theirs: Any, ours: Any) -> bool:
    """Whether what a case expects is what we say.

    >>> agrees("MIN", UNKNOWN), agrees(None, UNKNOWN), agrees(0, UNKNOWN), agrees("MIN", None)
    (True, True, False, False)
    >>> agrees({"total": 4}, Asked(total=4, idle=1)), agrees([1, None], (1, UNKNOWN))
    (True, True)
    >>> agrees("ok", None), agrees(None, []), agrees(True, 4000), agrees(False, 4000)
    (True, True, True, False)
    """
    if isinstance(ours, Either):
        return agrees(theirs, ours.ours) or agrees(theirs, ours.theirs)
    if isinstance(ours, Refusal):
        return refuses(theirs, ours)
    if ours is UNKNOWN:
        return theirs in UNKNOWN_TO_THEM
    if ours is None or ours == []:
        return theirs is False or theirs in NOTHING_TO_THEM
    if isinstance(theirs, bool) and not isinstance(ours, bool):
        return theirs
    if isinstance(ours, Enum):
        return theirs == ours.value or (isinstance(theirs, str) and theirs.lower() == ours.value)
    if isinstance(ours, Asked):
        return isinstance(theirs, Mapping) and all(
            name in ours and agrees(value, ours[name]) for name, value in theirs.items()
        )
    if isinstance(ours, list | tuple) and isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(agrees, theirs, ours))
    return bool(theirs == ours)


def refuses(theirs: Any, ours: Refusal) -> bool:
    """Whether a case expects this error, or expects nothing where nobody is there to ask."""
    if theirs is None:
        return ours.asked and ours.error.code in NOT_THERE
    if not isinstance(theirs, str):
        return False
    name = theirs.removeprefix("error:")
    return ours.error.code == ERRORS.get(name, name.replace("_", "-"))


# ---- times ----


def duration(units: int | float) -> timedelta:
    """A duration of a case: its unit, whatever it is, is our microsecond."""
    return timedelta(microseconds=units)


def from_zero(watermark: Instant | None) -> Instant | Either | None:
    """A watermark where times begin at 0: before that it is not emitted, at it, perhaps not."""
    if watermark is None or watermark > 0:
        return watermark
    return Either(watermark, None) if watermark == 0 else None


def frontier_at_zero(frontier: Known) -> Known | Either:
    """A frontier that they begin at 0."""
    return Either(UNKNOWN, 0) if frontier is UNKNOWN else frontier


def asked_at_zero(frontier: Known, *, ours: bool, theirs: bool) -> bool | Either:
    """A question to a frontier that they begin at 0: for us it is before every time."""
    return Either(ours, theirs) if frontier is UNKNOWN else ours


class LaneValue:
    """A lane's value: ours is about the partitions it has now, and so it may go back.

    In some cases it does too, in others the highest stands and nothing is returned. The global one
    goes back for nobody.
    """

    def __init__(self) -> None:
        self._highest: Known = UNKNOWN

    def told(self, now: Known) -> Known | Either:
        """The value, or the highest where it has gone back."""
        self._highest = later(self._highest, now)
        return now if now == self._highest else Either(now, self._highest)

    def moved(self, now: Known | None) -> Known | Either | None:
        """What an update returned; where that went back they return nothing."""
        if now is None or now is UNKNOWN or later(self._highest, now) == now:
            return now
        return Either(now, None)


# ---- places ----


def bare_segments(count: int) -> tuple[Lineage, list[str]]:
    """The lineage behind bare segment numbers, and their names: each follows the one two before.

    >>> bare_segments(4)[1]
    ['0.e0', '1.e0', '2.e1', '3.e2']
    """
    lineage = Lineage.start(2)
    names = ["0.e0", "1.e0"]
    for number in range(2, count):
        before = lineage.segment(names[number - 2])
        lineage = lineage.scale([before.name], [(before.low, before.high)])
        names.append(f"{number}.e{number - 1}")
    return lineage, names


def with_epoch(lineage: Lineage | None, epoch: int, rows: list[list[Any]]) -> Lineage:
    """A lineage with one epoch more, told as [name, low, high].

    They list what is open in an epoch, or what is new in it; what is sealed follows from the key
    ranges. Their ends are floats, and we take them exactly.
    """
    known = {} if lineage is None else lineage.segments
    fresh = [
        Segment(SegmentId.parse(name), Fraction(low), Fraction(high))
        for name, low, high in rows
        if name not in known
    ]
    kept = [
        Segment(old.id, old.low, old.high, sealed_in=epoch)
        if old.is_open and any(new.low < old.high and old.low < new.high for new in fresh)
        else old
        for old in known.values()
    ]
    return Lineage([*kept, *fresh])


HASHES: Final[Mapping[str, Callable[[tuple[int, int]], int]]] = {
    "crc32 of 'trader,symbol'": lambda key: zlib.crc32(b"%d,%d" % key),
    "Python's hash of (trader, symbol)": hash,
}
"""The hashes of a key that a case of the headline may have used; the first is that of the demo."""


# ---- the table ----

CONVENTIONS: Final = (
    Convention(
        ("all",),
        "times are milliseconds, seconds or plain integers",
        "microseconds; the numbers are taken one to one",
        duration,
    ),
    Convention(
        ("all",),
        "null, MIN or the smallest integer where nothing is known yet",
        "UNKNOWN",
        UNKNOWN_TO_THEM,
    ),
    Convention(
        ("all",),
        "null, ok, SUCCESS or false where nothing came of a step; true where something moved",
        "None or an empty list; the number that moved",
        NOTHING_TO_THEM,
    ),
    Convention(
        ("all",),
        "error:<name>, INVALID_TIME, INVALID_POSITION; null when asked of who is not there",
        "an error with a code, raised by every call on what is not registered",
        ERRORS,
    ),
    Convention(
        ("core_state",),
        "a lane's value that may go back: some let it, some keep the highest and return nothing",
        "it is about the partitions of the lane now, and goes back; the global one never does",
        LaneValue,
    ),
    Convention(
        ("frontier",), "a frontier is 0 before its first advance", "UNKNOWN", frontier_at_zero
    ),
    Convention(
        ("frontier",),
        "less_than(0), asked before the first advance, is false",
        "UNKNOWN is before every time: it is true",
        asked_at_zero,
    ),
    Convention(
        ("veloflux_watermark",),
        "times begin at 0, so no watermark before that is emitted",
        "instants may be negative",
        from_zero,
    ),
    Convention(
        ("watermark_client",),
        "a writer has no name, but a time",
        "writers have names: the time is taken for one",
        str,
    ),
    Convention(
        ("reader_compare",),
        "segments are bare numbers, of which 2 follows 0 and 3 follows 1",
        "number.eEPOCH, in a lineage",
        bare_segments,
    ),
    Convention(
        ("pravega_controller",),
        "an epoch is a list of segments, with floats for key ranges",
        "a lineage with exact ranges, in which an epoch names what it seals",
        with_epoch,
    ),
    Convention(
        ("partition_batched",),
        "rows go to partitions by a hash of their key that is not named",
        "the numbers must hold exactly for one of ours; where they do not, nearly",
        HASHES,
    ),
)
