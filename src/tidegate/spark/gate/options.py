"""The options of a stream read with `format("tidegate")`: texts, as Spark hands them over.

Where the rows are is said as in a batch read (`store` and `stream`, or `log`). `query` names the
streaming query: its record, its late rows and its progress go by it. `windows`, `gap` and
`last_use` say until when a row is of use, `held` how long operators hold on to it after that,
`within` how long duplicates are remembered; all else are settings of the policy, by any of their
names.

>>> last_use_of("10 s", None, None)
(InWindows(size=datetime.timedelta(seconds=10), slide=None), True)
>>> last_use_of("1 min / 10 s, 1 h", None, None)[0].uses[1].size
datetime.timedelta(seconds=3600)
>>> last_use_of(None, None, None)
(Forever(), False)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql.types import StructType

from tidegate import errors
from tidegate.eventtime.instants import parse_duration
from tidegate.eventtime.lateness import Forever, InAny, InSession, InWindows, LastUse, Once
from tidegate.logs.log import EVENT_TIME, Log, open_log
from tidegate.logs.store_log import StoreLog
from tidegate.planning.policy import AUTO, SETTINGS, Policy, Release
from tidegate.spark.arrow_types import spark_schema
from tidegate.spark.gate.packs import pack_type
from tidegate.spark.gate.spec import Gate
from tidegate.spark.gate.trick import WATERMARK
from tidegate.spark.log_policy import described
from tidegate.spark.rows import frame_schema
from tidegate.spark.source_options import ReadOptions
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

WHERE: Final = ("store", "data", "stream", "log", "columns", "tasks")
"""What a batch read has too."""

OWN: Final = ("query", "source", "windows", "gap", "last_use", "within", "held", "packed")

POLICY: Final = {
    name.lower(): name
    for setting in SETTINGS
    if setting.field not in ("release", "max_amplification")
    for name in setting.names
}
"""Settings of the policy by their names without case; two have no meaning in arrival order."""

KNOWN: Final = (*WHERE, *OWN, *POLICY.values())

ONCE: Final = "once"
NEVER: Final = "never"


def asks_for_stream(options: Mapping[str, str]) -> bool:
    """Whether these are the options of a stream read, to which some mean something only there."""
    return _of_streams(options) is not None


def _of_streams(options: Mapping[str, str]) -> str | None:
    """One of them that a batch read has not."""
    return next((name for name in options if name.lower() in (*OWN, *POLICY)), None)


def is_packed(options: Mapping[str, str]) -> bool:
    """Whether rows come in packs."""
    asked = next((text for name, text in options.items() if name.lower() == "packed"), "false")
    if asked.lower() not in ("true", "false"):
        raise errors.wrong_setting("packed", asked, ["true", "false"])
    return asked.lower() == "true"


def log_and_home(options: Mapping[str, str]) -> tuple[Log, Store]:
    """The stream, and the store that keeps what is known of the query; options are known here.

    A stream of a store has its home there. Any other log has one beside it, given as `store`.
    """
    given = {name.lower(): text for name, text in options.items()}
    for name in given:
        if name not in (*WHERE, *OWN, *POLICY, "path"):
            raise errors.unknown_setting(name, KNOWN)
    if not given.get("query"):
        other = _of_streams({name: text for name, text in given.items() if name != "query"})
        why = "" if other is None else f" (the name of the stream read that {other} is for)"
        raise errors.option_missing(f"query{why}", KNOWN)
    where = {name: text for name, text in given.items() if name in (*WHERE, "path")}
    if "log" not in where:
        place = ReadOptions.parse(where).place
        assert place is not None, "without a log there is a place"
        home = place.open()
        return StoreLog(home, place.stream), home
    asked = ReadOptions.parse({n: t for n, t in where.items() if n not in ("store", "data")})
    log = open_log(asked.log or {})
    if "store" in where:
        return log, shared_store(where["store"], where.get("data"))
    if isinstance(log, StoreLog):
        return log, log.store
    raise errors.option_missing("store", KNOWN)


def gate_of(options: Mapping[str, str], columns: Sequence[str]) -> Gate:
    """The gate that these options describe, with these columns in its rows."""
    log, home = log_and_home(options)
    given = {name.lower(): text for name, text in options.items()}
    use, exact_ends = last_use_of(given.get("windows"), given.get("gap"), given.get("last_use"))
    settings: dict[str, Any] = {POLICY[name]: t for name, t in given.items() if name in POLICY}
    start = settings.get("start", "")
    if start.startswith("{"):
        settings["start"] = {log.name: _cut(start)}
    policy = Policy.from_options({**settings, "release": Release.ARRIVAL.value})
    remembered = timedelta(0) if policy.tolerance is AUTO else policy.tolerance
    if "within" in given:
        remembered = parse_duration(given["within"])
    cores = int(given["tasks"]) if "tasks" in given else os.cpu_count() or 2
    catalog, data = home.addresses
    return Gate(
        name=given["query"],
        source=given.get("source", log.name),
        catalog=catalog,
        data=data,
        stream=log.name,
        log=described(log.name, log, policy),
        columns=tuple(columns),
        event_column=event_column_of(log, columns),
        use=use,
        policy=policy,
        exact_ends=exact_ends,
        within=remembered,
        held=parse_duration(given["held"]) if "held" in given else timedelta(0),
        cores=cores,
    )


def gate_schema(options: Mapping[str, str]) -> pa.Schema:
    """What the source gives out: columns that may all be null, and the watermark.

    Where none of the columns that were asked for has the event time, that is added.
    """
    log, _ = log_and_home(options)
    listed = next((text for name, text in options.items() if name.lower() == "columns"), None)
    asked = [name.strip() for name in listed.split(",")] if listed else log.schema.names
    if _declared(log) not in asked and EVENT_TIME not in asked:
        asked = [*asked, EVENT_TIME]
    fields = [field.with_nullable(True) for field in frame_schema(log, asked)]
    return pa.schema([*fields, pa.field(WATERMARK, pa.timestamp("us", tz="UTC"))])


def gate_type(options: Mapping[str, str]) -> StructType:
    """The same as Spark has it, in packs if these are asked for."""
    given = spark_schema("stream", gate_schema(options))
    if not is_packed(options):
        return given
    *rows, watermark = given
    return StructType([*pack_type(StructType(rows)), watermark])


def event_column_of(log: Log, columns: Sequence[str]) -> str:
    """The column that Spark's operators are to hold against the watermark."""
    declared = _declared(log)
    return declared if declared is not None and declared in columns else EVENT_TIME


