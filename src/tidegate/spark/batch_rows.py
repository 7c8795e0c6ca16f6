"""What a batch has read: the slices of its plan, to look at what a result was made of.

Spark's checkpoint keeps the offsets of its last hundred batches, and an offset is the planner's
state; from two of them follows what the batch between them was to read, and the log still has it.
So the rows are those that the batch had, whatever was appended, scaled or compacted since; rows
that were truncated meanwhile are told, and not left out.
"""

from __future__ import annotations

import json

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import EVENT_TIME, OFFSET, Log, questions_of
from tidegate.planning import PlannerState
from tidegate.planning.behind import first_of_ours
from tidegate.planning.facts import Spans
from tidegate.planning.replay import replay
from tidegate.planning.slices import shifted
from tidegate.spark.plan_source import BEGINNING, state_of
from tidegate.spark.reads import Reader
from tidegate.spark.rows import PARTITION, StreamRows, rows_of
from tidegate.spark.source import read
from tidegate.spark.source_options import Between
from tidegate.spark.spec import Job

Slices = tuple[Between, ...]
"""Parts of a log; no row is in two of them."""


def rows_of_batch(
    spark: SparkSession, job: Job, checkpoint: str, batch: int
) -> dict[str, DataFrame]:
    """By stream the rows that a batch has read, with all their columns and their places."""
    logs = job.open_logs()
    found = {}
    for name, slices in slices_of_batch(spark, job, checkpoint, batch).items():
        columns = [*logs[name].schema.names, EVENT_TIME, PARTITION, OFFSET]
        found[name] = read(spark, logs[name], slices=slices, columns=columns)
    return found


def slices_of_batch(
    spark: SparkSession, job: Job, checkpoint: str, batch: int
) -> dict[str, Slices]:
    """By stream the bounds between which a batch has read. Batches are numbered from 1."""
    if batch < 1:
        raise errors.batch_not_kept(job.name, batch, checkpoint)
    logs = job.open_logs()
    after = state_of(_offset(spark, job, checkpoint, batch))
    assert after is not None, "a batch ends with a state"
    fresh = PlannerState.fresh(after.lineage, job.query.streams)
    before = state_of(_offset(spark, job, checkpoint, batch - 1)) or fresh
    plan = replay(before, after, questions_of(logs), job.query, job.policy, cores=job.cores)
    if plan.slice is None:
        return dict.fromkeys(job.query.streams, ())
    reader = Reader(logs, job.query, {name: [] for name in job.query.streams})
    starts = {name: stream.start_cut for name, stream in after.streams.items()}
    whole = reader.below(plan.slice.interval, starts, after)
    found = {name: list(kinds) for name, kinds in whole.reads.items()}
    for task in plan.slice.tasks:
        for name, spans in task.behind.items():
            found[name] += _behind(job, logs[name], name, spans, task.interval.a, after)
    return {
        name: tuple(part for rows in kinds for part in _parts(rows))
        for name, kinds in found.items()
    }


def _behind(
    job: Job, log: Log, name: str, spans: Spans, a: Known, after: PlannerState
) -> list[StreamRows]:
    """The rows below the interval that count as if at its beginning.

    Those that lie not far below it are read with the interval anyway.
    """
    first = first_of_ours(after, job.query, name)
    below = shifted(a, -micros(job.query.sides[name].before))
    if below is UNKNOWN or (first is not UNKNOWN and first >= below):
        return []
    return [rows_of(log, spans, (), (first, below))]


def _parts(rows: StreamRows) -> list[Between]:
    """The same as bounds, which have one range of every partition."""
    layers: list[dict[str, tuple[int, int]]] = []
    for partition, start, end in rows.ranges:
        layer = next((layer for layer in layers if partition not in layer), None)
        if layer is None:
            layers.append(layer := {})
        layer[partition] = start, end
    a, b = rows.times
    return [
        Between(
            {partition: start for partition, (start, _) in layer.items()},
            {partition: end for partition, (_, end) in layer.items()},
            None if a is UNKNOWN else a,
            b,
        )
        for layer in layers
    ]


def _offset(spark: SparkSession, job: Job, checkpoint: str, batch: int) -> str:
    """The state behind a batch, as Spark wrote it down: a version, its own notes, our offset."""
    if batch == 0:
        return BEGINNING["state"]
    # States are numbered from 1, Spark's batches from 0.
    file = f"{checkpoint}/offsets/{batch - 1}"
    try:
        [row] = spark.read.text(file, wholetext=True).collect()
    except PySparkException:
        raise errors.batch_not_kept(job.name, batch, checkpoint) from None
    found: str = json.loads(row.value.splitlines()[2])["state"]
    return found
