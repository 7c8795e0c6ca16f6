"""For tests of your own: a clock that stands still, a log in memory.

Public and pure. Start reading in `memory_log.py`.
"""

from tidegate.testing.clock import ManualClock
from tidegate.testing.memory_log import MemoryLog

__all__ = ["ManualClock", "MemoryLog"]
