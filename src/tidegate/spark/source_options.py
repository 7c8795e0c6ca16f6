"""The options of `format("tidegate")`: texts that Spark hands over, as values.

Spark does not tell upper from lower case in the names of options, and knows nothing of their
meaning. So each is honoured or refused here, never ignored; a wrong one lists those that are known.

>>> asked = ReadOptions.parse({"store": "/data/shop", "stream": "orders", "to_time": "1970-01-02"})
>>> asked.parts, asked.columns
((Between(from_cut=None, to_cut=None, from_time=None, to_time=86400000000),), None)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from tidegate import errors
from tidegate.eventtime.instants import Instant, format_instant, parse_instant
from tidegate.logs.log import Description
from tidegate.store import Store
from tidegate.store.shared import shared_store
from tidegate.store.writer import BadRows

READ: Final = (
    "store",
    "data",
    "stream",
    "log",
    "from_cut",
    "to_cut",
    "from_time",
    "to_time",
    "slices",
    "columns",
    "tasks",
)
BOUNDS: Final = ("from_cut", "to_cut", "from_time", "to_time")
WRITE: Final = ("store", "data", "stream", "writer_id", "note_time", "bad_rows")

SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname"})
"""What Spark puts among the options of a streaming write, and reads itself."""

Cut = Mapping[str, int]


@dataclass(frozen=True)
class Place:
    """A stream of a store: where it lies, and its name."""

    store: str
    data: str | None
    stream: str

    def open(self) -> Store:
        """The store, one per process."""
        return shared_store(self.store, self.data)


@dataclass(frozen=True)
class Between:
    """How much of a log: between two cuts, and of that the times [from, to)."""

    from_cut: Cut | None = None
    to_cut: Cut | None = None
    from_time: Instant | None = None
    to_time: Instant | None = None

    @staticmethod
    def parse(given: Mapping[str, str]) -> Between:
        """From texts, each of which may be missing."""
        start, end = _time("from_time", given), _time("to_time", given)
        if start is not None and end is not None and start > end:
            shown = format_instant(start), format_instant(end)
            raise errors.bounds_crossed("from_time", shown[0], "to_time", shown[1])
        return Between(_cut("from_cut", given), _cut("to_cut", given), start, end)

    def texts(self) -> dict[str, str]:
        """The same as texts."""
        cuts = {"from_cut": self.from_cut, "to_cut": self.to_cut}
        times = {"from_time": self.from_time, "to_time": self.to_time}
        return {
            **{name: json.dumps(dict(cut)) for name, cut in cuts.items() if cut is not None},
            **{name: format_instant(at) for name, at in times.items() if at is not None},
        }


@dataclass(frozen=True)
class ReadOptions:
    """What is to be read: of a stream of a store, or of any log; and how much of it."""

    place: Place | None
    log: Description | None
    parts: tuple[Between, ...] = (Between(),)
    """One after the other; no row may be in two of them."""
    columns: tuple[str, ...] | None = None
    tasks: int | None = None

    @staticmethod
    def parse(options: Mapping[str, str]) -> ReadOptions:
        """From the texts of a read."""
        given = _known(options, READ)
        log = given.get("log")
        if log is not None:
            for name in ("store", "data", "stream"):
                if name in given:
                    raise errors.setting_given_twice("what to read", ["log", name])
        return ReadOptions(
            place=_place(given, READ) if log is None else None,
            log=None if log is None else _json("log", log, _A_LOG, dict),
            parts=_parts(given),
            columns=_columns(given),
            tasks=_count("tasks", given),
        )


@dataclass(frozen=True)
class WriteOptions:
    """Where rows go, who writes them, what is promised of time, and what becomes of bad rows."""

    place: Place
    writer_id: str | None = None
    note_time: Instant | Literal["max"] | None = None
    bad_rows: BadRows = "refuse"

    @staticmethod
    def parse(options: Mapping[str, str]) -> WriteOptions:
        """From the texts of a write."""
        given = _known(options, WRITE)
        place = _place(given, WRITE)
        writer_id, note = given.get("writer_id"), given.get("note_time")
        if note is not None and writer_id is None:
            raise errors.writer_without_id(place.stream, "note time")
        return WriteOptions(
            place,
            writer_id,
            "max" if note == "max" else _time("note_time", given),
            _bad_rows(given.get("bad_rows", "refuse")),
        )


# ---- texts ----

_A_CUT: Final = 'a cut like {"0.e0": 17}'
_A_LOG: Final = "the JSON of a log's describe()"
_SLICES: Final = (
    """a list like [{"from_cut": "{\\"0.e0\\": 3}", "to_time": "2026-01-31T12:00:00Z"}]"""
)

T = TypeVar("T", dict[str, Any], list[Any])


def _known(options: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """The options by their names; a path, as in `load(path)`, is the store."""
    given = {name.lower(): text for name, text in options.items()}
    if "path" in given:
        if "store" in given:
            raise errors.setting_given_twice("store", ["path", "store"])
        given["store"] = given.pop("path")
    for name in given.keys() - SPARKS_OWN:
        if name not in known:
            raise errors.unknown_setting(name, known)
    return given


def _place(given: Mapping[str, str], known: Iterable[str]) -> Place:
    for name in ("store", "stream"):
        if not given.get(name):
            raise errors.option_missing(name, known)
    address, data = given["store"], given.get("data")
    for folder in (address, data):
        if folder is not None and "://" not in folder and not Path(folder).is_absolute():
            raise errors.store_address_relative(folder)
    if "://" in address and data is None:
        raise errors.option_missing("data", known)
    return Place(address, data, given["stream"])


def _json(name: str, text: str, valid: str, kind: type[T]) -> T:
    try:
        found = json.loads(text)
    except ValueError:
        raise errors.wrong_setting(name, text, [valid]) from None
    if not isinstance(found, kind):
        raise errors.wrong_setting(name, text, [valid])
    return found


def _parts(given: Mapping[str, str]) -> tuple[Between, ...]:
    if "slices" not in given:
        return (Between.parse(given),)
    for name in BOUNDS:
        if name in given:
            raise errors.setting_given_twice("how much to read", ["slices", name])
    parts = []
    for part in _json("slices", given["slices"], _SLICES, list):
        if not isinstance(part, dict) or not all(isinstance(v, str) for v in part.values()):
            raise errors.wrong_setting("slices", given["slices"], [_SLICES])
        for name in part:
            if name not in BOUNDS:
                raise errors.unknown_setting(name, BOUNDS)
        parts.append(Between.parse(part))
    return tuple(parts)


def _cut(name: str, given: Mapping[str, str]) -> Cut | None:
    if name not in given:
        return None
    found = _json(name, given[name], _A_CUT, dict)
    if not all(isinstance(at, int) and at >= 0 for at in found.values()):
        raise errors.wrong_setting(name, given[name], [_A_CUT])
    return found


def _time(name: str, given: Mapping[str, str]) -> Instant | None:
    return None if name not in given else parse_instant(given[name])


def _columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    found = tuple(name.strip() for name in given["columns"].split(","))
    if not all(found):
        raise errors.wrong_setting("columns", given["columns"], ["names, separated by commas"])
    if len(set(found)) < len(found):
        raise errors.column_given_twice("the option columns", found)
    return found


def _count(name: str, given: Mapping[str, str]) -> int | None:
    if name not in given:
        return None
    try:
        found = int(given[name])
    except ValueError:
        found = 0
    if found < 1:
        raise errors.wrong_setting(name, given[name], ["1 or more"])
    return found


def _bad_rows(text: str) -> BadRows:
    if text == "route":
        return "route"
    if text == "refuse":
        return "refuse"
    raise errors.wrong_setting("bad_rows", text, ["refuse", "route"])
