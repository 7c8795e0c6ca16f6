"""The planner: the narrow waist between every log and everything that runs.

Logs give it facts, and what runs obeys the watermark of its plans. It is pure: it may import the
pure rooms, numpy and nothing else. Start reading in `plan.py`, whose head lists the steps; each
step has its file.
"""

from tidegate.eventtime.lateness import Late
from tidegate.planning.batch import BatchPlan, Hold, Reason, StreamPlan
from tidegate.planning.facts import Facts, Partitions, Spans, StreamFacts, WriterFact
from tidegate.planning.idleness import IdleTimers
from tidegate.planning.plan import plan
from tidegate.planning.policy import (
    AUTO,
    NEVER,
    OnUnreadable,
    Policy,
    Pressure,
    Release,
    Start,
    Strategy,
)
from tidegate.planning.query import Query, Side
from tidegate.planning.slices import Division, Interval, Slice, Task
from tidegate.planning.state import PlannerState, StreamState

__all__ = [
    "plan",
    "PlannerState",
    "StreamState",
    "Facts",
    "StreamFacts",
    "Partitions",
    "Spans",
    "WriterFact",
    "IdleTimers",
    "Policy",
    "Strategy",
    "Release",
    "Late",
    "Start",
    "OnUnreadable",
    "Pressure",
    "AUTO",
    "NEVER",
    "Query",
    "Side",
    "BatchPlan",
    "StreamPlan",
    "Hold",
    "Reason",
    "Slice",
    "Task",
    "Interval",
    "Division",
]
