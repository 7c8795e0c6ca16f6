"""How Nexmark's events are dealt: from (partition, offset) to event numbers and event times.

Events are dealt in rounds of 50, so every partition has the same mix, and shuffled inside groups.
The moment an event is generated never goes back along a partition; its event time is that moment,
moved by the partition's skew and, for a delayed one, to before its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.eventtime.instants import Instant
from tidegate.logs.draws import Draws
from tidegate.logs.nexmark_events import AUCTION, BID, MIX, PERSON, ROUND
from tidegate.planning.facts import Numbers, numbers

KINDS: Final = {"event": None, "person": PERSON, "auction": AUCTION, "bid": BID}

_SHUFFLE, _DELAYED, _DELAY = 90, 91, 92


@dataclass(frozen=True)
class Options:
    """Everything the rows follow from."""

    kind: str
    total: int | None
    partitions: int
    seed: int
    rate: int
    start_at: Instant
    shuffle: int
    delayed: float
    delay: int
    skew: tuple[int, ...]
    pauses: tuple[tuple[int, int, int], ...]
    hot: tuple[int, int, int]
    span_rows: int
    live: bool


class Deal:
    """Arithmetic on columns of offsets; it keeps nothing."""

    def __init__(self, options: Options, draws: Draws) -> None:
        self.options = options
        self._draws = draws

    def per_round(self) -> tuple[int, int]:
        """How many rows of this stream a round has, and where in the round they begin."""
        kind = KINDS[self.options.kind]
        return (ROUND, 0) if kind is None else (MIX[kind], sum(MIX[:kind]))

    def rows(self, partition: str) -> int:
        """How many rows a partition will have in all."""
        total, place = self.options.total, int(partition)
        size, first = self.per_round()
        if total is None:  # no end but that of time: instants have 61 bits
            lasting = ((1 << 60) // 1_000_000 * self.options.rate) // ROUND
            return min(lasting // self.options.partitions, 1 << 40) * size
        rounds, rest = divmod(total, ROUND)
        whole = len(range(place, rounds, self.options.partitions))
        last = rounds % self.options.partitions == place
        return whole * size + (min(max(rest - first, 0), size) if last else 0)

    def numbered(self, partition: str, offsets: Numbers) -> Numbers:
        """The event numbers of some offsets."""
        size, first = self.per_round()
        places = self._shuffled(partition, offsets)
        rounds = places // size * self.options.partitions + int(partition)
        return rounds * ROUND + first + places % size

    def _shuffled(self, partition: str, offsets: Numbers) -> Numbers:
        """Offsets permuted inside their groups; the last group of a bounded log may be short."""
        group = self.options.shuffle
        if group == 1:
            return offsets
        begin = offsets // group * group
        size = np.minimum(group, self.rows(partition) - begin)
        salt = self._draws.below(begin * self.options.partitions + int(partition), _SHUFFLE, size)
        turned = np.empty_like(offsets)
        for length in np.unique(size).tolist():
            some = size == length
            turned[some] = ((offsets - begin)[some] * _stride(length) + salt[some]) % length
        return begin + turned

    def generated(self, partition: str, places: Numbers) -> Numbers:
        """When the event at a place, before the shuffle, is generated: never goes back."""
        size, first = self.per_round()
        rounds = places // size * self.options.partitions + int(partition)
        return self._moment(int(partition), rounds * ROUND + first + places % size)

    def _moment(self, partition: int, events: Numbers) -> Numbers:
        seconds, rest = np.divmod(events, self.options.rate)
        since = seconds * 1_000_000 + rest * 1_000_000 // self.options.rate
        paused = np.zeros(len(events), dtype=np.int64)
        for which, after, length in self.options.pauses:
            if which == partition:
                paused += np.where(since >= after, length, 0)
        found: Numbers = self.options.start_at + since + paused
        return found

    def times(self, partition: str, offsets: Numbers) -> Numbers:
        """The event times of some offsets."""
        events = self.numbered(partition, offsets)
        times = self._moment(int(partition), events) + self.options.skew[int(partition)]
        if self.options.delayed:
            late = self._draws.chance(events, _DELAYED, self.options.delayed)
            delay = self._draws.unit(events, _DELAY) * self.options.delay
            times = times - np.where(late, delay, 0).astype(np.int64)
        return times

    def least_from(self, partition: str, offset: int) -> Instant:
        """The smallest event time of this row and all after it."""
        group = self.options.shuffle
        shift = self.options.skew[int(partition)]
        if self.options.delayed:
            shift -= self.options.delay
        end = min((offset // group + 1) * group, self.rows(partition))
        found = int(self.times(partition, np.arange(offset, end)).min())
        # Groups are generated in order: past this one only a delay can bring a smaller time.
        while end < self.rows(partition):
            if int(self.generated(partition, numbers([end]))[0]) + shift >= found:
                break
            ahead = np.arange(end, min(end + 4096 * group, self.rows(partition)))
            found = min(found, int(self.times(partition, ahead).min()))
            end += len(ahead)
        return found


def _stride(size: int) -> int:
    """A step that visits all places of a group, far from its neighbours."""
    step = max(round(size * 0.618), 1)
    while math.gcd(step, size) != 1:
        step += 1
    return step
