"""One global watermark, as stock Spark keeps it: which rows of an input it drops, exactly.

The watermark is the largest time of all rows seen, in whole milliseconds, minus the delay; it
begins at 1970 and never goes back. A batch drops what the watermark of the batch before it had
passed already: a row in a window whose end is at or before it; without windows a row that is
itself at or before it. So a query that drains a backlog is judged by the rows up to two batches
ago. One that waits for its input runs an empty batch in between, and is judged by all rows before.

>>> arrivals = Arrivals.of(["a", "b"], [("a", [0, 300_000_000]), ("b", []), ("b", [20_000_000])])
>>> minute = timedelta(minutes=1)
>>> told = stock_spark(arrivals, minute, delay=timedelta(0))
>>> told.lost.tolist(), told.needed                     # 300 s - 60 s, and a millisecond
([False, False, True], datetime.timedelta(seconds=240, microseconds=1000))
>>> int(stock_spark(arrivals, minute, delay=told.needed).lost.sum())
0
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from tidegate.cli.doctor.arrivals import Arrivals
from tidegate.eventtime.instants import Instant, ceil_to, floor_to_millis, micros
from tidegate.eventtime.lateness import InWindows, Once
from tidegate.planning.facts import Flags, Numbers

DRAINING: Final = 2
"""Of a backlog a batch is judged by what came up to so many batches before it."""
WAITING: Final = 1
"""And where it waits for its input, an empty batch lies between."""
_MILLI: Final = 1000


@dataclass(frozen=True, eq=False)
class StockOutcome:
    """Which rows are lost, and the smallest delay that loses none; none where no delay helps.

    No delay helps a row from before 1970: Spark's watermark begins there.
    """

    lost: Flags
    needed: timedelta | None


def stock_spark(
    arrivals: Arrivals, window: timedelta | None, delay: timedelta, *, live: bool = False
) -> StockOutcome:
    """What one global watermark does to these arrivals."""
    use = Once() if window is None else InWindows(window)
    # A use at one's own time ends a microsecond after it: with that, both are "at or before".
    after = 1 if window is None else 0
    behind = WAITING if live else DRAINING
    lost = np.zeros(arrivals.rows, dtype=np.bool_)
    reached: list[int | None] = []
    needed = 0
    hopeless = False
    for number, rows in enumerate(arrivals.batches()):
        times = arrivals.times[rows]
        seen = reached[number - behind] if number >= behind else None
        watermark = 0 if seen is None else max(seen - micros(delay) // _MILLI, 0)
        if len(times):
            lost[rows] = use.lost_rows(times, watermark * _MILLI + after)
            end = _end_of(use, int(times.min())) - after
            hopeless = hopeless or end <= 0
            if seen is not None:
                needed = max(needed, seen - ceil_to(end, _MILLI) // _MILLI + 1)
        reached.append(_further(reached[-1] if reached else None, times))
    return StockOutcome(lost, None if hopeless else timedelta(milliseconds=needed))


def _end_of(use: InWindows | Once, time: Instant) -> Instant:
    end = use.last_use(time)
    assert end is not None, "neither use is for ever"
    return end


def _further(reached: int | None, times: Numbers) -> int | None:
    """The largest time so far, in the milliseconds in which Spark counts."""
    if not len(times):
        return reached
    largest = floor_to_millis(int(times.max()))
    return largest if reached is None else max(reached, largest)
