"""The gated queries of the driver that can be killed: one for every stateful operator of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidegate.logs.log import Log
from tidegate.spark import StreamSink, read_stream, write_stream
from tidegate.spark.gate.writing import GateJob
from tidegate.store import Store

Streams = Callable[..., DataFrame]
"""A stream by its name, and what its rows are used for."""


def gated(spark: SparkSession, kind: str, store: Store, logs: Mapping[str, Log]) -> GateJob:
    """The query of this kind; `logs` are the streams that the store does not have."""

    def read(stream: str, **use: Any) -> DataFrame:
        return read_stream(
            spark, logs.get(stream, stream), store=store, query="job", tolerance="10s",
            idle_after="never", **use,
        )  # fmt: skip

    rows, options = GATED[kind](read)
    return write_stream(rows, sink=StreamSink("out"), query="job", store=store, **options)


def _windows(read: Streams, *span: str, mode: str = "append") -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders", windows=span if len(span) > 1 else span[0])
    made = rows.groupBy(F.window("at", *map(_long, span)), "k")
    return made.agg(F.count("*").alias("n"), F.sum("v").alias("m")), {"mode": mode}


def _long(text: str) -> str:
    return text.replace("s", " seconds")


def _of_files(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    """The event time of such a log may be a text, and then has a column of its own."""
    rows = read("orders", windows="10s", columns=["k", "v", "_event_time"])
    return rows.groupBy(F.window("_event_time", "10 seconds"), "k").agg(F.sum("v").alias("m")), {}


def _sessions(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders", gap="5s")
    return rows.groupBy(F.session_window("at", "5 seconds"), "k").count(), {}


def _chained(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders", windows="10s", held="20s")
    tens = rows.groupBy(F.window("at", "10 seconds"), "k").count()
    return tens.groupBy(F.window("window", "20 seconds")).agg(F.sum("count").alias("n")), {}


def _totals(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders").groupBy("k").agg(F.count("*").alias("n"), F.max("at").alias("at"))
    return rows, {"mode": "update", "event_time": "at", "time_behind": "1h"}


def _once(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders", last_use="once").dropDuplicates(["k", "at"])
    return rows, {"event_time": "at", "time_behind": "0s"}


def _once_within(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders", last_use="once", within="5s")
    return rows.dropDuplicatesWithinWatermark(["k"]), {"event_time": "at", "time_behind": "0s"}


def _joined(read: Streams, how: str) -> tuple[DataFrame, dict[str, Any]]:
    orders = read("orders", last_use="once").alias("o")
    payments = read("payments", last_use="once").alias("p")
    near = "o.at BETWEEN p.at - INTERVAL 3 SECONDS AND p.at + INTERVAL 5 SECONDS"
    met = orders.join(payments, F.expr(f"o.k = p.k AND {near}"), how)
    chosen = met.select("o.k", "o.v", F.col("o.at").alias("at"), F.col("p.v").alias("m"))
    return chosen, {"event_time": "at", "time_behind": "1m"}


class _Counting(StatefulProcessor):
    """Counts the rows of a key, and tells them when time has passed ten seconds more."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.counts = handle.getMapState("counts", "end long", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for row in rows:
            end = (int(row["at"].timestamp()) // 10 + 1) * 10_000
            [count] = self.counts.getValue((end,)) or (0,)
            self.counts.updateValue((end,), (count + 1,))
            self.handle.registerTimer(end)
        return iter(())

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        end = expiredTimerInfo.getExpiryTimeInMs()
        [count] = self.counts.getValue((end,)) or (0,)
        self.counts.removeKey((end,))
        yield Row(k=key[0], end=end, n=count)

    def close(self) -> None:
        pass


def _by_hand(read: Streams) -> tuple[DataFrame, dict[str, Any]]:
    rows = read("orders", last_use="once").groupBy("k")
    made = rows.transformWithState(_Counting(), "k STRING, end LONG, n LONG", "append", "eventtime")
    return made.withColumn("at", F.timestamp_millis("end")), {
        "event_time": "at",
        "time_behind": "1m",
    }


GATED: dict[str, Callable[[Streams], tuple[DataFrame, dict[str, Any]]]] = {
    "gated tumbling": lambda read: _windows(read, "10s"),
    "gated hopping": lambda read: _windows(read, "10s", "4s"),
    "gated updates": lambda read: _windows(read, "10s", mode="update"),
    "gated files": _of_files,
    "gated sessions": _sessions,
    "gated chain": _chained,
    "gated totals": _totals,
    "gated duplicates": _once,
    "gated duplicates within": _once_within,
    "gated inner join": lambda read: _joined(read, "inner"),
    "gated outer join": lambda read: _joined(read, "left_outer"),
    "gated by hand": _by_hand,
}
