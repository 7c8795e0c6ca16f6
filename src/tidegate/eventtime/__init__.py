"""Event time: what time it is in a stream, one partition at a time and all of them together.

This room holds instants, watermarks and the one merge of them, the generators and trackers that
feed it, the parsers that find the time of a row, and the one definition of late and lost. It may
import `tidegate.errors`, numpy and pyarrow arrays; clocks are handed in. Start reading in
`instants.py` and `watermark.py` (the words), then `merge.py` (the law), `tracker.py` (what most
callers want) and `lateness.py`; `lanes.py` and `alignment.py` are the same merge elsewhere.

>>> tracker = PartitionedWatermarkTracker()
>>> tracker.register_source(0, 2)
>>> tracker.update_partition(PartitionId(0, 0), parse_instant("2026-01-31T12:00:00Z"))
>>> tracker.current_watermark()                       # partition 1 has not said anything yet
UNKNOWN
"""

from tidegate.eventtime.alignment import AlignmentGroup, AlignmentMode, Verdict
from tidegate.eventtime.declaration import (
    EventTimeDeclaration,
    EventTimeOptions,
    Message,
    event_time_of,
)
from tidegate.eventtime.generators import (
    AutoDisorder,
    BoundedDisorder,
    FedByMarks,
    GeneratorConfig,
    ProcessingTime,
    Punctuated,
    WatermarkGenerator,
    WithFutureGuard,
    WithIdleness,
    ascending,
    with_future_guard,
    with_idleness,
)
from tidegate.eventtime.instants import (
    Instant,
    ceil_to,
    floor_to,
    floor_to_millis,
    format_duration,
    format_instant,
    from_datetime,
    micros,
    parse_duration,
    parse_instant,
    to_datetime,
)
from tidegate.eventtime.lanes import CoreWatermarkState, GlobalWatermarkCollector
from tidegate.eventtime.lateness import (
    Forever,
    InAny,
    InJoin,
    InSession,
    InWindows,
    LastUse,
    Late,
    Once,
    is_late,
    late_rows,
)
from tidegate.eventtime.merge import Merge, Report, combine
from tidegate.eventtime.parsers import BadReason, EventTimeParser, Parsed, ParsedColumn
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.eventtime.release import (
    OrderedRelease,
    ReleaseByGenerator,
    Released,
    ReleaseMetrics,
    Releasing,
    ReleasingByGenerator,
    Row,
)
from tidegate.eventtime.source_tracker import SourceWatermarkTracker
from tidegate.eventtime.tracker import (
    PartitionedWatermarkTracker,
    PartitionId,
    PartitionState,
    TrackerMetrics,
)
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known, Monotone, Watermark, claim

__all__ = [
    # instants and durations
    "Instant",
    "parse_instant",
    "format_instant",
    "from_datetime",
    "to_datetime",
    "parse_duration",
    "format_duration",
    "micros",
    "floor_to",
    "ceil_to",
    "floor_to_millis",
    # what can be known of time
    "UNKNOWN",
    "IDLE",
    "Watermark",
    "Known",
    "Monotone",
    "claim",
    # generators
    "WatermarkGenerator",
    "GeneratorConfig",
    "BoundedDisorder",
    "ascending",
    "AutoDisorder",
    "Punctuated",
    "ProcessingTime",
    "FedByMarks",
    "WithIdleness",
    "with_idleness",
    "WithFutureGuard",
    "with_future_guard",
    # the merge, and what is built on it
    "Merge",
    "Report",
    "combine",
    "PartitionId",
    "PartitionState",
    "PartitionedWatermarkTracker",
    "TrackerMetrics",
    "SourceWatermarkTracker",
    "CoreWatermarkState",
    "GlobalWatermarkCollector",
    "AlignmentGroup",
    "AlignmentMode",
    "Verdict",
    # late and lost
    "is_late",
    "late_rows",
    "Late",
    "LastUse",
    "InWindows",
    "InSession",
    "InJoin",
    "Once",
    "Forever",
    "InAny",
    # the time of a row
    "EventTimeRegistry",
    "EventTimeParser",
    "Parsed",
    "ParsedColumn",
    "BadReason",
    "EventTimeDeclaration",
    "EventTimeOptions",
    "Message",
    "event_time_of",
    # rows in the order of their time
    "OrderedRelease",
    "Releasing",
    "ReleaseByGenerator",
    "ReleasingByGenerator",
    "Released",
    "ReleaseMetrics",
    "Row",
]
