"""Watching logs: what a planner sees of them, as Spark asks for offsets.

A poll is a cheap counter first, and the facts when it has moved or a timer may have. A run that
ends with what there is sees nothing that came after it began. Timers live here, in the memory of
the process that plans, and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import numpy as np

from tidegate.eventtime.instants import Instant
from tidegate.logs.log import Log, facts_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import Facts, IdleTimers, PlannerState
from tidegate.planning.facts import Offsets, StreamFacts
from tidegate.store.store import Store

POLL: Final = 0.1
"""Seconds between two looks at the counters of logs that are quiet."""
FIRST_POLL: Final = 0.01
"""The same right after something was found; it doubles with every look that finds nothing."""
TIMERS: Final = 1.0
"""Seconds after which a quiet log is planned again: somebody may have become idle."""


class Watch:
    """Polls the logs of one query, or of one source of it, for one run."""

    def __init__(self, store: Store, logs: Mapping[str, Log]) -> None:
        self._store = store
        self._logs = logs
        self._timers = IdleTimers(timedelta(seconds=2 * TIMERS))
        self._ends: dict[str, Offsets] | None = None
        self._now: Instant | None = None
        self._quiet: tuple[Any, Any] | None = None
        self._polled = self._looked = float("-inf")
        self._pause = FIRST_POLL

    def stop_at_what_is_there(self) -> None:
        """Go no further than what there is now, by rows and by the clock."""
        self._now = self._store.clock()
        self._ends = {name: _latest(log) for name, log in self._logs.items()}

    @property
    def now(self) -> Instant:
        """The clock of the store; where a run ends with what there is, as it was then."""
        return self._store.clock() if self._now is None else self._now

    def nothing_new(self, start: Any, beside: Any = None) -> bool:
        """Wait for the next poll, and look whether anything can have changed since the last.

        `beside` is whatever else a plan depends on; it is compared, and nothing more.
        """
        if self._quiet is None or self._quiet[0] != start:
            return False
        if self._ends is not None:
            return bool(self._quiet[1][1] == beside)
        time.sleep(max(self._polled + self._pause - time.monotonic(), 0.0))
        self._polled = time.monotonic()
        self._pause = min(2 * self._pause, POLL)
        unchanged = self._quiet[1] == (self.versions(), beside)
        return unchanged and self._polled - self._looked < TIMERS

    def versions(self) -> dict[str, int]:
        """The counters of the logs: to be taken before the facts that they stand for."""
        return {name: log.version() for name, log in self._logs.items()}

    def facts(self, state: PlannerState, now: Instant) -> Facts:
        """What there is behind a state, with what has become unreadable or quiet."""
        self._looked = time.monotonic()
        facts = facts_of(self._logs, state)
        found = dict(facts.streams)
        for name, log in self._logs.items():
            if isinstance(log, StoreLog):
                found[name] = log.checked(found[name])
            if self._ends is not None:
                found[name] = _up_to(found[name], self._ends[name])
        return self._timers.observe(replace(facts, streams=found), state, now)

    def found_nothing(self, start: Any, versions: Any, beside: Any = None) -> None:
        """Remember that a plan from here, with these counters, moved nothing."""
        self._quiet = (start, (versions, beside))

    def found_something(self) -> None:
        """Forget about that, and look again soon: where something came, more may follow."""
        self._quiet = None
        self._pause = FIRST_POLL


def _latest(log: Log) -> Offsets:
    partitions = log.snapshot({}).partitions
    return dict(zip(partitions.names, partitions.latest.tolist(), strict=True))


def _up_to(facts: StreamFacts, ends: Offsets) -> StreamFacts:
    """The facts as if nothing had come since: for a run that ends with what there was."""
    partitions = facts.partitions
    latest = np.array(
        [
            min(int(latest), ends.get(name, int(start)))
            for name, latest, start in zip(
                partitions.names, partitions.latest, partitions.start, strict=True
            )
        ],
        dtype=np.int64,
    )
    place = {name: i for i, name in enumerate(partitions.names)}
    of_span = np.array([latest[place[name]] for name in facts.spans.names], dtype=np.int64)
    below = of_span[facts.spans.partition] if len(facts.spans) else np.zeros(0, dtype=np.int64)
    kept = facts.spans.start < below
    spans = facts.spans.where(kept)
    end = np.minimum(spans.end, below[kept])
    share = end - spans.start
    return replace(
        facts,
        partitions=replace(partitions, latest=latest),
        spans=replace(spans, end=end, rows=share),
    )
