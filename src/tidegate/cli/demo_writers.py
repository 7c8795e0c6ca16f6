"""The demo's writers: five sites that deliver as badly as sites do.

The backlog comes site after site. Then all write at once: one runs ahead, one keeps pace, one lags
behind and catches up at the end, one crashes with rows in its buffer and is taken over by another
process's writer with the same id, and one says nothing at all. What is durable in the store is
also put down as a Parquet file, in the same order, for stock Spark to read.

>>> [round(progress_of("slow", tenth / 10), 2) for tenth in (0, 4, 8, 9, 10)]
[0.0, 0.2, 0.4, 0.7, 1.0]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.cli.demo_rows import SCHEMA, SITES, STREAM, Site, Workload
from tidegate.store.store import Store
from tidegate.store.writer import Writer

PIECES: Final = 8
"""Files of a site's backlog."""
STEPS: Final = 30
"""Deliveries of a site while all write."""
CRASH: Final = 10
TAKEN_OVER: Final = CRASH + 3
"""At which steps the crashing site crashes, and somebody goes on with its id."""


@dataclass
class Delivery:
    """Delivers a workload into a store and into a folder of files. One thread, in turn.

    `crashed` and `taken_over` are the moments of that, by the wall clock in seconds; `ended` is the
    one at which the last order was durable.
    """

    store: Store
    orders: Workload
    files: Path
    crashed: float = 0.0
    taken_over: float = 0.0
    ended: float = 0.0
    _writers: dict[Site, Writer] = field(default_factory=dict)
    _backlog: dict[Site, int] = field(default_factory=dict)
    _written: int = 0

    def create(self) -> None:
        """Make the stream, with a partition for every site."""
        self.files.mkdir(parents=True)
        self.store.create_stream(
            STREAM, SCHEMA, event_column="at", routing_key=("site",), segments=len(SITES)
        )

    def backlog(self) -> Iterator[int]:
        """Deliver the backlog, partition after partition; yield the rows of every piece."""
        for site in SITES:
            self._writers[site] = self._open(site)
            rows = self.orders.backlog(site)
            self._backlog[site] = len(rows)
            cuts = [len(rows) * number // PIECES for number in range(PIECES + 1)]
            for first, end in pairwise(cuts):
                yield self._deliver(site, rows.slice(first, end - first))

    def live(self, seconds: float, pause: Callable[[float], None] = time.sleep) -> Iterator[int]:
        """Let all sites write at once for so long; yield the rows of every step."""
        rows = {site: self.orders.live(site) for site in SITES}
        began = time.monotonic()
        # Everybody says something first, so that nobody passes for idle while the others begin.
        yield sum(self._deliver_to(site, rows[site], 0) for site in SITES)
        for step in range(STEPS):
            delivered = 0
            for site in SITES:
                end = progress_of(site, (step + 1) / STEPS)
                if site != "crashing" or step < CRASH or step >= TAKEN_OVER:
                    delivered += self._deliver_to(site, rows[site], end)
                elif step == CRASH:
                    self._crash(site, rows[site], end)
            yield delivered
            pause(max(began + (step + 1) * seconds / STEPS - time.monotonic(), 0.0))
        for site in SITES:
            if site != "quiet":
                self._deliver(site, self.orders.closing(site))
        self.ended = time.time()

    def close(self) -> None:
        """Let everybody go."""
        for writer in self._writers.values():
            writer.close()

    def _open(self, site: Site) -> Writer:
        return self.store.writer(STREAM, site, flush_age=None)

    def _deliver(self, site: Site, rows: pa.Table) -> int:
        if len(rows):
            self._writers[site].append(rows)
            self._writers[site].flush()
            self._put_down(site, rows)
        return len(rows)

    def _deliver_to(self, site: Site, rows: pa.Table, end: float) -> int:
        """Deliver live orders up to a part of them, and at least one.

        Those that are durable are left out: the store knows how many there are, whoever wrote them.
        """
        if site == "crashing" and self.crashed and not self.taken_over:
            self._writers[site] = self._open(site)
            self.taken_over = time.time()
        return self._deliver(site, self._next(site, rows, end))

    def _crash(self, site: Site, rows: pa.Table, end: float) -> None:
        """Take orders, and go without having flushed them and without a goodbye."""
        self._writers[site].append(self._next(site, rows, end))
        self._writers[site].abandon()
        self.crashed = time.time()

    def _next(self, site: Site, rows: pa.Table, end: float) -> pa.Table:
        first = self._writers[site].durable - self._backlog[site]
        return rows.slice(first, max(round(end * len(rows)), 1) - first)

    def _put_down(self, site: Site, rows: pa.Table) -> None:
        """Write a file for stock Spark; it sees it whole or not at all."""
        self._written += 1
        hidden = self.files / f".{self._written:04d}-{site}"
        pq.write_table(rows, hidden)
        hidden.rename(self.files / f"{self._written:04d}-{site}.parquet")


def progress_of(site: Site, passed: float) -> float:
    """Which part of its live orders a site has delivered when a part of the time has passed."""
    if site == "fast":
        return min(2 * passed, 1.0)
    if site == "slow":
        return passed / 2 if passed <= 0.8 else 0.4 + (passed - 0.8) * 3
    return passed
