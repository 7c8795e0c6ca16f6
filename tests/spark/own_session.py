"""One program in a session of ours and in one that a user has made: it must tell the same.

python -m tests.spark.own_session ours folder
python -m tests.spark.own_session theirs folder

Among its times are those that New York has twice, and those that it has not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.spark import StreamSink, register, session, windows
from tidegate.spark.slices import SlicesJob
from tidegate.store import Store
from tidegate.store.reading import read_between

AT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("day", pa.date32()), ("local", pa.timestamp("us")), ("at", AT)]
)
HOUR = timedelta(hours=1)
TIMES = [
    datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
    *(datetime(2026, 3, 8, 5, 30, tzinfo=UTC) + n * HOUR for n in range(4)),  # none from 2 to 3
    *(datetime(2026, 11, 1, 4, 30, tzinfo=UTC) + n * HOUR for n in range(4)),  # twice from 1 to 2
]
PER_HOUR = (
    "SELECT _window_start, _window_end, count(*) AS n, max(at) AS newest FROM orders"
    " GROUP BY _window_start, _window_end"
)
SETTINGS = ("spark.sql.session.timeZone", "spark.sql.streaming.numRecentProgressUpdates")


def main(whose: str, folder: Path) -> dict[str, Any]:
    """Make the session, work in it, and tell."""
    if whose == "ours":
        spark = session()
    else:
        zone = ("spark.sql.session.timeZone", "America/New_York")
        spark = SparkSession.builder.master("local[2]").config(*zone).getOrCreate()
    told = work(spark, folder)
    told["settings"] = [spark.conf.get(name) for name in SETTINGS]
    told["python"] = spark.range(1).mapInArrow(_python, "path string").collect()[0].path
    if whose == "theirs":
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        told["in UTC"] = _job(spark, Store.open(folder)).explain().splitlines()[0]
    spark.stop()
    return told


def work(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What every session must do alike: read, write, and run a job in windows."""
    with Store.open(folder) as store:
        for name in ("orders", "copy"):
            store.create_stream(name, SCHEMA, event_column="at", max_future=None)
        rows = [
            {"id": n, "day": at.date(), "local": at.replace(tzinfo=None), "at": at}
            for n, at in enumerate(TIMES)
        ]
        with store.writer("orders", "w") as writer:
            writer.append(pa.Table.from_pylist(rows, schema=SCHEMA))
        register(spark)
        place = {"store": str(folder), "stream": "orders"}
        read = spark.read.format("tidegate").options(**place).load().orderBy("id")
        copied = place | {"stream": "copy"}
        read.write.format("tidegate").options(**copied).mode("append").save()
        job = _job(spark, store)
        job.run(tell=False)
        return {
            "read": _plain(read.toArrow()),
            "written": _plain(pa.Table.from_batches(read_between(store, "copy"))),
            "windows": _plain(pa.Table.from_batches(read_between(store, "per_hour"))),
            "explain": job.explain().splitlines()[0],
        }


def _job(spark: SparkSession, store: Store) -> SlicesJob:
    return windows(
        spark, "orders", size="1 hour", store=store, name="per_hour", query=PER_HOUR,
        sink=StreamSink("per_hour"),
    )  # fmt: skip


def _plain(table: pa.Table) -> list[list[Any]]:
    """Rows as numbers, whatever zone their times are shown in; sorted."""
    for place, field in enumerate(table.schema):
        if not pa.types.is_integer(field.type):
            number = pa.int32() if pa.types.is_date(field.type) else pa.int64()
            table = table.set_column(place, field.name, table.column(place).cast(number))
    return sorted([*row.values()] for row in table.to_pylist())


def _python(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"path": [sys.executable]})


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
