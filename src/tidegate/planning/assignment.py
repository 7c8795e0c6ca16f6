"""Assignment: which lane has which partition.

Partitions are spread over lanes, one per core, so that each has about equally many new rows. Every
lane has a local watermark over its own; their merge is the number of the plan.

>>> assign_lanes([40, 30, 20, 10], lanes=2).tolist()
[0, 1, 1, 0]
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from tidegate.eventtime.lanes import CoreWatermarkState
from tidegate.eventtime.tracker import PartitionId
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.planning.batch import BatchPlan
from tidegate.planning.facts import Positions


def assign_lanes(rows: Iterable[int], lanes: int) -> Positions:
    """A lane per partition: the largest first, each onto the lane that has the fewest rows."""
    counts = np.array(list(rows), dtype=np.int64)
    lane_of = np.arange(len(counts), dtype=np.intp) % lanes
    busy = [(0, lane) for lane in range(lanes)]
    for partition in np.argsort(-counts, kind="stable"):
        if counts[partition] == 0:
            break  # those without rows stay where they are: any lane can carry their watermark
        load, lane = heapq.heappop(busy)
        lane_of[partition] = lane
        heapq.heappush(busy, (load + int(counts[partition]), lane))
    return lane_of


def lanes_of(batch: BatchPlan, lanes: int) -> list[CoreWatermarkState]:
    """The lanes of a batch, each with its partitions and what they reach in it.

    A stream that has one number for all of it (marks, the clock) is one partition here.
    """
    states = [CoreWatermarkState(lane) for lane in range(lanes)]
    for source, stream in enumerate(batch.streams.values()):
        arrived = stream.arrived
        rows = np.bincount(arrived.partition, arrived.rows, minlength=len(arrived.names))
        per_name = dict(zip(arrived.names, rows.tolist(), strict=True))
        counts = [int(per_name[name]) for name in stream.names] or [0] * len(stream.number)
        for i, lane in enumerate(assign_lanes(counts, lanes).tolist()):
            states[lane].assign(
                PartitionId(source, i),
                int(stream.number[i]) if stream.known[i] else UNKNOWN,
                idle=bool(stream.idle[i]),
            )
    return states
