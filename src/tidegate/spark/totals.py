"""What a job counts: per batch, and in all.

Totals are kept in the query's record and grow in the transaction that commits a batch, so a batch
that runs twice counts once.

>>> first = Counted(told={"rows": {"orders": 5}}, rows_out=2, seconds=0.5)
>>> added(added({}, first), first)["rows_in"]
10
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known, to_json
from tidegate.logs.log import Log
from tidegate.planning.facts import Spans
from tidegate.planning.state import PlannerState, StreamState
from tidegate.spark.sinks.sink import Batch

SHOWN: Final = 1_000
"""So many partitions of a stream are told one by one."""

ByPartition = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Counted:
    """One batch."""

    told: Mapping[str, Any] = field(default_factory=dict)
    rows_out: int = 0
    late: ByPartition = field(default_factory=Counter)
    lost: ByPartition = field(default_factory=Counter)
    bad: ByPartition = field(default_factory=Counter)
    seconds: float = 0.0
    amplification: float | None = None
    kernel: str = ""
    noted: bool = False
    """Whether the batch told its sink of a new frontier."""

    @property
    def rows_in(self) -> int:
        """How many rows were new."""
        return sum(self.told.get("rows", {}).values())


def added(totals: Mapping[str, Any], batch: Counted) -> dict[str, Any]:
    """The totals with one more batch in them."""

    def more(name: str, by: float) -> Any:
        return totals.get(name, 0) + by

    return {
        "batches": more("batches", 1),
        "rows_in": more("rows_in", batch.rows_in),
        "rows_out": more("rows_out", batch.rows_out),
        "late": more("late", batch.late.total()),
        "lost": more("lost", batch.lost.total()),
        "bad": more("bad", batch.bad.total()),
        "seconds": round(more("seconds", batch.seconds), 6),
        "rebalances": more("rebalances", batch.told.get("rebalanced", 0)),
        "watermarks": more("watermarks", int(batch.noted)),
        "advances": more("advances", int(batch.told.get("advanced", False))),
        "partitions": _by_partition(totals.get("partitions", {}), batch),
    }


def _by_partition(before: Mapping[str, Any], batch: Counted) -> dict[str, Any]:
    """[late, lost, bad] of every partition that has any."""
    found = {stream: dict(counts) for stream, counts in before.items()}
    for place, counter in enumerate((batch.late, batch.lost, batch.bad)):
        for (stream, partition), count in counter.items():
            if count:
                counts = found.setdefault(stream, {}).setdefault(partition, [0, 0, 0])
                counts[place] += count
    return found


def held_rows(logs: Mapping[str, Log], state: PlannerState) -> int:
    """About how many rows are known and not given out yet: they wait in the log for their time.

    Rows of a span are taken as spread evenly over its times, where B goes through it. Before the
    first release it is all of them, from where the query began. Rows that came too late and count
    in the next release wait as well.
    """
    b, count = state.released, 0.0
    for name, stream in state.streams.items():
        log, cut, since = logs[name], stream.cut(), stream.late_cut
        if stream.highest is not UNKNOWN and (b is UNKNOWN or stream.highest >= b):
            spans = log.overlapping(b, stream.highest + 1, stream.start_cut, cut)
            share = 1.0 if b is UNKNOWN else _share_from(b, spans)
            count += float((share * spans.rows).sum())
        if b is not UNKNOWN and since is not None and since != cut:
            behind = log.overlapping(state.origin, b, since, cut)
            count += float(((1.0 - _share_from(b, behind)) * behind.rows).sum())
    return round(count)


def _share_from(b: Instant, spans: Spans) -> npt.NDArray[np.float64]:
    width = (spans.max_time - spans.min_time).astype(np.float64) + 1.0
    share: npt.NDArray[np.float64] = ((spans.max_time + 1 - b) / width).clip(0.0, 1.0)
    return share


def detail(batch: Batch, counted: Counted, held: int, now: Instant) -> dict[str, Any]:
    """What is told of the last batch of a job."""
    return {
        "batch": batch.number,
        "lineage": batch.lineage,
        "interval": None
        if batch.interval is None
        else [to_json(batch.interval.a), batch.interval.b],
        "watermark": to_json(batch.watermark),
        "lag": None if batch.watermark is UNKNOWN else now - batch.watermark,
        "seconds": round(counted.seconds, 6),
        "rows_in": counted.rows_in,
        "rows_out": counted.rows_out,
        "late": counted.late.total(),
        "lost": counted.lost.total(),
        "bad": counted.bad.total(),
        "amplification": counted.amplification,
        "kernel": counted.kernel,
        "held": held,
        "lanes": counted.told.get("lanes", []),
        "holds": counted.told.get("holds", []),
        "warnings": counted.told.get("warnings", []),
        "finished": batch.finished,
    }


def told_number(told: Mapping[str, Any], stream: str) -> Known:
    """The number of a stream, as a plan has told it: nothing before it is still to come there."""
    found = told.get("numbers", {}).get(stream)
    return found if isinstance(found, int) else UNKNOWN


def partitions_of(stream: StreamState) -> dict[str, Any]:
    """What is told of the partitions of a stream: number, maximum, place, idle or not."""
    few = slice(0, SHOWN)
    return {
        "strategy": None if stream.strategy is None else stream.strategy.value,
        "active": int(np.count_nonzero(stream.present & ~stream.idle)),
        "idle": int(np.count_nonzero(stream.present & stream.idle)),
        "partitions": {
            name: [
                int(number) if known else None,
                int(top) if seen else None,
                int(place),
                bool(idle),
            ]
            for name, number, known, top, seen, place, idle in zip(
                stream.names[few],
                stream.number[few],
                stream.known[few],
                stream.max_seen[few],
                stream.seen[few],
                stream.position[few],
                stream.idle[few],
                strict=True,
            )
        },
    }
