"""The progress of a job, from any process: frontiers that are kept with every commit.

job = JobProgress.of("shop", "orders by minute")
job.wait_for(parse_instant("2026-11-16T12:00:00Z"), timedelta(minutes=1))
job.source("orders").frontier(), job.figures()["lost"]
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.progress.frontier import Progress, ProgressHandle
from tidegate.progress.messages import Ending
from tidegate.store.catalog import progress, queries
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

POLL = timedelta(milliseconds=50)


class StoredFrontier(Progress):
    """The frontier of one node of a job, as the catalog has it."""

    def __init__(self, store: Store, job: str, node: str) -> None:
        self._store, self._job, self._node = store, job, node

    def frontier(self) -> Known:
        """What the last commit said; UNKNOWN before the first."""
        told = self._store.database.read(lambda on: progress.told(on, self._job))
        return told[self._node].frontier if self._node in told else UNKNOWN

    @property
    def ending(self) -> Ending | None:
        """Graceful, when all inputs have ended and everything was given out."""
        found = self._store.database.read(lambda on: queries.look(on, self._job))
        return Ending.GRACEFUL if found is not None and found.finished else None


class JobProgress:
    """A job and its nodes. Every question is a read of the catalog; nothing is kept here."""

    def __init__(self, store: Store, job: str) -> None:
        self._store, self._job = store, job

    @staticmethod
    def of(store: Store | str | Path, job: str, *, data: str | None = None) -> JobProgress:
        """The progress of a job by the address of its store."""
        found = store if isinstance(store, Store) else shared_store(store, data)
        return JobProgress(found, job)

    def handle(self) -> ProgressHandle:
        """The job's: the minimum over its sinks."""
        sinks = [node for node in self.nodes() if node.startswith("sink:")]
        return ProgressHandle.from_frontiers(
            StoredFrontier(self._store, self._job, node) for node in sinks or ["job"]
        )

    def source(self, stream: str) -> ProgressHandle:
        """Of one of its streams."""
        return self._node(f"source:{stream}")

    def sink(self, name: str) -> ProgressHandle:
        """Of one of its sinks."""
        return self._node(f"sink:{name}")

    def frontier(self) -> Known:
        """No later result is before it."""
        return self.handle().frontier()

    def wait_for(self, time_: Instant, timeout: timedelta) -> bool:
        """Wait until nothing before a time is still to come; return whether it came to that."""
        began = time.monotonic()
        while not self.handle().complete_before(time_):
            if time.monotonic() - began > timeout.total_seconds():
                return False
            time.sleep(POLL.total_seconds())
        return True

    def finished(self) -> bool:
        """Whether all its inputs have ended and everything was given out."""
        found = self._store.database.read(lambda on: queries.look(on, self._job))
        return found is not None and found.finished

    def nodes(self) -> list[str]:
        """The names of all nodes."""
        return list(self._store.database.read(lambda on: progress.told(on, self._job)))

    def detail(self, node: str = "job") -> Mapping[str, Any]:
        """What the last batch told of a node."""
        told = self._store.database.read(lambda on: progress.told(on, self._job))
        return told[node].detail if node in told else {}

    def figures(self) -> dict[str, Any]:
        """All that was counted, and how fast: a JSON value."""
        found = self._store.database.read(lambda on: queries.look(on, self._job))
        totals = dict(found.totals) if found is not None else {}
        totals.pop("plan", None)
        # Behind the gate every source counts for itself.
        for part in self._store.database.read(lambda on: queries.parts(on, self._job)):
            for name in ("rows_in", "late", "lost", "bad", "advances", "rebalances"):
                totals[name] = totals.get(name, 0) + part.totals.get(name, 0)
            totals["partitions"] = {**totals.get("partitions", {}), **part.totals["partitions"]}
        seconds = totals.get("seconds", 0.0)
        return {
            "job": self._job,
            "batches": 0,
            "rows_in": 0,
            "rows_out": 0,
            "late": 0,
            "lost": 0,
            "bad": 0,
            **totals,
            "rows_per_second": round(totals.get("rows_in", 0) / seconds) if seconds else 0,
            "finished": found.finished if found is not None else False,
        }

    def _node(self, node: str) -> ProgressHandle:
        known = self.nodes()
        if node not in known:
            raise errors.unknown_job_node(self._job, node, known)
        return ProgressHandle.from_frontiers([StoredFrontier(self._store, self._job, node)])
