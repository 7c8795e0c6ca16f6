"""One mark cycle of one stream, under a lease; and the embedded way, without a controller.

What a cycle decides is pure. Here it is given the catalog's facts of one moment, and its mark, its
state and the writers it drops are written in one transaction, if the lease is held and the state is
still the one that was seen: a lost race changes nothing.

Without any controller process whoever notes or plans runs a due cycle of that stream, under a short
lease of its bucket, at most once per interval.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sqlalchemy import Connection

from tidegate.errors import TidegateError
from tidegate.eventtime.instants import Instant, micros
from tidegate.marks.generation import Cycle, MarkPolicy, cycle
from tidegate.store.catalog import leases, marks

if TYPE_CHECKING:
    from tidegate.store.store import Store

FIRST_MARK_DELAY: Final = timedelta(0)
"""Before the first mark of a stream: none, for a writer that will note registers when it opens."""
EMBEDDED_INTERVAL: Final = timedelta(milliseconds=200)
"""Between two cycles run by those who note: two polls of an idle job."""
EMBEDDED_LEASE: Final = timedelta(seconds=5)
"""For one embedded cycle; it is given back at its end, and lapses only after a crash."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lease:
    """A bucket's lease as its owner knows it."""

    owner: str
    bucket: int
    token: int


class Fenced(Exception):
    """The lease was taken over; the transaction is rolled back."""


class _Lost(Exception):
    """Somebody else has run the cycle; the transaction is rolled back."""


def run_cycle(
    store: Store, stream: str, lease: Lease, *, first_mark_delay: timedelta = FIRST_MARK_DELAY
) -> Cycle | None:
    """Run one cycle of a stream; none when it is gone or somebody else was faster.

    Raises `Fenced` when the lease is not held any more.
    """
    seen = store.database.read(lambda on: marks.schedule(on, stream))
    if seen is None:
        return None
    now = store.clock()
    policy = MarkPolicy(seen.stream.config.mark_timeout, first_mark_delay)
    done = cycle(seen.generation, seen.writers, seen.lineage, now=now, policy=policy)

    def work(on: Connection) -> None:
        if not leases.hold(on, lease.owner, lease.bucket, lease.token):
            raise Fenced
        if not marks.save(on, seen, done.state, now):
            raise _Lost
        if done.mark is not None and not marks.append(
            on, seen.stream.id, done.mark, after=seen.last_number, now=now
        ):
            raise _Lost
        for gone in done.dropped:
            marks.drop_writer(on, seen.stream.id, gone.writer, seen.versions[gone.writer])
        if not done.scheduled:
            marks.unschedule(on, seen.stream.id)

    try:
        store.database.write(work)
    except _Lost:
        return None
    return done


def run_due_cycle(
    store: Store, stream: str, *, interval: timedelta = EMBEDDED_INTERVAL
) -> Cycle | None:
    """Run a stream's cycle if one is due and nobody holds its bucket; none: nothing was done."""
    found = store.database.read(lambda on: marks.last_cycle(on, stream))
    now = store.clock()
    # A clock that stepped back must not stop the marks until it has caught up.
    if found is None or 0 <= now - found[1] < micros(interval):
        return None
    owner, bucket = f"embedded/{uuid4().hex[:12]}", found[0]
    if store.database.read(leases.missing):
        store.database.write(leases.ensure)
    expires_at = now + micros(EMBEDDED_LEASE)
    taken = store.database.write(lambda on: leases.take(on, owner, [bucket], now, expires_at))
    if bucket not in taken:
        return None
    try:
        return run_cycle(store, stream, Lease(owner, bucket, taken[bucket]))
    except Fenced:
        return None
    finally:
        store.database.write(lambda on: leases.release(on, owner, [bucket]))


class EmbeddedMarks:
    """What a store does after each note when it is its own controller. Thread safe."""

    def __init__(self, store: Store, interval: timedelta = EMBEDDED_INTERVAL) -> None:
        self.store = store
        self.interval = interval
        self._looked_at: dict[str, Instant] = {}

    def __call__(self, stream: str) -> None:
        """Run the stream's cycle if it is due; the catalog is asked once per interval."""
        now = self.store.clock()
        if (
            0
            <= now - self._looked_at.get(stream, now - micros(self.interval))
            < micros(self.interval)
        ):
            return
        self._looked_at[stream] = now
        # The note stands already, and must not seem to have failed because a cycle did.
        survive(lambda: run_due_cycle(self.store, stream, interval=self.interval))


def survive(act: Callable[[], object]) -> None:
    """Go on after an error that will pass, such as a catalog that does not answer."""
    try:
        act()
    except TidegateError as failure:
        if not failure.retryable:
            raise
        _log.warning("tried again later: %s", failure)
