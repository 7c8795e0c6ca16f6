"""A program that `spark-submit` starts is where it was sent, with what it was told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

PROGRAM = """
import json, sys
from tidegate.spark import session

settings = {"spark.sql.shuffle.partitions": "3", "spark.pyspark.python": sys.executable}
spark = session("submitted", settings=settings)
names = ("spark.master", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
told = {name: spark.conf.get(name) for name in names}
told["kept"] = spark.conf.get("spark.sql.streaming.numRecentProgressUpdates")
told["rows"] = spark.range(2).mapInArrow(lambda batches: batches, "id long").count()
print(json.dumps(told))
spark.stop()
"""


@pytest.mark.faults
def test_what_was_submitted_comes_before_our_defaults_and_what_is_asked_for_before_both(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]"]
    for setting in ("session.timeZone=Europe/Zurich", "shuffle.partitions=7"):
        command += ["--conf", f"spark.sql.{setting}"]
    pythons = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "/nowhere/python"}
    done = subprocess.run(
        [*command, str(program)],
        env={**os.environ, "SPARK_HOME": str(home), **pythons},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "spark.master": "local[1]",
        "spark.sql.session.timeZone": "Europe/Zurich",
        "spark.sql.shuffle.partitions": "3",
        "kept": "10",  # ours, for nobody has said anything else
        "rows": 2,
    }
