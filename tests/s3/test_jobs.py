"""Jobs of both gears whose data is on object storage and whose catalog is a PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy.engine import URL
from tests.cluster.gears import GEARS, lived
from tests.conftest import fresh_catalog
from tests.s3.conftest import Bucket
from tests.spark.conftest import spark as spark
from tests.spark.jobs.world import World

from tidegate.spark import StreamSink
from tidegate.store import Store

pytestmark = pytest.mark.s3


@pytest.mark.parametrize("gear", GEARS)
def test_a_job_is_right_with_all_its_rows_in_a_bucket(
    gear: str, spark: SparkSession, bucket: Bucket, postgres: URL, tmp_path: Path
) -> None:
    data = bucket.address(f"/jobs/{gear}")
    with fresh_catalog(postgres) as catalog:
        world = World(spark, tmp_path, catalog, data)
        try:
            lived(world, gear, StreamSink("out"))
            streams = {path.split("/")[0] for path in world.store.files.list()}
        finally:
            world.close()
        # Whoever opens it by the same addresses finds it all.
        with Store.open(catalog, data=data) as again:
            assert streams == {"orders", "orders.late", "out"} <= set(again.list_streams())
