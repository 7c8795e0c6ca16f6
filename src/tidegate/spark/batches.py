"""Running a batch: from two states to results that are visible once.

In this order, and from any point again after a crash: what the plan said is said again; results
are computed and written where nobody sees them; late rows are judged; then one catalog transaction
makes results, late rows, the sink's note and the job's progress visible, if and only if the query's
record stands at the batch before. The same batch again is a replay and changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection
from sqlglot import exp

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.lateness import Late
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import questions_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import BatchPlan, PlannerState
from tidegate.planning.replay import replay
from tidegate.spark import late, totals
from tidegate.spark.arrow_types import spark_schema
from tidegate.spark.bad_rows import BadFound, bad_rows
from tidegate.spark.frames import run_tasks
from tidegate.spark.kernels import Choice, choose_kernel, for_batch
from tidegate.spark.late import LateRows
from tidegate.spark.plan_door import PlanRow, Plans
from tidegate.spark.plan_source import needed, state_of
from tidegate.spark.reads import Piece, Reader
from tidegate.spark.results import (
    Query,
    corrected,
    with_revision,
    write_frame,
    write_tasks,
)
from tidegate.spark.sinks.sink import OP, REVISION, Batch, FrameSink, TaskSink
from tidegate.spark.spec import SYSTEM, Job
from tidegate.spark.sql_text import Statement
from tidegate.store.catalog import holds, progress, queries, streams
from tidegate.store.catalog.chunks import SegmentSealed
from tidegate.store.staging import publish_staged, reroute
from tidegate.store.steps import reached

Function = Callable[[DataFrame, int], None]


def batch_function(job: Job, plans: Plans) -> Function:
    """What `foreachBatch` calls; on Spark Connect it is pickled, and runs beside the server."""

    def run(rows: DataFrame, number: int) -> None:
        runner_of(rows.sparkSession, job).run(rows, number, plans.last)

    return run


def plan_of(rows: DataFrame, number: int, known: PlanRow | None) -> PlanRow:
    """The plan of a batch: the one that was made here in this run, or else what Spark has."""
    # States are numbered from 1, Spark's batches from 0.
    if known is not None and PlannerState.from_json(known.after).batch == number + 1:
        return known
    [row] = rows.collect()
    return PlanRow(*row)


_runners: dict[str, Runner] = {}


def runner_of(spark: SparkSession, job: Job) -> Runner:
    """The runner of a job in this process: schemas and statements are worked out once."""
    found = _runners.get(job.name)
    if found is None or found.job is not job:
        found = _runners[job.name] = Runner(spark, job)
    return found


class Runner:
    """Runs the batches of one job, one after the other."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.job = job
        self.store = job.store()
        self._open(spark)

    def _open(self, spark: SparkSession) -> None:
        """Look at the streams as they are now: columns may have been added."""
        job = self.job
        self.logs = job.open_logs()
        self.statement = None if job.text is None else Statement.parse(job.text, job.query.streams)
        self.reader = Reader(self.logs, job.query, self._columns(), ordered=job.ordered)
        schemas = self.reader.schemas()
        self.query = Query(spark, job, self.statement, schemas)
        in_frames = {
            name: pa.schema([*schema, *(pa.field(c, _TIME) for c in job.shape.columns)])
            for name, schema in schemas.items()
        }
        self.choice = choose_kernel(spark, job, self.statement, in_frames)
        self.columns = self.query.columns
        if job.policy.late is Late.UPDATE:
            self.columns = self.columns.append(pa.field(OP, pa.string()))
            self.columns = self.columns.append(pa.field(REVISION, pa.int64()))

    def prepare(self) -> None:
        """Once per run, before the first batch: let the sink refuse or make ready."""
        self.job.sink.prepare(self.store, self.job.name, self.columns, self.query.event_time)

    # ---- a batch ----

    def run(self, plans: DataFrame, number: int, known: PlanRow | None) -> None:
        """Run the batch whose plan this is; `known` is what was planned last, if it was here."""
        began = time.monotonic()
        row = plan_of(plans, number, known)
        reached("batch: begun")
        after = PlannerState.from_json(row.after)
        fresh = PlannerState.fresh(after.lineage, self.job.query.streams)
        before = state_of(row.before) or fresh
        step = queries.Step(
            self.job.name,
            after.lineage,
            after.batch,
            hashlib.sha256(f"{row.before}|{row.after}".encode()).hexdigest()[:32],
            after.released,
            after.finished,
        )
        if self._is_replay(step):
            return
        plan = replay(
            before,
            after,
            questions_of(self.logs),
            self.job.query,
            self.job.policy,
            cores=self.job.cores,
        )
        batch = self._described(plan, step.plan)
        spark = plans.sparkSession
        choice = self._choice(plan)
        written, rows = self._written(spark, plan, choice, batch, before, after)
        reached("batch: written")
        found = late.late_rows(spark, self.job, self.store, self.logs, plan)
        bad = bad_rows(spark, self.job, self.store, self.logs, plan)
        reached("batch: before commit")
        counted = totals.Counted(
            told=json.loads(row.told),
            rows_out=rows,
            late=found.late,
            lost=found.lost,
            bad=bad.counts,
            seconds=time.monotonic() - began,
            amplification=None if plan.slice is None else plan.slice.amplification,
            kernel=choice.kernel,
            noted=plan.emitted,
        )
        self._commit(step, batch, after, written, found, bad, counted)
        reached("batch: committed")

    def _is_replay(self, step: queries.Step) -> bool:
        found = self.store.database.read(lambda on: queries.look(on, step.name))
        queries.check(found, step)
        return found is not None and found.batch == step.batch and found.plan == step.plan

    def _described(self, plan: BatchPlan, fingerprint: str) -> Batch:
        frontier = plan.frontier
        if frontier is not UNKNOWN:
            frontier -= self.job.time_behind
        return Batch(
            job=self.job.name,
            lineage=plan.lineage,
            number=plan.batch,
            interval=plan.interval,
            watermark=plan.watermark,
            frontier=frontier,
            finished=plan.finished,
            columns=self.columns,
            plan=fingerprint,
        )

    # ---- results ----

    def _choice(self, plan: BatchPlan) -> Choice:
        return self.choice if plan.slice is None else for_batch(self.choice, self.job, plan.slice)

    def _written(
        self,
        spark: SparkSession,
        plan: BatchPlan,
        choice: Choice,
        batch: Batch,
        before: PlannerState,
        after: PlannerState,
    ) -> tuple[Sequence[Any], int]:
        sink = self.job.sink
        done = sink.settled(batch)
        if done is not None:
            return [], done
        update = self.job.policy.late is Late.UPDATE
        written: list[Any] = []
        made: list[DataFrame] = []
        if plan.correction is not None:
            made.append(self._corrections(spark, plan, before, after))
        if plan.slice is not None and plan.slice.tasks:
            pieces = self.reader.pieces(plan, after)
            if isinstance(sink, TaskSink) and choice.text is not None and not update:
                tasks = self.query.in_duckdb(choice, pieces, after.origin)
                written += write_tasks(spark, sink, self.job, batch, tasks)
            else:
                frame = self._frame(spark, choice, pieces, plan.slice.interval, after.origin)
                made.append(with_revision(frame, "insert", plan.batch) if update else frame)
        if isinstance(sink, FrameSink):
            # One call per batch, whatever is in it: whoever keeps the number of the batch beside
            # the rows would take a second call for a repeated one.
            if not made:
                made = [spark.createDataFrame([], spark_schema("result", self.columns))]
            rows = sink.take(reduce(DataFrame.unionByName, made), batch)
        else:
            for frame in made:
                written += write_frame(sink, self.job, batch, frame)
            rows = sink.rows_of(written)
        reached("batch: before settle")
        sink.settle(batch, written)
        return written, rows

    def _frame(
        self,
        spark: SparkSession,
        choice: Choice,
        pieces: Sequence[Piece],
        interval: Any,
        origin: Known,
    ) -> DataFrame:
        if choice.text is None:
            return self.query.in_spark(spark, pieces, interval, origin)
        tasks = self.query.in_duckdb(choice, pieces, origin)
        return run_tasks(spark, tasks, self.query.columns)

    def _corrections(
        self, spark: SparkSession, plan: BatchPlan, before: PlannerState, after: PlannerState
    ) -> DataFrame:
        """What windows that were given out before give now, against what they gave then."""
        assert plan.correction is not None
        interval = plan.correction.interval
        starts = {name: stream.start_cut for name, stream in after.streams.items()}

        def below(state: PlannerState) -> DataFrame:
            piece = self.reader.below(interval, starts, state)
            return self._frame(spark, self.choice, [piece], interval, after.origin)

        return corrected(below(before), below(after), plan.batch)

    # ---- the one transaction ----

    def _commit(
        self,
        step: queries.Step,
        batch: Batch,
        after: PlannerState,
        written: Sequence[Any],
        found: LateRows,
        bad: BadFound,
        counted: totals.Counted,
    ) -> None:
        sink, staged = self.job.sink, [*found.staged, *bad.staged]
        held = {
            name: (log, needed(log, self.job, after, name))
            for name, log in self.logs.items()
            if isinstance(log, StoreLog)
        }
        waiting = totals.held_rows(self.logs, after)

        def work(on: Connection) -> None:
            now = self.store.clock()
            record = queries.commit(on, step, now)
            if record is None:
                return
            sink.commit(on, self.store, batch, written, now)
            publish_staged(on, self.store, staged, now)
            for hook in batch._hooks:
                hook(on)
            queries.count(on, step.name, totals.added(record.totals, counted))
            self._tell(on, batch, after, counted, waiting, now)
            for log, cut in held.values():
                if log.store is self.store:
                    self._hold(on, log.name, cut, after.finished, now)

        while True:
            try:
                self.store.database.write(work)
                break
            except SegmentSealed as sealed:
                written = sink.rerouted(self.store, written, sealed)
                staged = reroute(self.store, staged, sealed)
        for log, cut in held.values():
            if log.store is not self.store and not after.finished:
                log.store.hold(log.name, self.job.name, cut)
        sink.noted(self.store)

    def _hold(self, on: Connection, stream: str, cut: Any, finished: bool, now: Instant) -> None:
        record = streams.get(on, stream)
        if finished:
            holds.release(on, record, self.job.name)
        else:
            holds.hold(on, record, self.job.name, cut, now)

    def _tell(
        self,
        on: Connection,
        batch: Batch,
        after: PlannerState,
        counted: totals.Counted,
        held: int,
        now: Instant,
    ) -> None:
        name = self.job.name
        for stream, state in after.streams.items():
            number, detail = totals.told_number(counted.told, stream), totals.partitions_of(state)
            progress.tell(on, name, f"source:{stream}", number, detail, now)
        progress.tell(on, name, self.job.sink.node, batch.frontier, {"rows": counted.rows_out}, now)
        progress.tell(
            on, name, "job", batch.frontier, totals.detail(batch, counted, held, now), now
        )

    def _columns(self) -> dict[str, list[str]]:
        found = {}
        asked = set(self.job.system)
        if self.statement is not None:
            asked |= {column.name.lower() for column in self.statement.tree.find_all(exp.Column)}
        for name in self.job.query.streams:
            if self.statement is not None and name not in self.statement.streams:
                continue
            schema = self.logs[name].schema
            used = None if self.statement is None else self.statement.columns_used(name)
            own = [c for c in schema.names if used is None or c.lower() in used]
            # System columns are not the user's: a * does not mean them.
            found[name] = [*own, *(c for c in SYSTEM if c in asked)]
        return found


_TIME = pa.timestamp("us", tz="UTC")
