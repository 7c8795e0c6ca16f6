"""The bounds of a batch read: two cuts, and of what lies between them the times [a, b).

What the user leaves open is taken from the log once: it ends where the log ends now, and begins at
the first readable row. A bound that is not there is refused; times that were truncated are told,
and not left out.

>>> from tidegate.testing import MemoryLog
>>> memory = MemoryLog()
>>> memory.add_stream("orders", ["0"])
>>> memory.append("orders", "0", [10, 30, 20])
>>> Bounds.of(memory.log("orders"), Between(to_time=25))
Bounds(start={'0': 0}, below={'0': 3}, times=(UNKNOWN, 25))
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate import errors
from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.log import Log, Times
from tidegate.planning.facts import Offsets, Spans
from tidegate.spark.source_options import Between, Cut


@dataclass(frozen=True)
class Bounds:
    """What is read of a log: between two cuts, and of that the times [a, b), if any."""

    start: Offsets
    below: Offsets
    times: Times | None

    @staticmethod
    def of(log: Log, asked: Between) -> Bounds:
        """The bounds that were asked for; what was left open is as the log is now."""
        partitions = log.snapshot({}).partitions
        latest = dict(zip(partitions.names, partitions.latest.tolist(), strict=True))
        for cut in (asked.from_cut, asked.to_cut):
            _check_cut(log, cut or {}, latest)
        below = latest if asked.to_cut is None else asked.to_cut
        if asked.from_cut is not None:
            start = asked.from_cut
            for name in start.keys() & below.keys():
                if start[name] > below[name]:
                    first, last = f"from_cut in {name}", "to_cut"
                    raise errors.bounds_crossed(first, start[name], last, below[name])
        elif asked.from_time is not None:
            # Truncated rows may have had such times: then that is said, and not left out.
            start = {}
        else:
            start = dict(zip(partitions.names, partitions.start.tolist(), strict=True))
        if asked.from_time is None and asked.to_time is None:
            return Bounds(start, below, None)
        a = UNKNOWN if asked.from_time is None else asked.from_time
        return Bounds(start, below, (a, LIMIT if asked.to_time is None else asked.to_time))

    def spans(self, log: Log) -> Spans:
        """The spans that can hold what is asked for."""
        a, b = self.times or (UNKNOWN, LIMIT)
        return log.overlapping(a, b, self.start, self.below)


def _check_cut(log: Log, cut: Cut, latest: Offsets) -> None:
    for name, offset in cut.items():
        if name not in latest:
            raise errors.log_partition_unknown(log.name, name, list(latest))
        if offset > latest[name]:
            raise errors.cut_ahead_of_stream(log.name, name, offset, latest[name])
