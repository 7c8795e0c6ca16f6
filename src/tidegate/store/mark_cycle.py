"""One mark cycle of one stream, under a lease; and the embedded way, without a controller.

What a cycle decides is pure. Here it is given the catalog's facts of one moment, and its mark, its
state and the writers it drops are written in one transaction, if the lease is held and the state is
still the one that was seen: a lost race changes nothing.

Without any controller process whoever notes runs a cycle of that stream at most once per interval,
and whoever plans when it is of use: in one transaction that takes the lease of the bucket and gives
it back.
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
LOOK_INTERVAL: Final = timedelta(seconds=1)
"""Between two looks of those who plan, while nobody notes: writers are silent for longer."""

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
    done = _decided(seen, now, first_mark_delay)

    def work(on: Connection) -> None:
        if not leases.hold(on, lease.owner, lease.bucket, lease.token):
            raise Fenced
        _write_down(on, seen, done, now)

    try:
        store.database.write(work)
    except _Lost:
        return None
    return done


def _decided(seen: marks.Schedule, now: Instant, first_mark_delay: timedelta) -> Cycle:
    policy = MarkPolicy(seen.stream.config.mark_timeout, first_mark_delay)
    return cycle(seen.generation, seen.writers, seen.lineage, now=now, policy=policy)


def _write_down(on: Connection, seen: marks.Schedule, done: Cycle, now: Instant) -> None:
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


def run_due_cycle(
    store: Store, stream: str, *, interval: timedelta = EMBEDDED_INTERVAL
) -> Cycle | None:
    """Run a stream's cycle if one is due and nobody holds its bucket; none: nothing was done."""

    def due(cycled_at: Instant) -> bool:
        return not _too_early(store.clock(), cycled_at, interval)

    found = store.database.read(lambda on: marks.last_cycle(on, stream))
    if found is None or not due(found[1]):
        return None
    return _run_at_once(store, stream, lambda seen: due(seen.cycled_at))


def run_useful_cycle(store: Store, stream: str) -> Cycle | None:
    """Run a stream's cycle if it would change anything, however soon after the last.

    For whoever plans: a planner that sees the rows of a note is to see its mark too, or it would
    need one batch for each.
    """

    def useful(seen: marks.Schedule) -> bool:
        done = _decided(seen, store.clock(), FIRST_MARK_DELAY)
        moved = done.mark is not None or done.state != seen.generation
        return moved or bool(done.dropped) or not done.scheduled

    found = store.database.read(lambda on: marks.schedule(on, stream))
    return None if found is None or not useful(found) else _run_at_once(store, stream, useful)


def _run_at_once(
    store: Store, stream: str, wanted: Callable[[marks.Schedule], bool]
) -> Cycle | None:
    """A cycle in one transaction; whoever else comes meanwhile waits for it, and looks again."""
    if store.database.read(leases.missing):
        store.database.write(leases.ensure)
    owner = f"embedded/{uuid4().hex[:12]}"

    def work(on: Connection) -> Cycle | None:
        now = store.clock()
        found = marks.last_cycle(on, stream)
        if found is None or not leases.take(on, owner, [found[0]], now, expires_at=now):
            return None
        done, seen = None, marks.schedule(on, stream)
        if seen is not None and wanted(seen):
            done = _decided(seen, now, FIRST_MARK_DELAY)
            _write_down(on, seen, done, now)
        leases.release(on, owner, [found[0]])
        return done

    try:
        return store.database.write(work)
    except _Lost:
        return None


def _too_early(now: Instant, last: Instant, interval: timedelta) -> bool:
    # A clock that stepped back must not stop the marks until it has caught up.
    return 0 <= now - last < micros(interval)


class EmbeddedMarks:
    """What a store does for the marks when it is its own controller. Thread safe."""

    def __init__(self, store: Store, interval: timedelta = EMBEDDED_INTERVAL) -> None:
        self.store = store
        self.interval = interval
        self._asked_at: dict[str, Instant] = {}
        self._looked: dict[str, tuple[marks.Pulse, Instant]] = {}

    def noted(self, stream: str) -> None:
        """After a note: run the cycle if it is due; the catalog is asked once per interval."""
        now = self.store.clock()
        last = self._asked_at.get(stream)
        if last is not None and _too_early(now, last, self.interval):
            return
        self._asked_at[stream] = now
        # The note stands already, and must not seem to have failed because a cycle did.
        survive(lambda: run_due_cycle(self.store, stream, interval=self.interval))

    def planned(self, stream: str) -> None:
        """Before a plan: run the cycle if it is of use, and there may be one that is.

        That is so when a writer has noted since the last look; and now and then all the same, for a
        silent writer is dropped by a cycle, and where all are silent nobody notes.
        """
        survive(lambda: self._look(stream))

    def _look(self, stream: str) -> None:
        pulse = self.store.database.read(lambda on: marks.pulse(on, stream))
        now, seen = self.store.clock(), self._looked.get(stream)
        if pulse.at_rest or (
            seen is not None and seen[0] == pulse and _too_early(now, seen[1], LOOK_INTERVAL)
        ):
            return
        run_useful_cycle(self.store, stream)
        self._looked[stream] = pulse, now


def survive(act: Callable[[], object]) -> None:
    """Go on after an error that will pass, such as a catalog that does not answer."""
    try:
        act()
    except TidegateError as failure:
        if not failure.retryable:
            raise
        _log.warning("tried again later: %s", failure)
