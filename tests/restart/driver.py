"""A driver that can be killed anywhere: it appends some stages of rows and runs a job over each.

    python -m tests.restart.driver FOLDER KIND

Started again it goes on from what is durable, as a real one would: the writer knows how many rows
it has, the job has its checkpoint. `DRIVER_MASTER` and `DRIVER_SETTINGS` (JSON) may name a cluster.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.restart.gated import GATED, gated
from tests.restart.sources import STAGES, Folders, Source, Streams

from tidegate.store import Store

FILES = ("files", "gated files")
"""Kinds that read a log of others, with bad rows in it."""
KINDS = ("tumbling", "hopping", "join", "ordered", "interval join", "full join", "files", *GATED)
KERNEL: Any = "auto"
JOINED = (
    "SELECT o._window_start, o._window_end, o.k, o.n, p.m FROM"
    " (SELECT _window_start, _window_end, k, count(*) AS n FROM orders"
    " GROUP BY _window_start, _window_end, k) o LEFT JOIN"
    " (SELECT _window_start, _window_end, k, sum(v) AS m FROM payments"
    " GROUP BY _window_start, _window_end, k) p"
    " ON o.k = p.k AND o._window_end = p._window_end"
)


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
        source = (
            Folders(Path(folder) / "files") if kind in FILES else Streams(store, streams_of(kind))
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
            job = gated(spark, kind, store, source.logs)
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
            slide = None if kind in ("tumbling", "files") else timedelta(seconds=4)
            job = windows(
                spark, source.logs or streams_of(kind), size=timedelta(seconds=10), slide=slide,
                query=query, **given,
            )  # fmt: skip
        _live(source, job)
        spark.stop()


def _live(source: Source, job: Any) -> None:
    if not source.stages():
        source.put(0)
    from tests.spark.jobs.world import begun

    with begun(job) as running:
        for stage in range(source.stages(), STAGES):
            source.put(stage)
            running.process_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
