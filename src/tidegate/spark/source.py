"""The batch source: `spark.read.format("tidegate")`, a stream or any log between two bounds.

    spark.read.format("tidegate").option("store", "/data/shop").option("stream", "orders").load()

The end is taken when the frame is made: actions on it see the same rows, however many come
meanwhile. Bounds are cuts (offsets by partition) or event times [from, to), or what a plan of a job
has read; chunks and row groups that hold nothing between them are not read. Rows come as Arrow
record batches.

`read` is the same for those who have a session and Python values at hand:

    read(spark, store, "orders", from_time=noon, columns=["id", "_event_time"])
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Final
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from tidegate import errors
from tidegate.eventtime.instants import Instant, checked, format_instant, from_datetime
from tidegate.logs.log import SYSTEM, Description, Log, open_log, read_schema
from tidegate.logs.store_log import StoreLog
from tidegate.spark.arrow_types import arrow_schema, cast, spark_schema
from tidegate.spark.gate.options import asks_for_stream, gate_of, gate_type, is_packed
from tidegate.spark.gate.trick import WATERMARK
from tidegate.spark.size import parallelism
from tidegate.spark.source_bounds import Bounds
from tidegate.spark.source_options import Between, ReadOptions, WriteOptions
from tidegate.spark.source_partitions import PER_CORE, Read, pack, runs
from tidegate.spark.workers import in_worker
from tidegate.spark.writer import BatchWriter, StreamWriter
from tidegate.store import Store

NAME: Final = "tidegate"
PARTITION: Final = "_partition"


class TidegateSource(DataSource):
    """What `format("tidegate")` stands for. Spark makes one per frame, from its options."""

    bounds: tuple[Bounds, ...] | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return NAME

    def schema(self) -> StructType:
        """The columns that were asked for; it is asked for once, and the end of the read is set."""
        if asks_for_stream(self.options):
            return gate_type(self.options)
        asked = ReadOptions.parse(self.options)
        log = opened(asked)
        self.bounds = bounds_of(log, asked)
        return spark_schema(log.name, columns_of(log, asked.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        asked = ReadOptions.parse(self.options)
        log = opened(asked)
        if self.bounds is None:  # the user gave a schema
            self.bounds = bounds_of(log, asked)
            _follow(log, schema)
        return LogReader(log.describe(), schema, self.bounds, asked.tasks)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read: the gate."""
        from tidegate.spark.gate.reader import GateReader

        has = gate_type(self.options)
        if schema.simpleString() != has.simpleString():  # the user gave another
            raise errors.schema_not_followed("stream", schema.simpleString(), has.simpleString())
        names = [name for name in schema.names if name != WATERMARK]
        return GateReader(gate_of(self.options, names), schema, is_packed(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A batch write."""
        return BatchWriter.planned(WriteOptions.parse(self.options), schema.names, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """A streaming write."""
        return StreamWriter.planned(WriteOptions.parse(self.options), schema.names, overwrite)


def opened(asked: ReadOptions) -> Log:
    """The log that is asked for."""
    if asked.place is None:
        return open_log(asked.log or {})
    return StoreLog(asked.place.open(), asked.place.stream)


def columns_of(log: Log, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of what is read; every log knows the partition of its rows."""
    system: Mapping[str, pa.DataType] = getattr(log, "system", SYSTEM)
    return read_schema(log.name, log.schema, columns, {**system, PARTITION: pa.string()})


def bounds_of(log: Log, asked: ReadOptions) -> tuple[Bounds, ...]:
    """The bounds of every part; what was left open is as the log is now."""
    return tuple(Bounds.of(log, part) for part in asked.parts)


def _follow(log: Log, schema: StructType) -> None:
    has = spark_schema(log.name, columns_of(log, None))
    asked = {kind.name: kind.dataType for kind in schema}
    known = {kind.name: kind.dataType for kind in has}
    if any(name in known and known[name] != kind for name, kind in asked.items()):
        raise errors.schema_not_followed(log.name, schema.simpleString(), has.simpleString())
    columns_of(log, schema.names)


@dataclass
class Task(InputPartition):
    """What one task reads, in this order; nothing, where nothing is to be read."""

    reads: tuple[Read, ...] = ()


@dataclass
class LogReader(DataSourceReader):
    """Reads a log that is described. It travels to the tasks."""

    log: Description
    schema: StructType
    bounds: tuple[Bounds, ...]
    tasks: int | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """The work of the tasks."""
        log = open_log(self.log)
        parts = (runs(part.spans(log), number) for number, part in enumerate(self.bounds))
        packed = pack(list(chain.from_iterable(parts)), self.tasks)
        # Without any, Spark would ask for a part that nobody has described.
        return [Task(reads) for reads in packed] or [Task()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor: the rows of a task."""
        assert isinstance(partition, Task)
        return in_worker(self._rows(partition))

    def _rows(self, partition: Task) -> Iterator[pa.RecordBatch]:
        if not partition.reads:
            return
        log, columns = open_log(self.log), self.schema.names
        has_it = PARTITION in getattr(log, "system", SYSTEM)
        asked = columns if has_it else [name for name in columns if name != PARTITION]
        wanted = arrow_schema(self.schema)
        for read in partition.reads:
            times = self.bounds[read.part].times
            for batch in log.read(read.partition, read.start, read.end, asked, times):
                if len(asked) < len(columns):
                    name = pa.repeat(read.partition, batch.num_rows)
                    batch = batch.append_column(PARTITION, name)
                yield cast(batch, wanted)


# ---- the door ----

_registered: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make `format("tidegate")` known to a session; a second time changes nothing.

    Spark finds it by itself (`pyspark_tidegate`) where the package was installed before it first
    looked for sources; packages that come to its processes later are not looked at again.
    """
    if spark not in _registered:
        spark.dataSource.register(TidegateSource)
        _registered.add(spark)


def read(
    spark: SparkSession,
    source: Store | Log | str | Path,
    stream: str | None = None,
    *,
    data: str | Path | None = None,
    from_cut: Mapping[str, int] | None = None,
    to_cut: Mapping[str, int] | None = None,
    from_time: datetime | Instant | str | None = None,
    to_time: datetime | Instant | str | None = None,
    slices: Sequence[Between] | None = None,
    columns: Sequence[str] | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """A stream of a store, or any log, as a frame: between two cuts, and of that [from, to).

    `source`: a store or its address, then with the name of the stream; or a log. A time without a
    zone is UTC. `slices`: instead of one pair of bounds several, of which no two share a row; those
    of a job's batch are `SlicesJob.slices_of`. By default there are three tasks per core.
    """
    options = source_options(source, stream, data)
    for name, cut in (("from_cut", from_cut), ("to_cut", to_cut)):
        if cut is not None:
            options[name] = json.dumps(dict(cut))
    for name, time in (("from_time", from_time), ("to_time", to_time)):
        if time is not None:
            options[name] = _iso(time)
    if slices is not None:
        options["slices"] = json.dumps([part.texts() for part in slices])
    if columns is not None:
        options["columns"] = ",".join(columns)
    cores = parallelism(spark) if tasks is None else None
    if tasks is not None or cores is not None:
        options["tasks"] = str(tasks if cores is None else PER_CORE * cores)
    ReadOptions.parse(options)  # what is wrong is said here, and not from inside Spark
    register(spark)
    return spark.read.format(NAME).options(**options).load()


def source_options(
    source: Store | Log | str | Path, stream: str | None, data: str | Path | None
) -> dict[str, str]:
    """What says where the rows are."""
    if isinstance(source, str | Path):
        address = str(source)
        options = {"store": address if "://" in address else str(Path(address).resolve())}
        if stream is not None:
            options["stream"] = stream
        if data is not None:
            there = str(data)
            options["data"] = there if "://" in there else str(Path(there).resolve())
        return options
    if isinstance(source, Store):
        if stream is None:
            raise errors.option_missing("stream", ["source", "stream"])
        return {"log": json.dumps(StoreLog(source, stream).describe())}
    return {"log": json.dumps(source.describe())}


def _iso(time: datetime | Instant | str) -> str:
    if isinstance(time, str):
        return time
    return format_instant(from_datetime(time) if isinstance(time, datetime) else checked(time))
