"""The driver of a cluster test: jobs of both gears, each beside the naive truth.

    python -m tests.cluster.driver MASTER FOLDER NAME=CATALOG...

A name is `slices` or `gate`, with `-killed` behind it where the machine of a task shall be killed.
Such a task writes its file, says which process it is, and waits for its end; the test that has
started this program sees to that. What every job leaves is told as JSON.

It is run as a program, so that its sink travels to the executors by value: they have the package,
but not the tests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.cluster.gears import lived
from tests.cluster.machines import SETTINGS
from tests.spark.jobs.world import World

from tidegate.spark import StreamSink, session
from tidegate.spark.sinks import Batch
from tidegate.store import Store

KILLED_IN = 1
"""The stage in which a machine is killed."""
PATIENCE = 120.0


@dataclass(frozen=True)
class Doomed(StreamSink):
    """A stream sink of which one task, when it is asked for, waits until its machine is killed."""

    folder: str = ""

    def write(
        self, batches: Iterator[pa.RecordBatch], store: Store, batch: Batch, task: int
    ) -> Any:
        """Write the file, and do not come back to tell of it."""
        written = super().write(batches, store, batch, task)
        asked = Path(self.folder) / "asked"
        if written is not None and asked.exists():
            told = Path(self.folder) / f"process-{os.getpid()}"
            try:
                asked.rename(told)
            except FileNotFoundError:
                return written  # another task has taken it
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                time.sleep(0.05)
            raise AssertionError("nobody has killed this process")
        return written


def main(master: str, folder: Path, catalogs: dict[str, str]) -> dict[str, Any]:
    """Run the jobs one after the other, and tell what they leave."""
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        **SETTINGS,
        "spark.sql.streaming.stateStore.providerClass": rocks,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    spark = session("cluster", master=master, settings=settings)
    told = {name: _lived(spark, folder / name, catalog) for name, catalog in catalogs.items()}
    spark.stop()
    return told


def _lived(spark: SparkSession, folder: Path, catalog: str) -> dict[str, Any]:
    gear, _, killed = folder.name.partition("-")
    folder.mkdir()
    world = World(spark, folder, catalog)

    def ask(stage: int) -> None:
        if killed and stage == KILLED_IN:
            (folder / "asked").touch()

    left = lived(world, gear, Doomed("out", folder=str(folder)), ask)
    assert not killed or list(folder.glob("process-*"))
    world.close()
    return left


if __name__ == "__main__":
    named = dict(one.split("=", 1) for one in sys.argv[3:])
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), named)))
