"""Tidegate: exact event time for Apache Spark.

The public door: the names most callers need, all of them pure. Everything else is in its room:
`tidegate.eventtime`, `tidegate.progress`, `tidegate.marks`, `tidegate.planning`, and
`tidegate.testing` for tests of your own. `docs/model.md` explains the words.

>>> tracker = PartitionedWatermarkTracker()
>>> tracker.register_source(0, partitions=2)
>>> tracker.update_partition(PartitionId(0, 0), 5000)      # partition 1 may still be earlier
>>> tracker.update_partition(PartitionId(0, 1), 3000)      # both have spoken: the minimum
3000
"""

from importlib.metadata import PackageNotFoundError, version

from tidegate.errors import TidegateError
from tidegate.eventtime import (
    IDLE,
    UNKNOWN,
    EventTimeRegistry,
    PartitionedWatermarkTracker,
    PartitionId,
)
from tidegate.marks import Cut, Mark
from tidegate.planning import PlannerState, Policy, Query, plan
from tidegate.progress import Graph, ProgressHandle

try:
    __version__ = version("tidegate")
except PackageNotFoundError:  # shipped to executors as plain files, without its metadata
    __version__ = "unknown"

__all__ = [
    # what can be known of time
    "UNKNOWN",
    "IDLE",
    # watermarks of partitions, and the time of a row
    "PartitionedWatermarkTracker",
    "PartitionId",
    "EventTimeRegistry",
    # places in a log, and what writers promise there
    "Cut",
    "Mark",
    # the planner
    "plan",
    "PlannerState",
    "Policy",
    "Query",
    # a small graph, and how far its outputs are complete
    "Graph",
    "ProgressHandle",
    # every error of ours
    "TidegateError",
    "__version__",
]
