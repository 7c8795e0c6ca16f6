"""Progress: rows and watermarks as messages, how far an output is complete, and a small graph.

This room is for saying and asking how complete something is: the frontier of a sink, of a node, of
a job over its sinks, of several workers. With it comes a graph that runs without Spark, one event
at a time, for tests and for understanding: what holds here holds for the Spark jobs too. It may
import `tidegate.eventtime` and `tidegate.errors`; clocks and waiting are handed in. Start reading
in `messages.py` (what travels), then `frontier.py` (what is asked), then `graph.py` (how it is put
together) and `run.py` (how it runs); `node.py` says what a node is, `inbox.py` how several inputs
become one, `transforms.py`, `windows.py` and `sinks.py` hold the nodes.

A number in this room is an N, as in `advance_to(N)`: "nothing before N is still to come".

>>> graph = Graph()
>>> graph.sink("out", graph.input("events"))
>>> run, progress = graph.execute_with_progress()
>>> progress.frontier(), progress.less_than(5)           # unknown is not zero
(UNKNOWN, True)
>>> run.input("events").advance_to(5), progress.frontier(), progress.less_than(5)
(True, 5, False)
"""

from tidegate.progress.frontier import CompletedFrontier, Progress, ProgressHandle
from tidegate.progress.graph import Graph
from tidegate.progress.messages import Data, Ending, LogicalTime, StreamMessage
from tidegate.progress.node import Emit, Emits, Node, NodeConfig, Passing, Plan, Stream
from tidegate.progress.run import InputHandle, Run
from tidegate.progress.sinks import Collect, Sink
from tidegate.progress.transforms import (
    BadRow,
    ExtractTime,
    Filter,
    FlatMap,
    InjectWatermarks,
    Map,
    Union,
)
from tidegate.progress.windows import Aggregate, Session, Sliding, Tumbling, WindowRow

__all__ = [
    # what travels
    "LogicalTime",
    "Data",
    "StreamMessage",
    "Ending",
    # what is asked
    "Progress",
    "CompletedFrontier",
    "ProgressHandle",
    # how it is put together
    "Graph",
    "Stream",
    "Plan",
    "Run",
    "InputHandle",
    # the nodes
    "Map",
    "Filter",
    "FlatMap",
    "Union",
    "ExtractTime",
    "BadRow",
    "InjectWatermarks",
    "Aggregate",
    "Tumbling",
    "Sliding",
    "Session",
    "WindowRow",
    "Collect",
    "Sink",
    # nodes of one's own
    "Node",
    "NodeConfig",
    "Passing",
    "Emit",
    "Emits",
]
