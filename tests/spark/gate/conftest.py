"""A fresh world for every test: in the session that all tests of Spark share, or without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.gate.feed import setting
from tests.spark.jobs.world import World


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    made = World(spark, tmp_path)
    # Spark keeps few records of its batches; here every one of them is looked at.
    kept = "spark.sql.streaming.numRecentProgressUpdates"
    with setting(spark, kept, "1000"):
        yield made
        for query in spark.streams.active:
            query.stop()
    made.close()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[World]:
    """A world without Spark, for what is driven by hand."""
    made = World(None, tmp_path)  # type: ignore[arg-type]
    yield made
    made.close()
