"""Sessions: what one of ours is, and that everything works in one that we have not made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.own_session import TIMES, work

LAST_WORD = 'Setting Spark log level to "ERROR".\n'
"""What Spark says when our setting takes effect; it talks before."""


def run(whose: str, folder: Path, **environment: str) -> tuple[dict[str, Any], str]:
    """The program in a process of its own, in New York; what it told, and what was said."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.own_session", whose, str(folder)],
        env={**kept, "TZ": "America/New_York", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told, done.stderr


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same in the session of all tests."""
    told = work(spark, tmp_path_factory.mktemp("session") / "shop")
    assert [row[0] for row in told["read"]] == list(range(len(TIMES)))
    assert [row[-1] for row in told["read"]] == [round(at.timestamp() * 1e6) for at in TIMES]
    assert told["written"] == told["read"]
    assert len(told["windows"]) == len(TIMES) - 1  # the last is not complete
    return told


def test_a_session_of_ours_is_in_utc_with_the_running_python_and_says_nothing(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    told, said = run("ours", tmp_path / "shop")
    assert told == {**expected, "settings": ["UTC", "10"], "python": sys.executable}
    assert said.partition(LAST_WORD)[1:] == (LAST_WORD, "")


def test_a_session_of_the_users_own_gives_the_same_in_another_zone_and_mode(
    tmp_path: Path, expected: dict[str, Any]
) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    told, _ = run("theirs", tmp_path / "shop", PATH=path, SPARK_ANSI_SQL_MODE="false")
    because = "kernel: spark, because"
    zone = f"{because} the session's time zone is America/New_York, and the subset is tested in UTC"
    mode = f"{because} spark.sql.ansi.enabled is false, and the subset is tested with true"
    assert (told["explain"], told["in UTC"]) == (zone, mode)
    assert {name: told[name] for name in ("read", "written", "windows")} == {
        name: rows for name, rows in expected.items() if name != "explain"
    }
    assert told["settings"] == ["America/New_York", "100"]
