"""Ordered release of a backlog whose disorder is larger than memory.

Two gigabytes of rows that compress badly, each up to a quarter of the whole behind the others, in a
session of its own with 512 MB of heap. They must come out in order, all of them; the largest
process is told. Disorder costs reading, not memory: what is not due stays in the log.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.memory import largest_descendant
from bench.report import Row
from tidegate.spark import FilesSink, files_of, ordered, session
from tidegate.store import Store

ROW = 200
"""Bytes of a row."""
FLUSH = 100_000
SPAN = 1_000_000_000
"""Microseconds that the rows spread over."""
SCHEMA = pa.schema(
    [("id", pa.int64()), ("load", pa.binary(ROW)), ("at", pa.timestamp("us", tz="UTC"))]
)


def larger_than_memory(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """2 GB at the full number of rows, less for a look."""
    size = count * 50
    command = [sys.executable, "-m", "bench.spark_memory", str(folder / "large"), str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout.strip().splitlines()[-1])
    name = f"ordered release of {size / 1e9:.1f} GB, 512 MB of heap"
    return [
        Row(f"{name}: rows missing or out of order", told["wrong"], "rows", 0),
        Row(f"{name}: largest process", told["peak"], "MiB"),
        Row(f"{name}: time", told["seconds"], "s"),
    ]


def main() -> None:
    folder, rows = Path(sys.argv[1]), int(sys.argv[2]) // ROW
    store = Store.open(folder / "store")
    store.create_stream("backlog", SCHEMA, event_column="at", max_future=None)
    _write(store, rows)
    spark = session("large", master="local[2]", settings={"spark.driver.memory": "512m"})
    began = perf_counter()
    job = ordered(
        spark,
        "backlog",
        store=store,
        name="large",
        sink=FilesSink(str(folder / "rows")),
        watermark="events",
        tolerance=timedelta(microseconds=SPAN // 4),
    )
    job.run()
    seconds = perf_counter() - began
    peak = largest_descendant()
    told = {"wrong": _wrong(folder / "rows", store), "peak": peak, "seconds": seconds}
    print(json.dumps(told))


def _write(store: Store, rows: int) -> None:
    dice = np.random.default_rng(1)
    with store.writer("backlog", "load", notes_time=False, flush_rows=FLUSH) as writer:
        for first in range(0, rows, FLUSH):
            many = min(FLUSH, rows - first)
            at = (first + np.arange(many)) * (SPAN / rows) - dice.integers(0, SPAN // 4, many)
            load = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(ROW), many, [None, pa.py_buffer(dice.bytes(many * ROW))]
            )
            table = [np.arange(first, first + many), load, at.astype("datetime64[us]")]
            writer.append(pa.table([pa.array(c) for c in table], names=SCHEMA.names).cast(SCHEMA))
            writer.flush()


def _wrong(folder: Path, store: Store) -> int:
    """Rows that are not above the one before, and those that should have come and did not."""
    last, seen, wrong = -(1 << 62), 0, 0
    for path in files_of(folder):
        times = _times(path)
        steps = np.diff(np.concatenate([[last], times]))
        wrong += int((steps < 0).sum())
        seen, last = seen + len(times), int(times[-1]) if len(times) else last
    highest = store.segments("backlog")[0].max_time
    assert highest is not None
    written = (Path(store.files.root) / "backlog").rglob("*.parquet")
    expected = sum(int((_times(str(path)) < highest - SPAN // 4).sum()) for path in written)
    return wrong + abs(expected - seen)


def _times(path: str) -> npt.NDArray[np.int64]:
    column = pq.read_table(path, columns=["_event_time"]).column(0)
    found: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return found


if __name__ == "__main__":
    main()
