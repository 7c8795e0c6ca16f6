"""The gate beside stock Spark: the same operators, the same rows, the same sinks.

Stock Spark reads the chunk files with its streaming file source, eight to a batch; the gate may
take as many rows in a batch. Stock Spark is as it is installed; what it does with our way to write
checkpoints stands beside it. Speed is compared on rows that come in the order of time, where both
do the same work and lose nothing. A backlog that was delivered partition after partition is what
the gate is for; there stock Spark is quick to drop what it should count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bench.report import Row
from bench.spark_latency import GateLive, beside_stock
from bench.spark_rivals import CHECKPOINTS, as_installed, emptied
from bench.spark_rows import DISORDER, FLUSH, SCHEMA, STREAM, Rows, written
from tidegate.spark import read_stream
from tidegate.spark.arrow_types import spark_schema
from tidegate.store import Store

ROUNDS = 3
PER_BATCH = 8
"""Files of a batch, each of FLUSH rows."""

Operators = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Outcome:
    """How long a run took, the most rows its operators held, and what Spark dropped."""

    seconds: float
    peak: int
    dropped: int


def gate_windows(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """A tumbling aggregate, and rows that only pass through; then the time to the last window."""
    rows = Rows(count, seconds=count // 100_000)
    backlog, in_order = written(folder, rows), written(folder, rows.in_order())
    shown: list[Row] = []
    for name, store, operators, sink, target, use in (
        ("10 s windows, 1,000 keys", in_order, _tumbling, "parquet", 0.9, {"windows": "10 s"}),
        ("the same, a backlog", backlog, _tumbling, "parquet", None, {"windows": "10 s"}),
        ("pass-through", in_order, _as_it_is, "parquet", 0.8, {}),
    ):
        stock = partial(_stock, spark, store, operators, sink, folder)
        ours, theirs, tuned = _in_turn(
            partial(_gate, spark, store, operators, sink, folder, **use),
            stock,
            partial(stock, keeping=(CHECKPOINTS,)),
        )
        shown += [
            Row(f"{name}: gate, warm", count / ours.seconds, "rows/s"),
            Row(f"{name}: gate, dropped by Spark", ours.dropped, "rows", 0),
            Row(f"{name}: stock Spark, warm", count / theirs.seconds, "rows/s"),
            Row(f"{name}: stock Spark, dropped (partial sums)", theirs.dropped, "rows"),
            Row(f"{name}: gate / stock Spark", theirs.seconds / ours.seconds, "x", target, True),
            Row(
                f"{name}: gate / stock Spark with our checkpoint files",
                tuned.seconds / ours.seconds,
                "x",
            ),
        ]
    live, alone = beside_stock(GateLive, spark, folder / "live-gate")
    return [
        *shown,
        Row("last event to result: gate", live, "s"),
        Row("last event to result: stock Spark, beside the gate", alone, "s"),
        Row("last event to result: gate / stock Spark", live / alone, "x", 1.2),
    ]


def gate_backlog(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """A skewed backlog, partition after partition, beside the same rows in order."""
    count //= 4
    rows = Rows(count, partitions=8, seconds=count // 100_000, slow=10.0)
    backlog, in_order = written(folder, rows), written(folder, rows.in_order())
    use = {"windows": "10 s"}
    ours = _gate(spark, backlog, _tumbling, "parquet", folder, **use)
    lost = count + 8 - _counted(spark, folder / "gate")
    straight = _gate(spark, in_order, _tumbling, "parquet", folder, **use)
    theirs = _stock(spark, backlog, _tumbling, "parquet", folder)
    stock_lost = count + 8 - _counted(spark, folder / "stock-gate")
    return [
        # The eight rows that close the last windows for everybody stand in no closed window.
        Row("skewed backlog: gate, rows lost", lost - 8, "rows", 0),
        Row("skewed backlog: stock Spark beside the gate, rows lost", stock_lost - 8, "rows"),
        Row("skewed backlog: gate", ours.seconds, "s"),
        Row("skewed backlog: stock Spark beside the gate", theirs.seconds, "s"),
        Row("skewed backlog: gate, peak of state", ours.peak, "rows"),
        Row("in order: gate, peak of state", straight.peak, "rows"),
        Row("peak of state, backlog / in order", ours.peak / max(straight.peak, 1), "x", 2.0),
    ]


def gate_state(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """Sessions and running totals, by few and by many keys, on rows that come in order."""
    count //= 8
    shown: list[Row] = []
    for keys in (1_000, 1_000_000):
        rows = Rows(count, keys=keys, partitions=1, seconds=count // 100_000)
        store = written(folder, rows)
        for name, operators, mode, use in (
            ("sessions", _sessions, "append", {"gap": "2 s"}),
            ("running GROUP BY", _totals, "update", {}),
        ):
            ours, theirs = _in_turn(
                partial(_gate, spark, store, operators, "noop", folder, mode=mode, **use),
                partial(_stock, spark, store, operators, "noop", folder, mode=mode),
            )
            title = f"{name}, {keys:,} keys"
            shown += [
                Row(f"{title}: gate, warm", count / ours.seconds, "rows/s"),
                Row(f"{title}: gate, dropped by Spark", ours.dropped, "rows", 0),
                Row(f"{title}: stock Spark, warm", count / theirs.seconds, "rows/s"),
                Row(f"{title}: gate / stock Spark", theirs.seconds / ours.seconds, "x"),
            ]
    return shown


def state_stores(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """Running totals by 100,000 keys, with every way to keep state: what the default rests on."""
    count //= 20
    store = written(folder, Rows(count, keys=100_000, partitions=1, seconds=count // 100_000))
    rivals = {name: partial(_kept_in, spark, store, folder, chosen) for name, chosen in STORES}
    found = dict(zip(rivals, _in_turn(*rivals.values()), strict=True))
    return [Row(f"state in {name}", count / one.seconds, "rows/s") for name, one in found.items()]


def _kept_in(spark: SparkSession, store: Store, folder: Path, chosen: dict[str, str]) -> Outcome:
    before = {key: spark.conf.get(key, None) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    try:
        return _gate(spark, store, _totals, "noop", folder, mode="update")
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


_STATE = "spark.sql.streaming.stateStore"
_PROVIDER = "org.apache.spark.sql.execution.streaming.state"
STORES: list[tuple[str, dict[str, str]]] = [
    ("RocksDB with changelog (ours)", {}),
    (
        "RocksDB with changelog, rows not counted",
        {f"{_STATE}.rocksdb.trackTotalNumberOfRows": "false"},
    ),
    ("RocksDB with snapshots", {f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "false"}),
    (
        "the heap (Spark's default)",
        {f"{_STATE}.providerClass": f"{_PROVIDER}.HDFSBackedStateStoreProvider"},
    ),
]


# ---- the two rivals ----


def _gate(
    spark: SparkSession,
    store: Store,
    operators: Operators,
    sink: str,
    folder: Path,
    *,
    mode: str = "append",
    **use: Any,
) -> Outcome:
    out = emptied(folder / "gate")
    rows = read_stream(
        spark,
        STREAM,
        store=store,
        query=f"bench-{out.stat().st_ino}-{perf_counter()}",
        tolerance=DISORDER,
        watermark="events",
        idle_after="never",
        max_rows=PER_BATCH * FLUSH,
        **use,
    )
    return _run(operators(rows), sink, mode, out)


def _stock(
    spark: SparkSession,
    store: Store,
    operators: Operators,
    sink: str,
    folder: Path,
    *,
    mode: str = "append",
    keeping: Sequence[str] = (),
) -> Outcome:
    out = emptied(folder / "stock-gate")
    source = (
        spark.readStream.schema(spark_schema(STREAM, SCHEMA))
        .option("maxFilesPerTrigger", PER_BATCH)
        .option("recursiveFileLookup", "true")
        .parquet(str(Path(store.files.root) / STREAM))
        .withWatermark("at", f"{DISORDER // timedelta(milliseconds=1)} milliseconds")
    )
    with as_installed(spark, keeping):
        return _run(operators(source), sink, mode, out)


def _run(rows: DataFrame, sink: str, mode: str, out: Path) -> Outcome:
    writer = rows.writeStream.format(sink).outputMode(mode).trigger(availableNow=True)
    if sink != "noop":
        writer = writer.option("path", str(out / "rows"))
    # Of its own: Spark still writes down the state of the run before, in the background.
    checkpoint = mkdtemp(prefix="checkpoint-", dir=out)
    began = perf_counter()
    query = writer.option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    return Outcome(perf_counter() - began, *_state(query))


def _state(query: StreamingQuery) -> tuple[int, int]:
    told = [batch["stateOperators"] for batch in query.recentProgress]
    peak = max((sum(one["numRowsTotal"] for one in batch) for batch in told), default=0)
    dropped = sum(one["numRowsDroppedByWatermark"] for batch in told for one in batch)
    return peak, dropped


def _counted(spark: SparkSession, out: Path) -> int:
    return int(spark.read.parquet(str(out / "rows")).agg(F.sum("n")).collect()[0][0] or 0)


def _in_turn(*rivals: Callable[[], Outcome]) -> list[Outcome]:
    """The median of each, warm and in turn: the JVM gets faster for whoever comes later."""
    runs = [[rival() for rival in rivals] for _ in range(ROUNDS + 1)][1:]
    return [
        sorted(mine, key=attrgetter("seconds"))[ROUNDS // 2] for mine in zip(*runs, strict=True)
    ]


# ---- what runs ----


def _tumbling(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("at", "10 seconds"), "device").agg(
        F.count("*").alias("n"),
        F.avg("value").alias("mean"),
        F.sum("amount").alias("total"),
        F.min("value").alias("low"),
        F.max("value").alias("high"),
    )


def _as_it_is(rows: DataFrame) -> DataFrame:
    return rows


def _sessions(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.session_window("at", "2 seconds"), "device").agg(F.count("*").alias("n"))


def _totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("device").agg(F.count("*").alias("n"), F.sum("amount").alias("total"))
