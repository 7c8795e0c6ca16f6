"""A driver that can be killed anywhere: it appends some stages of rows and runs a job over each.

    python -m tests.restart.driver FOLDER KIND

Started again it goes on from what is durable, as a real one would: the writer knows how many rows
it has, the job has its checkpoint. `DRIVER_MASTER` and `DRIVER_SETTINGS` (JSON) may name a cluster.
"""

from __future__ import annotations

import json
import os
import random
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.restart.gated import GATED, gated

from tidegate.store import Store

S = 1_000_000
STAGES = 4
PER_STAGE = 40
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
KINDS = ("tumbling", "hopping", "join", "ordered", "interval join", "full join", *GATED)
KERNEL: Any = "auto"
JOINED = (
    "SELECT o._window_start, o._window_end, o.k, o.n, p.m FROM"
    " (SELECT _window_start, _window_end, k, count(*) AS n FROM orders"
    " GROUP BY _window_start, _window_end, k) o LEFT JOIN"
    " (SELECT _window_start, _window_end, k, sum(v) AS m FROM payments"
    " GROUP BY _window_start, _window_end, k) p"
    " ON o.k = p.k AND o._window_end = p._window_end"
)


def rows_of(stream: str, stage: int) -> pa.Table:
    """The rows of a stage: most of them new, some late, some lost."""
    random_ = random.Random(f"{stream} {stage}")
    top = 60 * stage * S
    times = [top + random_.randint(-70, 60) * S for _ in range(PER_STAGE - 8)] + [top + 60 * S] * 8
    columns = {
        "k": [f"k{n % 8}" for n in range(len(times))],
        "v": list(range(len(times))),
        "at": pa.array(times).cast(SCHEMA.field("at").type),
    }
    return pa.table(columns, schema=SCHEMA)


def streams_of(kind: str) -> list[str]:
    """The streams that a job of this kind reads."""
    return ["orders", "payments"] if "join" in kind else ["orders"]


def main(folder: str, kind: str) -> None:
    """Run the life of a driver, or what is left of it."""
    os.environ["KILL_DRIVER"] = str(os.getpid())
    from tidegate.spark import session
    from tidegate.spark.sinks import StreamSink
    from tidegate.spark.slices import interval_join, ordered, windows

    with Store.open(Path(folder) / "store") as store:
        for name in streams_of(kind):
            store.create_stream(
                name, SCHEMA, exist_ok=True, event_column="at", routing_key=("k",), segments=2
            )
        settings = {
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
            # It lives for seconds: what the better compiler makes would come too late.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        settings |= json.loads(os.environ.get("DRIVER_SETTINGS", "{}"))
        master = os.environ.get("DRIVER_MASTER", "local[2, 3]")
        spark = session("driver", master=master, settings=settings)
        given: Any = {
            "name": "job", "store": store, "sink": StreamSink("out"), "kernel": KERNEL,
            "tolerance": "10s", "idle_after": "never",
        }  # fmt: skip
        job: Any
        if kind in GATED:
            job = gated(spark, kind, store)
        elif kind == "ordered":
            job = ordered(spark, "orders", **given)
        elif kind in ("interval join", "full join"):
            side = "FULL" if kind == "full join" else "LEFT"
            query = f"SELECT o.k, o.v, p.v AS m FROM orders o {side} JOIN payments p ON o.k = p.k"
            job = interval_join(
                spark, *streams_of(kind), before="5s", after="3s", query=query, **given
            )
        else:
            query = JOINED if kind == "join" else (
                "SELECT _window_start, _window_end, k, count(*) AS n, sum(v) AS m FROM orders"
                " GROUP BY _window_start, _window_end, k"
            )  # fmt: skip
            slide = timedelta(seconds=10) if kind == "tumbling" else timedelta(seconds=4)
            job = windows(
                spark, streams_of(kind), size=timedelta(seconds=10), slide=slide, query=query,
                **given,
            )  # fmt: skip
        _live(store, streams_of(kind), job)
        spark.stop()


def _live(store: Store, streams: list[str], job: Any) -> None:
    writers = [store.writer(name, "w", flush_age=None) for name in streams]
    stage = min(writer.durable for writer in writers) // PER_STAGE
    if stage == 0 and all(writer.durable == 0 for writer in writers):
        _append(writers, 0)
        stage = 1
    from tests.spark.jobs.world import begun

    with begun(job) as running:
        for next_ in range(stage, STAGES):
            _append(writers, next_)
            running.process_all()


def _append(writers: list[Any], stage: int) -> None:
    for writer in writers:
        rows = rows_of(writer.stream, stage)
        writer.append(rows, first_row=stage * PER_STAGE)
        writer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
