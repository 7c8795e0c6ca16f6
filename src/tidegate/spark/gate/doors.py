"""The door of the gate: a stream as a DataFrame whose operators follow our watermark.

    orders = read_stream(spark, "orders", store="shop", query="sessions", gap="30 minutes")
    sessions = orders.groupBy(F.session_window("ordered_at", "30 minutes"), "customer").count()

What the rows are used for is said here, so that the source gives up a row exactly when Spark's
operators would, and routes it, instead of leaving it to them to drop it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from tidegate import errors
from tidegate.eventtime.instants import format_duration, format_instant
from tidegate.logs.log import Log
from tidegate.logs.store_log import StoreLog
from tidegate.spark.gate.door import source_of
from tidegate.spark.gate.options import gate_of, gate_schema, gate_type
from tidegate.spark.gate.reader import GateReader
from tidegate.spark.gate.trick import WATERMARK, gated
from tidegate.spark.size import memory, parallelism
from tidegate.spark.source import NAME, register, source_options
from tidegate.store.store import Store

Duration = timedelta | str
Windows = Duration | tuple[Duration, Duration]
"""A size, or a size and a slide."""


def read_stream(
    spark: SparkSession,
    stream: str | Log,
    *,
    query: str,
    store: Store | str | Path | None = None,
    data: str | Path | None = None,
    windows: Windows | list[Windows] | None = None,
    gap: Duration | None = None,
    last_use: str | None = None,
    within: Duration | None = None,
    held: Duration | None = None,
    columns: Sequence[str] | None = None,
    source: str | None = None,
    tasks: int | None = None,
    **settings: Any,
) -> DataFrame:
    """A stream of a store, or any log with a store beside it, as a streaming DataFrame.

    `query` names the streaming query that it is for; all its sources have the same. What uses a row
    last: `windows` (a size, a pair of size and slide, or a list of them), `gap` of sessions,
    `last_use="once"` for joins, deduplication and `transformWithState` with event time; without any
    of these nothing is ever too late, as in running totals. Of operators one behind the other the
    first decides. `held`: how long operators may hold a row after that (the reach of a join, a
    timer, a second window), so that the end of a bounded stream closes them too. `within`: for how
    long `dropDuplicatesWithinWatermark` remembers a key, if not as long as the tolerance. `columns`
    may name `_event_time`, `_partition`, `_offset` and `_timestamp`. `source` tells two sources of
    one stream apart. `settings` are the policy's.
    """
    options = _where(stream, store, data)
    options["query"] = query
    chosen = {
        "windows": None if windows is None else _windows(windows),
        "gap": _text(gap),
        "last_use": last_use,
        "within": _text(within),
        "held": _text(held),
        "source": source,
        "columns": None if columns is None else ",".join(columns),
        "tasks": str(workers) if (workers := tasks or parallelism(spark)) else None,
    }
    options |= {name: text for name, text in chosen.items() if text is not None}
    options |= texts_of(settings)
    # What is wrong is said here, and not from inside Spark.
    names = [name for name in gate_schema(options).names if name != WATERMARK]
    gate = gate_of(options, names)
    fitted = gate.policy.fitted(cores=gate.cores, memory_bytes=memory(spark), held=True)
    if fitted is not gate.policy:
        options["max_bytes"] = str(fitted.max_bytes)
    options["packed"] = "true"
    gate = replace(gate, policy=fitted)
    raw = _raw(spark, GateReader(gate, gate_type(options), packs=True), options)
    return gated(raw, names, gate.event_column, within=gate.within)


def _raw(spark: SparkSession, reader: GateReader, options: Mapping[str, str]) -> DataFrame:
    """What the source gives: by its light door, or where there is none by its name."""
    light = source_of(spark, reader)
    if light is not None:
        spark.dataSource.register(light)
        return spark.readStream.format(light.name()).load()
    register(spark)
    return spark.readStream.format(NAME).options(**options).load()


NOTHING: Final = {
    "idle_after": "never",
    "watermark.idle.timeout": "never",
    "max_future": "never",
    "max_drift": "none",
    "watermark.max_drift": "none",
}
"""What None means as a setting; for all others it means that nothing was set."""


def _where(
    stream: str | Log, store: Store | str | Path | None, data: str | Path | None
) -> dict[str, str]:
    if store is None and not isinstance(stream, StoreLog):
        raise errors.job_without_store()
    if isinstance(stream, str):
        return source_options(store or "", stream, data)
    options = {"log": json.dumps(stream.describe())}
    if store is None:
        return options
    if isinstance(store, Store):  # one that is open, and need not know of the stream
        home = dict(zip(("store", "data"), store.addresses, strict=True))
    else:
        home = source_options(store, stream.name, data)
    return {**options, **{name: home[name] for name in ("store", "data") if name in home}}


def _windows(windows: Windows | list[Windows]) -> str:
    return ", ".join(map(_window, windows if isinstance(windows, list) else [windows]))


def _window(window: Windows) -> str:
    if isinstance(window, tuple):
        size, slide = window
        return f"{_text(size)} / {_text(slide)}"
    return str(_text(window))


def _text(duration: Duration | None) -> str | None:
    return format_duration(duration) if isinstance(duration, timedelta) else duration


def texts_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings of the policy as texts that read back as the same."""
    told = {name: NOTHING.get(name) if v is None else v for name, v in settings.items()}
    return {name: _setting(name, value) for name, value in told.items() if value is not None}


def _setting(name: str, value: Any) -> str:
    """A setting of the policy as a text that reads back as the same."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    if isinstance(value, int) and name in ("start", "auto.offset.reset"):
        return format_instant(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(getattr(value, "value", value))
