"""A fresh world for every test, in the session that all tests of Spark share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs.world import World


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    made = World(spark, tmp_path)
    yield made
    for query in spark.streams.active:
        query.stop()
    made.close()
