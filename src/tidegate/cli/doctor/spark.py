"""Spark for real: a session, and one task that goes through a Python worker.

What Spark says goes into a file, which stays only when something fails.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from tidegate.cli.doctor.checks import Check, State
from tidegate.cli.spark_output import spoken_into

NAME = "Spark"


def check_spark() -> Check:
    """Start a session as Tidegate does, run a task, and tell what came back."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from tidegate.spark.session import session

    folder = Path(tempfile.mkdtemp(prefix="tidegate-doctor-"))
    log = folder / "spark.log"
    began = time.monotonic()
    try:
        with spoken_into(log):
            # Without a folder of its own Spark would make one where the user stands.
            spark = session(
                "tidegate doctor",
                settings={
                    "spark.sql.warehouse.dir": str(folder / "warehouse"),
                    "spark.sql.artifact.isolation.enabled": "false",
                },
            )
            try:
                version = spark.version
                (row,) = spark.range(1).mapInArrow(_in_worker, "python string, pid long").collect()
            finally:
                spark.stop()
    except (PySparkException, Py4JError, RuntimeError, OSError) as failure:
        told = str(failure).strip().partition("\n")[0] or type(failure).__name__
        return Check(NAME, State.FAILED, told, f"read what Spark said in {log}")
    if row.pid == os.getpid():
        return Check(NAME, State.FAILED, "the task ran in the driver", "report this, please")
    shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - began
    told = f"{version} started, ran a task in {row.python}, and stopped: {seconds:.0f} s in all"
    return Check(NAME, State.OK, told)


def _in_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Imported by the worker with the whole of Tidegate, which is half of what is tried."""
    import sys

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "pid": [os.getpid()]})
