"""One Spark session for all tests of this folder: to start one takes seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tidegate.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session(
        "tidegate tests",
        master="local[2]",
        settings={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"},
    )
    yield made
    made.stop()
