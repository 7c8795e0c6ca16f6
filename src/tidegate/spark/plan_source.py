"""The plan stream: a streaming source whose every batch is one row, the plan.

The planner's state is the offset, so recovery is Spark's: the row of a batch holds the state before
and the state after, and what the batch has to do follows from these (`planning/replay.py`). The
planner runs in the driver where there is a desk (`desk.py`), or else in the process of the source
(`plan_door.py`), and polls the logs: a cheap counter first, the facts when it has moved or a
timer may have. A poll that finds nothing gives back the offset it was given, to the byte, and Spark
runs no batch.

Facts of Spark's interface that this rests on: `start` is always durable, and what is returned may
never be used.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from tidegate.eventtime.watermark import to_json
from tidegate.logs.store_log import StoreLog
from tidegate.planning import BatchPlan, PlannerState, plan
from tidegate.planning.assignment import lanes_of
from tidegate.planning.facts import Offsets
from tidegate.spark.spec import Job
from tidegate.spark.watch import Watch
from tidegate.store.catalog import queries
from tidegate.store.steps import reached

BEGINNING: Final = {"state": "beginning", "told": ""}
"""The offset before the first plan: a symbol, for Spark asks for it again in every replay."""
HOLD: Final = 3600.0
"""Seconds between two renewals of what a quiet job holds back from retention."""


class Planner:
    """Plans, as Spark asks for offsets. One per run."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._store = job.store()
        self._logs = job.open_logs()
        self._watch = Watch(self._store, self._logs)
        self._fresh = PlannerState.fresh(uuid4().hex, job.query.streams)
        self._held = float("-inf")

    # ---- what Spark asks ----

    def stop_at_what_is_there(self) -> None:
        """Go no further than what there is now, by rows and by the clock."""
        self._watch.stop_at_what_is_there()

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """Plan the next batch; the same offset when there is none."""
        before = self._state(start)
        if before.finished or self._watch.nothing_new(start):
            return start
        reached("plan: before")
        self._may_go_on(before)
        now, versions = self._watch.now, self._watch.versions()
        after, batch = plan(
            before,
            self._watch.facts(before, now),
            self._job.query,
            self._job.policy,
            now,
            overrides=self._job.overrides,
            cores=self._job.cores,
        )
        self._keep(after, first=before is self._fresh)
        if not batch.moved:
            self._watch.found_nothing(start, versions)
            return start
        self._watch.found_something()
        reached("plan: made")
        return {"state": after.to_json(), "told": json.dumps(told(batch, self._job.cores))}

    # ---- inside ----

    def _state(self, offset: dict[str, Any]) -> PlannerState:
        return state_of(offset["state"]) or self._fresh

    def _may_go_on(self, before: PlannerState) -> None:
        """Refuse to plan for a query whose record has gone on without us."""
        step = queries.Step(self._job.name, before.lineage, before.batch + 1, "", before.released)
        found = self._store.database.read(lambda on: queries.look(on, self._job.name))
        if found is not None and before.batch == 0 and found.batch > 0:
            raise queries.fenced(step, found)
        queries.check(found, step)

    def _keep(self, state: PlannerState, *, first: bool) -> None:
        """Hold what the job still needs: at its beginning, and now and then while it is quiet."""
        now = time.monotonic()
        if not first and now - self._held < HOLD:
            return
        self._held = now
        for name, log in self._logs.items():
            stream = state.streams[name]
            if isinstance(log, StoreLog) and stream.started:
                cut = needed(log, self._job, state, name)
                log.store.hold(log.name, self._job.name, cut)


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

    Partitions are shared out to lanes, one per core: how many each has, and what it reports, which
    is its local watermark, or IDLE and the maximum over its partitions.
    """
    lanes = lanes_of(batch, cores)
    return {
        "lanes": [[len(lane), *map(to_json, lane.report())] for lane in lanes],
        "rows": {n: int(s.arrived.rows.sum()) for n, s in batch.streams.items()},
        "numbers": {n: to_json(s.stream_number) for n, s in batch.streams.items()},
        "advanced": batch.advanced,
        "rebalanced": sum(s.rebalanced for s in batch.streams.values()),
        "holds": [str(hold) for hold in batch.holds[:10]],
        "warnings": list(batch.warnings),
    }
