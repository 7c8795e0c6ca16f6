"""Frames: the rows of a slice as Spark DataFrames, one per stream.

Where Spark can open the files itself its own vectorised reader does, with the time pushed down to
the row groups, and no Python stands in the way. All other rows are read by tasks through the log,
as Arrow. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.planning.slices import Interval
from tidegate.spark.arrow_types import arrow_schema, cast, spark_schema
from tidegate.spark.rows import FileRows, Reads, StreamRows
from tidegate.spark.shape import EVENT_TIME, Shape
from tidegate.spark.workers import in_worker
from tidegate.store.steps import reached

Task = Callable[[], Iterator[pa.RecordBatch]]


def run_tasks(spark: SparkSession, tasks: Sequence[Task], schema: pa.Schema) -> DataFrame:
    """A DataFrame with one partition per task, in their order, holding what each task gives."""
    kind = spark_schema("result", schema)
    if not tasks:
        return spark.createDataFrame([], kind)
    expected = arrow_schema(kind)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for made in tasks[number]():
                    reached("task: rows made")
                    yield cast(made, expected)

    count = len(tasks)
    return spark.range(0, count, 1, count).mapInArrow(lambda given: in_worker(run(given)), kind)


def frames(
    spark: SparkSession,
    reads: Mapping[str, Sequence[Reads]],
    interval: Interval,
    origin: Known,
    shape: Shape,
    schemas: Mapping[str, pa.Schema],
) -> dict[str, DataFrame]:
    """By stream its rows with their windows; `reads` has, per stream, the parts of the work."""
    return {
        name: _frame(spark, name, parts, interval, origin, shape, schemas[name])
        for name, parts in reads.items()
    }


def empty_frames(
    spark: SparkSession, schemas: Mapping[str, pa.Schema], shape: Shape
) -> dict[str, DataFrame]:
    """The same without rows: to learn what a query gives."""
    nowhere = Interval(UNKNOWN, 0)
    return {
        name: shape.in_spark(
            spark.createDataFrame([], spark_schema(name, schema)), nowhere, UNKNOWN
        )
        for name, schema in schemas.items()
    }


def _frame(
    spark: SparkSession,
    name: str,
    parts: Sequence[Reads],
    interval: Interval,
    origin: Known,
    shape: Shape,
    schema: pa.Schema,
) -> DataFrame:
    kinds: list[DataFrame] = []
    wholes = [rows for part in parts for rows in part.get(name, ())]
    for at in dict.fromkeys(rows.at for rows in wholes):
        chosen = [rows for rows in wholes if rows.at == at]
        made = _rows(spark, chosen, schema)
        kinds.append(shape.in_spark(made, interval, origin, at))
    if not kinds:
        empty = spark.createDataFrame([], spark_schema(name, schema))
        return shape.in_spark(empty, interval, origin)
    return reduce(DataFrame.unionByName, kinds)


def _rows(spark: SparkSession, reads: Sequence[StreamRows], schema: pa.Schema) -> DataFrame:
    if all(rows.files is not None and not rows.system and not rows.ordered for rows in reads):
        return _from_files(spark, reads, schema)
    return run_tasks(spark, [rows.batches for rows in _apart(reads)], schema)


def _apart(reads: Sequence[StreamRows]) -> list[StreamRows]:
    """The same rows, each read once: parts of the work overlap where they look around a time.

    Of a partition every part has all rows of its times, so the next begins where it ends.
    """
    found: list[StreamRows] = []
    covered: dict[str, Instant] = {}
    for rows in sorted(reads, key=lambda r: r.times[1]):
        first, below = rows.times
        beginnings: dict[Known, list[tuple[str, int, int]]] = {}
        for partition, start, end in rows.ranges:
            begin = later(first, covered.get(partition, UNKNOWN))
            beginnings.setdefault(begin, []).append((partition, start, end))
        for begin, ranges in beginnings.items():
            if begin is UNKNOWN or begin < below:
                times = (begin, below)
                found.append(replace(rows, ranges=tuple(ranges), times=times, files=None))
        covered.update((partition, below) for partition, _, _ in rows.ranges)
    return found


def _from_files(spark: SparkSession, reads: Sequence[StreamRows], schema: pa.Schema) -> DataFrame:
    """The files once each, however many parts of the work share them."""
    kind = spark_schema("slice", schema)
    a, b = reads[0].times[0], max(rows.times[1] for rows in reads)
    for rows in reads:
        a = UNKNOWN if a is UNKNOWN or rows.times[0] is UNKNOWN else min(a, rows.times[0])
    inside = F.col(EVENT_TIME) < F.timestamp_micros(F.lit(b))
    if a is not UNKNOWN:
        inside &= F.col(EVENT_TIME) >= F.timestamp_micros(F.lit(a))
    files = _once_each(file for rows in reads for file in rows.files or ())
    reader = spark.read.schema(kind)
    whole = [f"file://{file.path}" for file in files if file.whole]
    made = [reader.parquet(*whole).where(inside)] if whole else []
    for file in files:
        if not file.whole:
            number = F.col("_metadata.row_index")
            some = (number >= file.first) & (number < file.last)
            made.append(reader.parquet(f"file://{file.path}").where(some & inside).select("*"))
    if not made:
        return spark.createDataFrame([], kind)
    return reduce(DataFrame.unionAll, made)


def _once_each(files: Iterable[FileRows]) -> list[FileRows]:
    """The files without the rows that one before has.

    Parts of the work share files; and if chunks were compacted while these were looked up, one part
    names the old files and another the new one.
    """
    found: list[FileRows] = []
    covered: dict[str, int] = {}
    for file in sorted(files, key=lambda f: (f.partition, f.offset, f.first - f.last)):
        over = max(covered.get(file.partition, file.offset) - file.offset, 0)
        rows = file.last - file.first
        if over < rows:
            found.append(replace(file, first=file.first + over, whole=file.whole and not over))
            covered[file.partition] = file.offset + rows
    return found
