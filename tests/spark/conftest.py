"""One Spark session for all tests of this folder: to start one takes seconds.

All its processes have the packages in `installed` as if a user had installed them.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate.spark import session

INSTALLED = str(Path(__file__).parent / "installed")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    paths = [INSTALLED, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    sys.path.append(INSTALLED)
    made = session(
        "tidegate tests",
        master="local[2]",
        settings={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"},
    )
    yield made
    made.stop()