def _declared(log: Log) -> str | None:
    """The stream's own event column, if it holds the time as Spark would have it."""
    name = log.store.describe(log.name).config.event_column if isinstance(log, StoreLog) else None
    if name is None or name not in log.schema.names:
        return None
    kind = log.schema.field(name).type
    return name if kinds.is_timestamp(kind) and kind.tz is not None and kind.unit == "us" else None


def last_use_of(windows: str | None, gap: str | None, last_use: str | None) -> tuple[LastUse, bool]:
    """Until when a row is of use, and whether all that uses it are windows that end at their end.

    `windows`: sizes, or `size / slide`, separated by commas.
    """
    if last_use is not None and last_use not in (ONCE, NEVER):
        raise errors.wrong_setting("last_use", last_use, [ONCE, NEVER])
    if last_use is not None and (windows or gap):
        raise errors.use_given_twice("windows" if windows else "gap")
    uses: list[Any] = [_window(text) for text in windows.split(",")] if windows else []
    exact_ends = bool(uses) and gap is None
    if gap is not None:
        uses.append(InSession(parse_duration(gap)))
    if last_use == ONCE:
        uses.append(Once())
    if not uses:
        return Forever(), False
    return (uses[0] if len(uses) == 1 else InAny(tuple(uses))), exact_ends


def _window(text: str) -> InWindows:
    size, _, slide = (part.strip() for part in text.partition("/"))
    return InWindows(parse_duration(size), parse_duration(slide) if slide else None)


def _cut(text: str) -> dict[str, int]:
    valid = 'earliest, latest, a time, or a cut like {"0.e0": 17}'
    try:
        found = json.loads(text)
    except ValueError:
        raise errors.wrong_setting("start", text, [valid]) from None
    if not all(isinstance(at, int) and at >= 0 for at in found.values()):
        raise errors.wrong_setting("start", text, [valid])
    return dict(found)
