"""Idleness needs evidence, not only a timer.

A partition read to its end is idle when its last arrival, by the log's own clock, is at least
`idle_after` older than the newest arrival in its stream. When the whole stream is quiet, or the log
has no arrival clock, it is idle when it was seen unchanged at its end for `idle_after`, by the
polls of this run. A partition that is paused, throttled, unreadable or behind is never idle. A
stream without partitions is idle when it was seen without any for `idle_after`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np

from tidegate.eventtime.instants import Instant, micros
from tidegate.planning.facts import Facts, Flags, Numbers, StreamFacts
from tidegate.planning.state import PlannerState


def idle_partitions(facts: StreamFacts, candidates: Flags, idle_after: timedelta | None) -> Flags:
    """Who of the candidates (read to their end, free to read on) is idle, by the evidence.

    The columns are those of `facts.partitions`.
    """
    partitions = facts.partitions
    if idle_after is None or not candidates.any():
        return np.zeros(len(partitions), dtype=np.bool_)
    patience = micros(idle_after)
    clocked = partitions.has_arrival
    newest = partitions.arrived_at[clocked].max() if clocked.any() else 0
    by_arrival = clocked & (newest - partitions.arrived_at >= patience)
    if facts.quiet_for is None:
        return candidates & by_arrival
    silent = facts.quiet_for >= patience
    whole_stream_quiet = bool((silent | partitions.sealed).all())
    by_timer = silent if whole_stream_quiet else silent & ~clocked
    return candidates & (by_arrival | by_timer)


def empty_stream_idle(facts: StreamFacts, idle_after: timedelta | None) -> bool:
    """Whether nobody waits any longer for the first partition of a stream."""
    return idle_after is not None and 0 < facts.empty_for >= micros(idle_after)


class IdleTimers:
    """How long each partition was seen unchanged at its end: the reader's memory, not its state.

    A gap between two polls counts as one poll interval: time in which nobody looked is no evidence.
    A clock that steps back adds nothing. Time in which a partition was behind does not count.
    """

    def __init__(self, poll_interval: timedelta) -> None:
        self._poll_interval = micros(poll_interval)
        self._last_poll: Instant | None = None
        self._seen: dict[str, dict[str, tuple[int, int]]] = {}
        self._empty: dict[str, int] = {}

    def observe(self, facts: Facts, state: PlannerState, now: Instant) -> Facts:
        """Take note of a poll, and give the facts back with `quiet_for`."""
        passed = 0
        if self._last_poll is not None:
            passed = min(max(now - self._last_poll, 0), self._poll_interval)
        self._last_poll = now
        streams = {
            name: replace(
                stream,
                quiet_for=self._quiet_for(name, stream, state, passed),
                empty_for=self._empty_for(name, stream, passed),
            )
            for name, stream in facts.streams.items()
        }
        return replace(facts, streams=streams)

    def _empty_for(self, name: str, facts: StreamFacts, passed: int) -> int:
        first = name not in self._empty
        empty = not first and len(facts.partitions) == 0
        self._empty[name] = self._empty[name] + passed if empty else 0
        return self._empty[name]

    def _quiet_for(
        self, name: str, facts: StreamFacts, state: PlannerState, passed: int
    ) -> Numbers:
        planned: Mapping[str, int] = state.streams[name].cut()
        before = self._seen.get(name, {})
        now: dict[str, tuple[int, int]] = {}
        latest = facts.partitions.latest.tolist()
        for partition, end in zip(facts.partitions.names, latest, strict=True):
            was, quiet = before.get(partition, (-1, 0))
            unchanged = was == end and planned.get(partition) == end
            now[partition] = (end, quiet + passed if unchanged else 0)
        self._seen[name] = now
        return np.array([quiet for _, quiet in now.values()], dtype=np.int64)
