"""Sinks: where the results of a job go, each batch exactly once.

Start reading in `sink.py`, which is the protocol and says who guarantees what; each other file is
one sink, or what one is made of: `manifests.py` and `formats.py` belong to `files.py`.
"""

from tidegate.spark.sinks.console import ConsoleSink
from tidegate.spark.sinks.files import FilesSink, files_of, manifests_of, read_files
from tidegate.spark.sinks.function import ForeachBatch
from tidegate.spark.sinks.memory import MemorySink
from tidegate.spark.sinks.sink import Batch, FrameSink, Sink, TaskSink
from tidegate.spark.sinks.stream import StreamSink

__all__ = [
    "Sink",
    "TaskSink",
    "FrameSink",
    "Batch",
    "StreamSink",
    "FilesSink",
    "read_files",
    "files_of",
    "manifests_of",
    "ConsoleSink",
    "MemorySink",
    "ForeachBatch",
]
