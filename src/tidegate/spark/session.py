"""The session: one place that builds a Spark session with the settings we stand for.

Every part of this room takes any session that the user already has, classic or Connect; nothing
here is needed for that. What a session of ours has is: UTC, the running interpreter as the Python
worker, quiet logs, Arrow between Spark and Python, and few progress records in memory.

    spark = session("orders by minute")                       # this machine, all cores
    spark = session("orders by minute", master="spark://host:7077", settings=...)
    spark = session("orders by minute", remote="sc://host:15002")
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from tidegate.spark.home import light_home

DEFAULTS: Final[dict[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    # Spark keeps three offsets in every record, and ours hold a planner's state.
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A batch must not spend its time on deciding how to repartition a few rows.
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "8",
}
"""Settings that may also be changed on a running session."""

STATIC: Final[dict[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A task that is the third Python worker of its core waits longer to start than to work.
    "spark.python.worker.reuse": "true",
}
"""Settings that a classic session takes only when it is made."""


def session(
    name: str = "tidegate",
    *,
    master: str | None = None,
    remote: str | None = None,
    quiet: bool = True,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session with our defaults, or the running one brought up to them.

    `settings` are Spark's own and win over ours. `remote` asks a Spark Connect server, and then
    `local[2]` starts one here; without it and without `master` all cores of this machine are used.
    """
    # Executors on this machine start what this says; a cluster says so itself.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    chosen = {**DEFAULTS, **(settings or {})}
    if remote is not None:
        builder = builder.remote(remote)
    else:
        builder = builder.master(master or os.environ.get("SPARK_MASTER", "local[*]"))
        chosen = {**STATIC, **chosen}
        chosen.setdefault("spark.pyspark.python", sys.executable)
        if quiet:
            chosen.setdefault("spark.log.level", "ERROR")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    where = remote or master or os.environ.get("SPARK_MASTER", "local[*]")
    with light_home(where.startswith("local")):
        return builder.getOrCreate()
