"""The speed of the pure core: `python -m bench.core`, or `make bench-core`.

One run measures everything: the tracker by itself, the tracker beside one that scans, the planner.
Targets are those of the design; a row without one is there to be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count, cycle
from time import monotonic

import numpy as np
from rich.console import Console
from tests.laws.naive import ScanningTracker

from bench.report import Row, publish
from bench.steady import QUERY, steady_state
from bench.stopwatch import nanoseconds
from tidegate.eventtime.tracker import PartitionedWatermarkTracker, PartitionId
from tidegate.planning import PlannerState, Policy, Release, plan
from tidegate.testing import ManualClock

SMALL, MANY, HUGE = 100, 10_000, 100_000
NEVER_TODAY = timedelta(days=1)

Tracker = PartitionedWatermarkTracker | ScanningTracker


def main() -> None:
    console = Console(highlight=False)
    rows: list[Row] = []
    for part in (updates, reading, idleness, memory, rivals, planning):
        with console.status(f"measuring {part.__name__}"):
            rows.extend(part())
    publish("core", rows, console)


# ---- the tracker ----


def filled(tracker: Tracker, partitions: int) -> Iterator[tuple[PartitionId, int]]:
    """Fill a tracker, and give updates that go round: each is of the slowest, and moves all."""
    tracker.register_source(0, partitions)
    ids = [PartitionId(0, number) for number in range(partitions)]
    tracker.update_many(ids, np.arange(partitions, dtype=np.int64))
    return zip(cycle(ids), count(partitions), strict=False)


def single_update(tracker: Tracker, partitions: int, calls: int) -> float:
    """Nanoseconds of one update that moves the combined watermark."""
    updates = filled(tracker, partitions)
    prepared: list[tuple[PartitionId, int]] = []

    def prepare() -> None:
        prepared[:] = [next(updates) for _ in range(calls)]

    def run() -> None:
        for partition, time in prepared:
            tracker.update_partition(partition, time)

    return nanoseconds(run, before=prepare) / calls


def batch_update(partitions: int) -> float:
    """Nanoseconds of one batch that updates every partition, in any order, and moves the whole."""
    tracker = PartitionedWatermarkTracker()
    filled(tracker, partitions)
    order = np.random.default_rng(7).permutation(partitions)
    jitter = np.random.default_rng(8).integers(0, 1_000, partitions)
    clock = count(1_000, 1_000)
    times = [jitter]

    def prepare() -> None:
        times[0] = jitter + next(clock)

    def run() -> None:
        moved = tracker.update_many(order, times[0])
        assert moved is not None

    return nanoseconds(run, before=prepare)


def updates() -> list[Row]:
    every = f"update in a batch of {MANY:,}, each"
    return [
        Row(f"single update, {n:,} partitions", single_update(made(), n, 200), "ns")
        for n in (SMALL, MANY, HUGE)
    ] + [Row(every, batch_update(MANY) / MANY, "ns", target=50)]


def made() -> PartitionedWatermarkTracker:
    """A tracker that looks at a clock, as one in a job does."""
    return PartitionedWatermarkTracker(idle_timeout=NEVER_TODAY, clock=monotonic)


def reading() -> list[Row]:
    tracker = made()
    filled(tracker, SMALL)
    read = nanoseconds(tracker.current_watermark, calls=1_000)
    return [
        Row(f"reading the combined watermark of {SMALL} partitions", read, "ns", target=500),
        Row(f"a batch that updates all {SMALL} and moves it", batch_update(SMALL) / 1e3, "us"),
    ]


def idleness() -> list[Row]:
    quiet = made()
    filled(quiet, SMALL)
    nothing = nanoseconds(quiet.check_idle_partitions, calls=1_000)
    clock = ManualClock()
    tracker = PartitionedWatermarkTracker(idle_timeout=timedelta(seconds=10), clock=clock.seconds)
    filled(tracker, SMALL)
    everyone = np.arange(SMALL)

    def wake() -> None:
        clock.advance(timedelta(seconds=20))
        # The largest time lies above the last maximum, so that falling idle moves the whole.
        tracker.update_many(everyone, everyone + clock.now())
        clock.advance(timedelta(seconds=20))

    def check() -> None:
        assert tracker.check_idle_partitions() is not None

    return [
        Row(f"idle check over {SMALL}, nobody idle", nothing, "ns", target=1_000),
        Row(f"idle check over {SMALL}, all at once", nanoseconds(check, before=wake) / 1e3, "us"),
    ]


def memory() -> list[Row]:
    rows = []
    for partitions in (MANY, HUGE):
        tracker = made()
        filled(tracker, partitions)
        each = tracker.bytes_held / partitions
        rows.append(Row(f"memory per partition, of {partitions:,}", each, "bytes", target=64))
    # The worst case: just past a power of two, and grown by steps, so with room to spare.
    grown = made()
    grown.register_source(0, 0)
    for number in range((1 << 13) + 1):
        grown.add_partition(PartitionId(0, number))
    each = grown.bytes_held / grown.partition_count(0)
    name = f"memory per partition, {grown.partition_count(0):,} added one by one"
    return [*rows, Row(name, each, "bytes", target=64)]


def rivals() -> list[Row]:
    """The same updates by a tracker that looks at every partition each time."""
    scanning = ScanningTracker(idle_timeout=NEVER_TODAY, clock=monotonic)
    slow = single_update(scanning, MANY, 5)
    ratio = slow / single_update(made(), MANY, 200)
    column = np.random.default_rng(7).integers(0, 1 << 40, MANY)
    return [
        Row(f"single update by scanning {MANY:,} partitions", slow / 1e3, "us"),
        Row("the tracker is faster by", ratio, "times", target=10, at_least=True),
        Row(
            f"for comparison, one numpy minimum of {MANY:,}",
            nanoseconds(column.min, calls=100) / 1e3,
            "us",
        ),
    ]


# ---- the planner ----


def planning() -> list[Row]:
    rows = []
    for partitions in (SMALL, MANY, HUGE):
        for release in Release:
            rows.extend(_planning(partitions, release))
    return rows


def _planning(partitions: int, release: Release) -> list[Row]:
    policy = Policy(release=release)
    state, facts = steady_state(partitions, policy)
    rounds = 5 if partitions == HUGE else 15
    calls = 50 if partitions == SMALL else 1

    def run() -> PlannerState:
        after, batch = plan(state, facts, QUERY, policy, now=0)
        assert batch.advanced
        assert release is Release.ARRIVAL or batch.slice is not None
        return after

    text = run().to_json()
    target = 50.0 if partitions == MANY else None
    name = f"planning {partitions:,} partitions, by {release.value}"

    def milliseconds(act: Callable[[], object]) -> float:
        return nanoseconds(act, calls=calls, rounds=rounds) / 1e6

    return [
        Row(name, milliseconds(run), "ms", target=target),
        Row("  and its state to JSON", milliseconds(run().to_json), "ms"),
        Row("  and back", milliseconds(lambda: PlannerState.from_json(text)), "ms"),
        Row("  which takes, per partition", len(text) / partitions, "bytes"),
    ]


if __name__ == "__main__":
    main()
