"""The plan stream: a streaming source whose every batch is one row, the plan.

The planner's state is the offset, so recovery is Spark's: the row of a batch holds the state before
and the state after, and what the batch has to do follows from these (`planning/replay.py`). The
planner runs in a process of its own beside the driver, behind `plan_door.py`, and polls the logs: a
cheap counter first, the facts when it has moved or a timer may have. A poll that finds nothing
gives back the offset it was given, to the byte, and Spark runs no batch.

Facts of Spark's interface that this rests on: `start` is always durable, and what is returned may
never be used.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import numpy as np

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import to_json
from tidegate.logs.log import facts_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import BatchPlan, Facts, IdleTimers, PlannerState, plan
from tidegate.planning.assignment import lanes_of
from tidegate.planning.facts import Offsets, StreamFacts
from tidegate.spark.plan_door import BEGINNING
from tidegate.spark.spec import Job
from tidegate.store.catalog import queries
from tidegate.store.steps import reached

POLL: Final = 0.1
"""Seconds between two looks at the counters of the logs."""
TIMERS: Final = 1.0
"""Seconds after which a quiet log is planned again: somebody may have become idle."""
HOLD: Final = 3600.0
"""Seconds between two renewals of what a quiet job holds back from retention."""


class Planner:
    """Plans, as Spark asks for offsets. One per run; timers live here, nothing else does."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._store = job.store()
        self._logs = job.open_logs()
        self._timers = IdleTimers(timedelta(seconds=2 * TIMERS))
        self._fresh = PlannerState.fresh(uuid4().hex, job.query.streams)
        self._ends: dict[str, Offsets] | None = None
        self._now: Instant | None = None
        self._quiet: tuple[Any, Any] | None = None
        self._polled = self._planned = self._held = float("-inf")

    # ---- what Spark asks ----

    def stop_at_what_is_there(self) -> None:
        """Go no further than what there is now, by rows and by the clock."""
        self._now = self._store.clock()
        self._ends = {
            name: dict(
                zip(
                    (facts := log.snapshot({}).partitions).names,
                    facts.latest.tolist(),
                    strict=True,
                )
            )
            for name, log in self._logs.items()
        }

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """Plan the next batch; the same offset when there is none."""
        before = self._state(start)
        if before.finished or self._nothing_new(start):
            return start
        reached("plan: before")
        self._may_go_on(before)
        now = self._store.clock() if self._now is None else self._now
        versions = self._versions()
        facts = self._timers.observe(self._seen(facts_of(self._logs, before)), before, now)
        after, batch = plan(
            before,
            facts,
            self._job.query,
            self._job.policy,
            now,
            overrides=self._job.overrides,
            cores=self._job.cores,
        )
        self._planned = time.monotonic()
        self._keep(after, first=before is self._fresh)
        if not batch.moved:
            self._quiet = (start, versions)
            return start
        self._quiet = None
        reached("plan: made")
        return {"state": after.to_json(), "told": json.dumps(told(batch, self._job.cores))}

    # ---- inside ----

    def _state(self, offset: dict[str, Any]) -> PlannerState:
        return state_of(offset["state"]) or self._fresh

    def _nothing_new(self, start: dict[str, Any]) -> bool:
        """Wait for the next poll, and look whether anything can have changed since the last."""
        if self._quiet is None or self._quiet[0] != start:
            return False
        if self._ends is not None:
            return True
        time.sleep(max(self._polled + POLL - time.monotonic(), 0.0))
        self._polled = time.monotonic()
        unchanged = self._quiet[1] == self._versions()
        return bool(unchanged) and self._polled - self._planned < TIMERS

    def _versions(self) -> dict[str, int]:
        return {name: log.version() for name, log in self._logs.items()}

    def _may_go_on(self, before: PlannerState) -> None:
        """Refuse to plan for a query whose record has gone on without us."""
        step = queries.Step(self._job.name, before.lineage, before.batch + 1, "", before.released)
        found = self._store.database.read(lambda on: queries.look(on, self._job.name))
        if found is not None and before.batch == 0 and found.batch > 0:
            raise queries.fenced(step, found)
        queries.check(found, step)

    def _keep(self, state: PlannerState, *, first: bool) -> None:
        """Hold what the job still needs: at its beginning, and now and then while it is quiet."""
        if not first and self._planned - self._held < HOLD:
            return
        self._held = self._planned
        for name, log in self._logs.items():
            stream = state.streams[name]
            if isinstance(log, StoreLog) and stream.started:
                cut = needed(log, self._job, state, name)
                log.store.hold(log.name, self._job.name, cut)

    def _seen(self, facts: Facts) -> Facts:
        """The facts with what has become unreadable, up to where this run may go."""
        found = dict(facts.streams)
        for name, log in self._logs.items():
            if isinstance(log, StoreLog):
                found[name] = log.checked(found[name])
            if self._ends is not None:
                found[name] = _up_to(found[name], self._ends[name])
        return replace(facts, streams=found)


def state_of(text: str) -> PlannerState | None:
    """A state from an offset; None at the beginning."""
    return None if text == BEGINNING["state"] else PlannerState.from_json(text)


def needed(log: StoreLog, job: Job, state: PlannerState, name: str) -> Offsets:
    """The cut behind which everything lies that the job may still read of a stream."""
    stream = state.streams[name]
    if isinstance(state.released, int):
        side = job.query.sides[name]
        reach = side.before + job.policy.allowed_lateness
        found = log.cut_at(state.released - int(reach / timedelta(microseconds=1)))
        # What lies before the start of the query is none of its business.
        cut = {p: max(offset, stream.start_cut.get(p, 0)) for p, offset in found.items()}
        # Rows below A that wait for the next release may lie in a partition that is all behind.
        for p, offset in (stream.late_cut or {}).items():
            cut[p] = min(cut.get(p, offset), offset)
        return cut
    return stream.start_cut


def told(batch: BatchPlan, cores: int) -> dict[str, Any]:
    """What an observer wants to know of a plan, beside the states.

    Partitions are shared out to lanes, one per core: how many each has, and its local watermark.
    """
    lanes = lanes_of(batch, cores)
    return {
        "lanes": [[len(lane), to_json(lane.local_watermark())] for lane in lanes],
        "rows": {n: int(s.arrived.rows.sum()) for n, s in batch.streams.items()},
        "advanced": batch.advanced,
        "rebalanced": sum(s.rebalanced for s in batch.streams.values()),
        "holds": [str(hold) for hold in batch.holds[:10]],
        "warnings": list(batch.warnings),
    }


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
