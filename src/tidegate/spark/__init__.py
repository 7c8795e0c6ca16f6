"""Tidegate on Spark: exact event time for PySpark, classic and Connect.

It may import everything but the doors (`cli`). Start reading in `slices.py`, whose functions are
the doors of this room; then `plan_source.py` (planning, as Spark asks for offsets) and `batches.py`
(how a batch is run and committed once).

    spark = session("orders")
    job = windows(spark, "orders", size="1 minute", ...)
"""

from tidegate.spark.progress import JobProgress
from tidegate.spark.running import RunningJob
from tidegate.spark.session import session
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

__all__ = [
    "session",
    "read",
    "register",
    "windows",
    "interval_join",
    "ordered",
    "SlicesJob",
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
