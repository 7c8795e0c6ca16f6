"""The mark controller: runs the mark cycles of streams, under leases, as one of any number.

Streams are shared among live controllers by bucket; each owns about a k-th. A controller that was
fenced changes nothing with its next write, and notices. A cycle's mark and its state are written in
one transaction, conditionally (`mark_cycle.py`); without any controller process whoever notes or
plans runs a due cycle.

Leases go by the clocks of the machines that share a store. Clocks that disagree by more than the
lease make controllers take buckets from each other; marks stay right, for tokens and the compared
state guard them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sqlalchemy import Connection

from tidegate.errors import TidegateError
from tidegate.eventtime.instants import Instant, micros
from tidegate.marks.mark import Mark
from tidegate.marks.segment import Segment
from tidegate.store.catalog import leases, marks, streams
from tidegate.store.catalog.leases import Tokens
from tidegate.store.catalog.streams import BUCKETS
from tidegate.store.mark_cycle import (
    FIRST_MARK_DELAY,
    EmbeddedMarks,
    Fenced,
    Lease,
    run_cycle,
    run_due_cycle,
    survive,
)
from tidegate.store.scaling import Change, decide
from tidegate.store.shares import shares

if TYPE_CHECKING:
    from tidegate.store.store import Store

__all__ = ["EmbeddedMarks", "MarkController", "run_due_cycle"]

INTERVAL: Final = timedelta(seconds=1)
"""Between two cycles of a controller: what marks may lag behind notes by."""
LEASE: Final = timedelta(seconds=10)
"""How long a silent controller keeps its buckets: ten missed cycles, more than any slow one."""
SCALE_INTERVAL: Final = timedelta(seconds=60)
"""Over which rates are measured: a burst of seconds is no reason to change a stream's shape."""
MAINTAIN_INTERVAL: Final = timedelta(seconds=60)
"""Between two rounds of retention, compaction and sweep: they cost reads of files."""


class MarkController:
    """One controller. `cycle` does all that is due; `run` does so until it is told to stop.

    Not thread safe: one thread runs it. What it measures for scaling is kept in memory only: a new
    owner of a bucket measures anew.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        interval: timedelta = INTERVAL,
        lease: timedelta = LEASE,
        first_mark_delay: timedelta = FIRST_MARK_DELAY,
        scale_interval: timedelta = SCALE_INTERVAL,
        maintain_interval: timedelta = MAINTAIN_INTERVAL,
    ) -> None:
        self.store = store
        # Two processes started with one name are two owners all the same.
        self.owner = f"{name}/{uuid4().hex[:12]}"
        self.interval = interval
        self.lease = lease
        self.first_mark_delay = first_mark_delay
        self.scale_interval = scale_interval
        self.maintain_interval = maintain_interval
        self.tokens: Tokens = {}
        """The buckets it owns, as far as it knows."""
        self._measured: dict[str, tuple[Instant, dict[str, int]]] = {}
        self._maintained_at: Instant | None = None

    def cycle(self) -> dict[str, Mark]:
        """Announce, balance, run the cycles of all its streams, scale, maintain.

        Return the marks that were made, by stream.
        """
        made = self.run_marks()
        self.maintain_when_due()
        return made

    def run_marks(self) -> dict[str, Mark]:
        """Everything of a cycle but the maintenance, which may take long."""
        self.balance()
        made: dict[str, Mark] = {}
        for stream in self.store.database.read(lambda on: marks.due_streams(on, self.tokens)):
            bucket = streams.bucket_of(stream)
            if bucket not in self.tokens:
                continue  # Fenced earlier in this cycle.
            lease = Lease(self.owner, bucket, self.tokens[bucket])
            try:
                done = run_cycle(self.store, stream, lease, first_mark_delay=self.first_mark_delay)
            except Fenced:
                del self.tokens[bucket]
                continue
            if done is not None and done.mark is not None:
                made[stream] = done.mark
        self.scale_when_due()
        return made

    def balance(self) -> None:
        """Announce itself, keep its leases, give up what is too much, take what is free."""
        now = self.store.clock()
        expires_at = now + micros(self.lease)
        if self.store.database.read(leases.missing):
            self.store.database.write(leases.ensure)

        def work(on: Connection) -> Tokens:
            leases.announce(on, self.owner, now, expires_at)
            mine = leases.renew(on, self.owner, expires_at)
            share = shares(leases.owned_by(on, now), BUCKETS)[self.owner]
            surplus = sorted(mine)[share:]
            if surplus:
                leases.release(on, self.owner, surplus)
            wanted = leases.free(on, now)[: share - len(mine)] if len(mine) < share else []
            kept = {bucket: token for bucket, token in mine.items() if bucket not in surplus}
            return kept | leases.take(on, self.owner, wanted, now, expires_at)

        self.tokens = self.store.database.write(work)

    def scale_when_due(self) -> list[str]:
        """Measure its streams, and split or merge by their policy; return those that changed."""
        now, changed = self.store.clock(), list[str]()
        known = self.store.database.read(lambda on: marks.in_buckets(on, self.tokens))
        governed = {s.name: s for s in known if s.config.scaling.target_rows is not None}
        self._measured = {name: m for name, m in self._measured.items() if name in governed}
        for name, stream in governed.items():
            at, before = self._measured.get(name, (None, {}))
            if at is not None and now - at < micros(self.scale_interval):
                continue
            records = self.store.segments(name)
            self._measured[name] = (now, {record.name: record.end for record in records})
            if at is None:
                continue
            seconds = (now - at) / 1_000_000
            rates = {
                r.name: (r.end - before[r.name]) / seconds for r in records if r.name in before
            }
            open_ones = sorted((r.segment for r in records if r.segment.is_open), key=_by_keys)
            change = decide(open_ones, rates, stream.config.scaling)
            if change.sealed and self._scaled(name, change):
                changed.append(name)
        return changed

    def _scaled(self, name: str, change: Change) -> bool:
        try:
            self.store.scale(name, change.sealed, change.opened)
        except TidegateError as failure:
            # Somebody else has scaled or deleted it since it was measured.
            if failure.code not in ("segment-not-open", "unknown-stream"):
                raise
            return False
        return True

    def maintain_when_due(self) -> bool:
        """Run retention, compaction and sweep for its streams; return whether they were due.

        The owner of the first bucket does so for the whole store.
        """
        maintain: Callable[[], object] | None = getattr(self.store, "maintain", None)
        now = self.store.clock()
        at = self._maintained_at
        if maintain is None or 0 not in self.tokens:
            return False
        if at is not None and now - at < micros(self.maintain_interval):
            return False
        self._maintained_at = now
        maintain()
        return True

    def run(self, stop: threading.Event) -> None:
        """Run cycles until told to stop, then give the leases back.

        Maintenance has a thread of its own, so that a long compaction holds no mark.
        """
        upkeep = threading.Thread(target=self._upkeep, args=(stop,), name="tidegate-upkeep")
        upkeep.start()
        try:
            while not stop.is_set():
                survive(self.run_marks)
                stop.wait(self.interval.total_seconds())
        finally:
            stop.set()
            upkeep.join()
            self.retire()

    def retire(self) -> None:
        """Give every lease back, so that others need not wait for their end."""
        self.store.database.write(lambda on: leases.retire(on, self.owner))
        self.tokens = {}

    def _upkeep(self, stop: threading.Event) -> None:
        while not stop.wait(self.interval.total_seconds()):
            survive(self.maintain_when_due)


def _by_keys(segment: Segment) -> Fraction:
    return segment.low
