"""The planner's state: all that a query must remember between two plans.

It is plain JSON and travels in Spark's checkpointed offset, so recovery is Spark's. What there is
per partition is packed into one compressed string, for Spark keeps offsets many times over. States
are values: a plan that moves nothing returns the state it was given, the very object.

>>> state = PlannerState.fresh("q1", ["orders"])
>>> PlannerState.from_json(state.to_json()).same_as(state)
True
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

import numpy as np

from tidegate import errors
from tidegate.eventtime.watermark import UNKNOWN, Known, from_json, to_json
from tidegate.planning.facts import Flags, Numbers, Offsets, flags, numbers
from tidegate.planning.policy import Strategy

VERSION: Final = 1

_NUMBERS: Final = ("position", "number", "max_seen")
_FLAGS: Final = ("known", "seen", "idle", "present")


class Latecomer(NamedTuple):
    """Offsets [start, end) of a partition that came when everything before `since` was closed."""

    partition: str
    start: int
    end: int
    since: int


@dataclass(frozen=True, eq=False)
class StreamState:
    """One stream: a row per partition that is in the merge, or was and may come back.

    `position` is the end of what has been planned. `number` (where `known`) is the partition's N,
    `max_seen` (where `seen`) its largest event time. A partition that is not `present` has
    vanished; its position is kept, so that nothing is read twice when it returns.
    """

    names: tuple[str, ...] = ()
    position: Numbers = field(default_factory=numbers)
    number: Numbers = field(default_factory=numbers)
    max_seen: Numbers = field(default_factory=numbers)
    known: Flags = field(default_factory=flags)
    seen: Flags = field(default_factory=flags)
    idle: Flags = field(default_factory=flags)
    present: Flags = field(default_factory=flags)
    started: bool = False
    start_cut: Offsets = field(default_factory=dict)
    strategy: Strategy | None = None
    stream_number: Known = UNKNOWN
    """N of the whole stream, where it is read by marks or by the clock."""
    unwritten: bool = False
    """Read by marks, and no known writer is left: nobody waits for it."""
    highest: Known = UNKNOWN
    """The largest event time seen in the stream."""
    disorder: int = 0
    """The largest disorder the log has recorded so far."""
    late_cut: Offsets | None = None
    """The cut at which A was reached: what lies below A behind it has not been given out.

    None where such rows do not wait for the next release.
    """
    latecomers: tuple[Latecomer, ...] = ()
    """In a full join: where rows lie that came after what they would have met; the recent ones."""

    def cut(self) -> dict[str, int]:
        """The end of what has been planned, as a cut."""
        return dict(zip(self.names, self.position.tolist(), strict=True))

    def same_as(self, other: StreamState) -> bool:
        """Whether the two say the same."""
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in (
                (getattr(self, f.name), getattr(other, f.name)) for f in fields(StreamState)
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "partitions": _pack(self),
            "started": self.started,
            "start_cut": _pack_text(self.start_cut),
            "strategy": self.strategy.value if self.strategy else None,
            "stream_number": to_json(self.stream_number),
            "unwritten": self.unwritten,
            "highest": to_json(self.highest),
            "disorder": self.disorder,
            "late_cut": _pack_text(self.late_cut),
            **({"latecomers": _pack_text(self.latecomers)} if self.latecomers else {}),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> StreamState:
        """The inverse of `to_json`."""
        return replace(
            _unpack(value["partitions"]),
            started=value["started"],
            start_cut=_unpack_text(value["start_cut"]),
            strategy=Strategy(value["strategy"]) if value["strategy"] else None,
            stream_number=_known(value["stream_number"]),
            unwritten=value["unwritten"],
            highest=_known(value["highest"]),
            disorder=value["disorder"],
            late_cut=_unpack_text(value["late_cut"]),
            latecomers=tuple(Latecomer(*one) for one in _unpack_text(value["latecomers"]))
            if "latecomers" in value
            else (),
        )


@dataclass(frozen=True, eq=False)
class PlannerState:
    """The whole query: its lineage, its time, and its streams.

    `lineage` names this history of batches: it is minted once and never used for another one. `run`
    is raised once per run, `batch` with every plan that moves something. `watermark` is W,
    `released` is A: everything before it has been given out. `origin` is the first A when the query
    starts at a time; rows before it are none of ours. `lowest` is the smallest event time seen.
    """

    lineage: str
    streams: Mapping[str, StreamState]
    run: int = 0
    batch: int = 0
    watermark: Known = UNKNOWN
    released: Known = UNKNOWN
    origin: Known = UNKNOWN
    lowest: Known = UNKNOWN
    stride: int = 0
    """How much time the last interval took: where to begin looking for the next."""
    finished: bool = False

    @staticmethod
    def fresh(lineage: str, streams: Sequence[str]) -> PlannerState:
        """Before the first plan."""
        return PlannerState(lineage, {name: StreamState() for name in streams})

    def begin_run(self) -> PlannerState:
        """The state with which a new run begins; an error when the query has finished.

        Spark remembers only the global watermark: because the run number differs, the first batch
        after a restart repeats every W.
        """
        if self.finished:
            raise errors.query_finished(self.lineage)
        return replace(self, run=self.run + 1)

    def same_as(self, other: PlannerState) -> bool:
        """Whether the two say the same."""
        return (
            all(
                getattr(self, f.name) == getattr(other, f.name)
                for f in fields(PlannerState)
                if f.name != "streams"
            )
            and self.streams.keys() == other.streams.keys()
            and all(
                mine is other.streams[name] or mine.same_as(other.streams[name])
                for name, mine in self.streams.items()
            )
        )

    def to_json(self) -> str:
        """One line of JSON; equal states give equal bytes."""
        return json.dumps(
            {
                "version": VERSION,
                "lineage": self.lineage,
                "run": self.run,
                "batch": self.batch,
                "watermark": to_json(self.watermark),
                "released": to_json(self.released),
                "origin": to_json(self.origin),
                "lowest": to_json(self.lowest),
                "stride": self.stride,
                "finished": self.finished,
                "streams": {name: stream.to_json() for name, stream in self.streams.items()},
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> PlannerState:
        """The inverse of `to_json`; an error when the text is not a state of this version."""
        try:
            value = json.loads(text)
            version = value["version"]
        except (ValueError, KeyError, TypeError):
            raise errors.state_not_read("it is not the JSON of a planner state") from None
        if version != VERSION:
            raise errors.state_not_read(f"it has version {version}, this is version {VERSION}")
        try:
            return PlannerState(
                lineage=value["lineage"],
                run=value["run"],
                batch=value["batch"],
                watermark=_known(value["watermark"]),
                released=_known(value["released"]),
                origin=_known(value["origin"]),
                lowest=_known(value["lowest"]),
                stride=value["stride"],
                finished=value["finished"],
                streams={n: StreamState.from_json(s) for n, s in value["streams"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as broken:
            raise errors.state_not_read(f"it is damaged: {broken!r}") from None


def _known(value: int | str) -> Known:
    read = from_json(value)
    return read if isinstance(read, int) else UNKNOWN


def _pack_text(value: Any) -> str:
    """JSON, compressed, as text. Level 1: these are columns of similar numbers.

    Base 64 and not 85, which is 6 % shorter but ten times slower: it is not written in C.
    """
    raw = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(raw, 1)).decode()


def _unpack_text(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text, validate=True)))


def _pack(stream: StreamState) -> str:
    names = json.dumps(stream.names, separators=(",", ":")).encode()
    # Differences of neighbours compress far better than the times themselves.
    deltas = [np.diff(getattr(stream, n), prepend=np.int64(0)).astype("<i8") for n in _NUMBERS]
    truths = [np.packbits(getattr(stream, n)) for n in _FLAGS]
    raw = b"".join(
        [len(names).to_bytes(4, "little"), names, *(c.tobytes() for c in (*deltas, *truths))]
    )
    return base64.b64encode(zlib.compress(raw, 1)).decode()


def _unpack(text: str) -> StreamState:
    raw = zlib.decompress(base64.b64decode(text, validate=True))
    at = 4 + int.from_bytes(raw[:4], "little")
    names = tuple(json.loads(raw[4:at]))
    count = len(names)
    columns: dict[str, Any] = {}
    for name in _NUMBERS:
        deltas = np.frombuffer(raw, dtype="<i8", count=count, offset=at)
        columns[name] = np.cumsum(deltas, dtype=np.int64)
        at += 8 * count
    for name in _FLAGS:
        size = (count + 7) // 8
        bits = np.frombuffer(raw, dtype=np.uint8, count=size, offset=at)
        columns[name] = np.unpackbits(bits, count=count).astype(np.bool_)
        at += size
    return StreamState(names=names, **columns)
