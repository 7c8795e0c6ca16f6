"""Tidegate on Spark: exact event time for PySpark, classic and Connect.

It may import everything but the doors (`cli`). Start reading in `slices.py`, whose functions are
the doors of this room; then `plan_source.py` (planning, as Spark asks for offsets) and `batches.py`
(how a batch is run and committed once). Tasks open this room in every worker, so a name is loaded
when it is first asked for.

    spark = session("orders")
    job = windows(spark, "orders", size="1 minute", ...)

The second gear, for queries whose memory has no bound in time, is the room `gate` inside it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, for a module of the same name would take its place.
from tidegate.spark.session import session

if TYPE_CHECKING:
    from tidegate.spark.gate.doors import read_stream
    from tidegate.spark.gate.writing import GateJob, write_stream
    from tidegate.spark.progress import JobProgress
    from tidegate.spark.running import RunningJob
    from tidegate.spark.sinks import (
        Batch,
        ConsoleSink,
        FilesSink,
        ForeachBatch,
        MemorySink,
        StreamSink,
        files_of,
        read_files,
    )
    from tidegate.spark.slices import SlicesJob, interval_join, ordered, windows
    from tidegate.spark.source import read, register
    from tidegate.spark.source_options import Between

__all__ = [
    "session",
    "read",
    "Between",
    "register",
    "windows",
    "interval_join",
    "ordered",
    "SlicesJob",
    "read_stream",
    "write_stream",
    "GateJob",
    "RunningJob",
    "JobProgress",
    "StreamSink",
    "FilesSink",
    "read_files",
    "files_of",
    "ConsoleSink",
    "MemorySink",
    "ForeachBatch",
    "Batch",
]

_WHERE = {
    **dict.fromkeys(("windows", "interval_join", "ordered", "SlicesJob"), "slices"),
    **dict.fromkeys(("read", "register"), "source"),
    **dict.fromkeys(("write_stream", "GateJob"), "gate.writing"),
    "read_stream": "gate.doors",
    "Between": "source_options",
    "RunningJob": "running",
    "JobProgress": "progress",
}
"""Where a name is; those that are not here are sinks."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE.get(name, 'sinks')}"), name)
