"""The session: one place that builds a Spark session with the settings we stand for.

Every part of this room takes any session that the user already has, classic or Connect; nothing
here is needed for that. What a session of ours has is: UTC, the running interpreter as the Python
worker (unless `PYSPARK_PYTHON` or `spark.pyspark.python` names another, as on a cluster whose nodes
have theirs elsewhere), quiet logs, Arrow between Spark and Python, and few progress records in
memory.

    spark = session("orders by minute")                       # this machine, all cores
    spark = session("orders by minute", master="spark://host:7077", settings=...)
    spark = session("orders by minute", remote="sc://host:15002")

A program that `spark-submit` starts says `session("orders by minute")`, and is where it was sent.
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
    # State behind the gate is then bounded by disk and not by the heap, and a checkpoint writes
    # what has changed; `transformWithState` has no other.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A batch must not spend its time on deciding how to repartition a few rows.
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "8",
}
"""Settings that may also be changed on a running session."""

ON_THIS_MACHINE: Final[dict[str, str]] = {
    # Spark's own choice sets the mode of every file of a checkpoint by a process of its own, some
    # thirty milliseconds for each of the logs of a batch. Renames on a local disk are as good. On
    # HDFS they are not: there a file that is written again would keep its old content.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of a session whose driver and executors are one process: its checkpoints are here."""

ARROW: Final[dict[str, str]] = {
    "ARROW_ENABLE_UNSAFE_MEMORY_ACCESS": "true",
    "ARROW_ENABLE_NULL_CHECK_FOR_GET": "false",
}
"""What the JVM finds in its environment: Spark looks for nulls and counts rows itself, so Arrow
need not do it once more for every value that comes from Python."""

STATIC: Final[dict[str, str]] = {
    **{f"spark.executorEnv.{name}": value for name, value in ARROW.items()},
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A task that is the third Python worker of its core waits longer to start than to work.
    "spark.python.worker.reuse": "true",
}
"""Settings that a classic session takes only when it is made."""

SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""What `spark-submit` leaves in the environment of a program that it starts."""


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
    `local[2]` starts one here. Without it and without `master`, what `spark-submit` was told holds,
    or else all cores of this machine are used.
    """
    # Spark starts what the environment says, here and on executors, and goes by the setting of that
    # name only when it starts the driver itself.
    asked = dict(settings or {})
    python = asked.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = python or sys.executable
    builder = SparkSession.builder.appName(name)
    if remote is None and master is None and SUBMITTED in os.environ:
        return _submitted(builder, asked)
    where = remote or master or os.environ.get("SPARK_MASTER", "local[*]")
    chosen = {**defaults_on(where), **asked}
    if remote is not None:
        builder = builder.remote(remote)
    else:
        builder = builder.master(where)
        chosen = {**STATIC, **chosen}
        chosen.setdefault("spark.pyspark.python", os.environ["PYSPARK_PYTHON"])
        if quiet:
            chosen.setdefault("spark.log.level", "ERROR")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    for name, value in ARROW.items():
        os.environ.setdefault(name, value)
    with light_home(_is_here(where)):
        return builder.getOrCreate()


def defaults_on(master: str) -> dict[str, str]:
    """What a running session may be brought up to, by where it runs.

    >>> set(defaults_on("local[2]")) - set(defaults_on("spark://host:7077"))
    {'spark.sql.streaming.checkpointFileManagerClass'}
    """
    return {**DEFAULTS, **(ON_THIS_MACHINE if _is_here(master) else {})}


def _is_here(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def on_connect(spark: SparkSession) -> bool:
    """Whether the driver is elsewhere, behind Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _submitted(builder: SparkSession.Builder, asked: Mapping[str, str]) -> SparkSession:
    """A session of a program that `spark-submit` has started: its word comes before our defaults.

    What is set in a program wins over it in Spark, so nothing is that nobody has asked for.
    """
    for key, value in asked.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    told = made.sparkContext.getConf()
    for key, value in defaults_on(str(made.sparkContext.master)).items():
        if key not in asked and not told.contains(key):
            made.conf.set(key, value)
    return made
