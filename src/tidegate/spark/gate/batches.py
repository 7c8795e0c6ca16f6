"""Running a batch of a gated query: what the operators gave, visible once.

The sources have said in the catalog how far they were when the batch was made, and say nothing new
before it is done. So the frontier that is noted here is exact, also when the batch runs again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant, parse_instant
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.spark import totals
from tidegate.spark.gate.offsets import fingerprint
from tidegate.spark.gate.siblings import Said, said, sources_of
from tidegate.spark.results import write_frame
from tidegate.spark.sinks.sink import Batch, FrameSink, Sink, agree
from tidegate.store.catalog import progress, queries
from tidegate.store.catalog.chunks import SegmentSealed
from tidegate.store.shared import shared_store
from tidegate.store.steps import reached
from tidegate.store.store import Store


@dataclass(frozen=True)
class GateRun:
    """A gated query as a value: where its record is, and where its results go."""

    name: str
    catalog: str
    data: str | None
    sink: Sink
    columns: pa.Schema
    time_behind: int | None
    """How far behind the watermark results may be; None: not at all, and there is one source."""
    checkpoint: str

    def store(self) -> Store:
        """The store that keeps the query's record and its sink's stream."""
        return shared_store(self.catalog, self.data)


_runners: dict[str, GateRunner] = {}


def runner_of(job: GateRun) -> GateRunner:
    """The runner of a query in this process."""
    found = _runners.get(job.name)
    return found if found is not None and found.job is job else fresh_runner(job)


def fresh_runner(job: GateRun) -> GateRunner:
    """A new one, for a new run: its checkpoint may be another."""
    _runners[job.name] = GateRunner(job)
    return _runners[job.name]


class GateRunner:
    """Runs the batches of one query, one after the other."""

    def __init__(self, job: GateRun) -> None:
        self.job = job
        self.store = job.store()
        self.session: SparkSession | None = None
        """The session in which the query was started, if that was in this process.

        Batches come with a copy of it, which knows of no query.
        """
        self._lineage: str | None = None
        self._told = -1

    def run(self, rows: DataFrame, number: int) -> None:
        """Write and commit a batch, unless that has been done."""
        began = time.monotonic()
        reached("gate batch: begun")
        spark = rows.sparkSession
        words = self._words()
        found = self.store.database.read(lambda on: queries.look(on, self.job.name))
        frontier = self._frontier(words)
        if found is not None:
            frontier = later(found.released, frontier)  # what was said holds
        operators = self._operators(self.session or spark, len(words))
        finished = bool(words) and all(word.finished for word in words.values())
        plan = {name: word.plan for name, word in words.items()}
        step = queries.Step(
            self.job.name,
            self._lineage_of(spark),
            number + 1,
            fingerprint(plan),
            frontier,
            finished,
        )
        queries.check(found, step)
        if found is not None and found.batch == step.batch:
            if not agree(found.totals.get("plan", {}), plan):
                raise queries.fenced(step, found)
            _run_through(rows)
            return
        batch = Batch(
            job=step.name,
            lineage=step.lineage,
            number=step.batch,
            interval=None,
            watermark=UNKNOWN if frontier is UNKNOWN else frontier + (self.job.time_behind or 0),
            frontier=frontier,
            finished=finished,
            columns=self.job.columns,
            plan=json.dumps(plan, sort_keys=True),
        )
        written, count = self._written(rows, batch)
        reached("gate batch: before commit")
        noted = frontier is not UNKNOWN and (found is None or found.released != frontier)
        counted = totals.Counted(
            rows_out=count, seconds=time.monotonic() - began, noted=noted, kernel="gate"
        )
        self._commit(step, batch, written, counted, operators, plan)
        reached("gate batch: committed")

    # ---- what the sources have said ----

    def _said(self) -> dict[str, Said]:
        nodes = self.store.database.read(lambda on: progress.told(on, self.job.name))
        return {name: said(node) for name, node in sources_of(nodes).items()}

    def _words(self) -> dict[str, Said]:
        words = self._said()
        if not words:
            raise errors.gate_without_sources(self.job.name)
        if len(words) > 1 and self.job.time_behind is None:
            raise errors.time_behind_missing(self.job.name, f"it has {len(words)} sources")
        return words

    def _frontier(self, words: Mapping[str, Said]) -> Known:
        """What Spark was told for the start of this batch, the least of all sources.

        After a batch that ran again Spark knows of the sources that were in it, and no others: so
        of several sources nothing is known until each has repeated its watermark.
        """
        if len(words) > 1 and any(word.asked <= 1 for word in words.values()):
            return UNKNOWN
        sent = [word.start_sent for word in words.values()]
        known = [one for one in sent if one is not UNKNOWN]
        if not sent or len(known) < len(sent):
            return UNKNOWN
        return min(known) - (self.job.time_behind or 0)

    def _lineage_of(self, spark: SparkSession) -> str:
        """The query as its checkpoint knows it: another checkpoint is another history."""
        if self._lineage is None:
            [row] = spark.read.text(f"{self.job.checkpoint}/metadata").collect()
            self._lineage = str(json.loads(row.value)["id"])
        return self._lineage

    # ---- results ----

    def _written(self, rows: DataFrame, batch: Batch) -> tuple[Sequence[Any], int]:
        sink = self.job.sink
        done = sink.settled(batch)
        if done is not None:
            _run_through(rows)
            return [], done
        written: Sequence[Any] = []
        if isinstance(sink, FrameSink):
            count = sink.take(rows, batch)
        else:
            written = write_frame(sink, self.job, batch, rows)
            count = sink.rows_of(written)
        reached("gate batch: before settle")
        sink.settle(batch, written)
        return written, count

    def _operators(self, spark: SparkSession, sources: int) -> dict[str, Any]:
        """What Spark last told of its own operators; it tells of a batch when that is over."""
        for query in spark.streams.active:
            if query.name == self.job.name:
                return self._new_in(query, sources)
        return {}

    def _new_in(self, query: StreamingQuery, sources: int) -> dict[str, Any]:
        # Of a query that waits it tells too, with the number of the batch that is to come.
        told = (p for p in query.recentProgress if "addBatch" in p["durationMs"])
        new = [p for p in told if p["batchId"] > self._told]
        if not new:
            return {}
        if len(new[-1]["sources"]) > sources:
            raise errors.gate_with_strangers(self.job.name, len(new[-1]["sources"]), sources)
        self._told = new[-1]["batchId"]
        found = operators_of(new[-1])
        for before in new[:-1]:
            for name, detail in operators_of(before).items():
                found[name]["dropped"] += detail["dropped"]
        return found

    def tell_last(self, query: StreamingQuery) -> None:
        """At the end of a run: what Spark tells of its last batch; it may have ended before one."""
        said = self._said()
        operators = self._new_in(query, len(said)) if said else {}
        if not operators:
            return

        def work(on: Connection) -> None:
            record = queries.look(on, self.job.name, lock=True)
            if record is not None:
                queries.count(on, self.job.name, _with_dropped(record.totals, operators))
                self._tell_operators(on, operators, self.store.clock())

        self.store.database.write(work)

    # ---- the one transaction ----

    def _commit(
        self,
        step: queries.Step,
        batch: Batch,
        written: Sequence[Any],
        counted: totals.Counted,
        operators: Mapping[str, Any],
        plan: Mapping[str, str],
    ) -> None:
        sink = self.job.sink

        def work(on: Connection) -> None:
            now = self.store.clock()
            record = queries.commit(on, step, now)
            if record is None:
                return
            sink.commit(on, self.store, batch, written, now)
            for hook in batch._hooks:
                hook(on)
            counts = {**record.totals, **totals.added(record.totals, counted), "plan": plan}
            queries.count(on, step.name, _with_dropped(counts, operators))
            self._tell(on, batch, counted, operators, now)

        while True:
            try:
                self.store.database.write(work)
                break
            except SegmentSealed as sealed:
                written = sink.rerouted(self.store, written, sealed)
        sink.noted(self.store)

    def _tell(
        self,
        on: Connection,
        batch: Batch,
        counted: totals.Counted,
        operators: Mapping[str, Any],
        now: Instant,
    ) -> None:
        job = self.job
        self._tell_operators(on, operators, now)
        progress.tell(on, job.name, job.sink.node, batch.frontier, {"rows": counted.rows_out}, now)
        detail = totals.detail(batch, counted, 0, now)
        progress.tell(on, job.name, "job", batch.frontier, detail, now)

    def _tell_operators(self, on: Connection, operators: Mapping[str, Any], now: Instant) -> None:
        for name, detail in operators.items():
            told = detail["watermark"]
            at = UNKNOWN if told is None else parse_instant(told)
            progress.tell(on, self.job.name, f"operator:{name}", at, detail, now)


def _with_dropped(counts: Mapping[str, Any], operators: Mapping[str, Any]) -> dict[str, Any]:
    """Counts with the rows that Spark's operators have dropped by themselves."""
    dropped = sum(detail["dropped"] for detail in operators.values())
    return {**counts, "dropped_by_spark": counts.get("dropped_by_spark", 0) + dropped}


def _run_through(rows: DataFrame) -> None:
    """Compute a batch whose results are there already: Spark's operators keep their state by it."""
    rows.write.format("noop").mode("overwrite").save()


def operators_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Spark's stateful operators, as its progress tells of them, by number and name."""
    watermark = (told.get("eventTime") or {}).get("watermark")
    return {
        f"{number}:{operator['operatorName']}": {
            "watermark": watermark,
            "rows": operator["numRowsTotal"],
            "updated": operator["numRowsUpdated"],
            "dropped": operator["numRowsDroppedByWatermark"],
            "bytes": operator["memoryUsedBytes"],
        }
        for number, operator in enumerate(told.get("stateOperators") or ())
    }
