"""Jobs on Spark Connect, where the function of a batch runs in a process of the server."""

import json
import subprocess
import sys
from pathlib import Path


def test_jobs_on_a_connect_session_are_those_of_a_classic_one(tmp_path: Path) -> None:
    """In a process of its own: a session is classic or Connect for good."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_jobs", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "duckdb": [100, 0, 90],
        "spark": [100, 0, 90],
        "function": [100, 0, 90],
        # Two segments: whether one of them is behind 110 decides which window is the last.
        "gate": [106, 3, 3, 0, 100],
        "fenced": ["query-fenced", False],
    }
