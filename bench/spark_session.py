"""The session of all rivals: some cores of this machine, and memory for large batches."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tidegate.spark import session


def with_cores(cores: int) -> SparkSession:
    """A session with these cores."""
    return session(
        "bench",
        master=f"local[{cores}]",
        settings={
            "spark.driver.memory": "4g",
            "spark.sql.shuffle.partitions": "2",
            # Every batch is looked at afterwards.
            "spark.sql.streaming.numRecentProgressUpdates": "1000",
        },
    )
