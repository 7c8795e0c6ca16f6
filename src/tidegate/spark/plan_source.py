"""The plan stream: a streaming source whose every batch is one row, the plan.

The planner's state is the offset, so recovery is Spark's: the row of a batch holds the state before
and the state after, and what the batch has to do follows from these (`planning/replay.py`). The
source runs in a process of its own beside the driver and polls the logs: a cheap counter first, the
facts when it has moved or a timer may have. A poll that finds nothing gives back the offset it was
given, to the byte, and Spark runs no batch.

Facts of Spark's interface that this rests on: `initialOffset` is asked for again in every replay of
batch 0, so it is a constant symbol that the first plan resolves; `start` is always durable; what
`latestOffset` returns may never be used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import to_json
from tidegate.logs.log import facts_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import BatchPlan, Facts, IdleTimers, PlannerState, plan
from tidegate.planning.assignment import lanes_of
from tidegate.planning.facts import Offsets, StreamFacts
from tidegate.spark.spec import Job
from tidegate.store.catalog import queries
from tidegate.store.steps import reached

SCHEMA: Final = "before string, after string, told string"
_BEGINNING: Final = {"state": "beginning", "told": ""}

POLL: Final = 0.1
"""Seconds between two looks at the counters of the logs."""
TIMERS: Final = 1.0
"""Seconds after which a quiet log is planned again: somebody may have become idle."""
HOLD: Final = 3600.0
"""Seconds between two renewals of what a quiet job holds back from retention."""


class PlanSource(DataSource):
    """The source of one job: a class of its own per job, so that no address is an option."""

    job: ClassVar[Job]

    @classmethod
    def name(cls) -> str:
        """Unique per job, for sessions may be shared."""
        return f"tidegate-plans-{cls.job.name}"

    def schema(self) -> str:
        """One row per batch."""
        return SCHEMA

    def streamReader(self, schema: Any) -> PlanReader:
        """The reader that plans."""
        return PlanReader(self.job)


def source_of(job: Job) -> type[PlanSource]:
    """The source class of a job; what Spark pickles has the job inside."""
    return type("JobPlans", (PlanSource,), {"job": job})


class _Batch(InputPartition):
    def __init__(self, before: str, after: str, told: str) -> None:
        self.before, self.after, self.told = before, after, told


class PlanReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
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

    def __getstate__(self) -> dict[str, Any]:
        """What a task gets to read the one row with: nothing."""
        return {}

    # ---- what Spark asks ----

    def initialOffset(self) -> dict[str, Any]:
        """A symbol: the first plan resolves it."""
        return dict(_BEGINNING)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The planner has limits of its own."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
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

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
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

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition with one row."""
        return [_Batch(start["state"], end["state"], end["told"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The plan."""
        assert isinstance(partition, _Batch)
        yield pa.RecordBatch.from_pydict(
            {"before": [partition.before], "after": [partition.after], "told": [partition.told]}
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing depends on it: for the last batch of a run it does not come."""

    def stop(self) -> None:
        """Nothing is open that is not shared."""

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
    return None if text == _BEGINNING["state"] else PlannerState.from_json(text)


def needed(log: StoreLog, job: Job, state: PlannerState, name: str) -> Offsets:
    """The cut behind which everything lies that the job may still read of a stream."""
    stream = state.streams[name]
    if isinstance(state.released, int):
        side = job.query.sides[name]
        reach = side.before + job.policy.allowed_lateness
        found = log.cut_at(state.released - int(reach / timedelta(microseconds=1)))
        # What lies before the start of the query is none of its business.
        return {p: max(offset, stream.start_cut.get(p, 0)) for p, offset in found.items()}
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
