"""For tests of your own: a clock that stands still, a log in memory, and a workload.

Public and pure. Start reading in `memory_log.py`; `headline.py` shows what the planner is for.
"""

from tidegate.testing.clock import ManualClock
from tidegate.testing.headline import Headline
from tidegate.testing.memory_log import MemoryLog

__all__ = ["ManualClock", "MemoryLog", "Headline"]
