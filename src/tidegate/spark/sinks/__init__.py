"""Sinks: where the results of a job go, each batch exactly once.

Start reading in `sink.py`, which is the protocol and says who guarantees what; each other file is
one sink.
"""

from tidegate.spark.sinks.sink import Batch, FrameSink, Sink, TaskSink
from tidegate.spark.sinks.stream import StreamSink

__all__ = ["Sink", "TaskSink", "FrameSink", "Batch", "StreamSink"]
