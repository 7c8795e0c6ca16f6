"""On a cluster it is the same call, and the same results; also when a machine dies in a batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL
from tests.cluster.machines import Cluster, standalone
from tests.conftest import fresh_catalog

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0


def driven(cluster: Cluster, folder: Path, postgres: URL, *names: str) -> dict[str, Any]:
    """What the jobs of these names leave; machines of those that wait for it are killed."""
    with ExitStack() as stack:
        catalogs = [f"{name}={stack.enter_context(fresh_catalog(postgres))}" for name in names]
        command = [sys.executable, "-m", "tests.cluster.driver", cluster.address, str(folder)]
        out, err = (stack.enter_context((folder / n).open("w+b")) for n in ("out", "err"))
        driver = subprocess.Popen(
            [*command, *catalogs],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=out,
            stderr=err,
        )
        stack.callback(driver.wait)
        stack.callback(driver.kill)
        until = time.monotonic() + PATIENCE
        waiting = [name for name in names if name.endswith("-killed")]
        while driver.poll() is None:
            assert time.monotonic() < until, (folder / "err").read_text()[-4000:]
            for told in (folder / waiting[0]).glob("process-*") if waiting else ():
                cluster.kill_worker_of(int(told.name.removeprefix("process-")))
                waiting.pop(0)
                if waiting:
                    cluster.add_worker()  # one is left for the last; the next kill needs two
                break
            time.sleep(0.05)
        assert driver.returncode == 0, (folder / "err").read_text()[-4000:]
        assert not waiting
        return dict(json.loads((folder / "out").read_text().splitlines()[-1]))


def test_both_gears_are_right_on_a_cluster_and_when_a_machine_of_it_dies(
    postgres: URL, tmp_path: Path
) -> None:
    """Each job is held against the naive truth in the driver."""
    with standalone(tmp_path / "cluster") as cluster:
        left = driven(cluster, tmp_path, postgres, "slices", "gate-killed")
    assert left["slices"]["rows"] == left["gate-killed"]["rows"]
    assert left["slices"]["late"] == left["gate-killed"]["late"]


@pytest.mark.faults
def test_machines_that_die_change_no_row_no_late_row_and_no_mark(
    postgres: URL, tmp_path: Path
) -> None:
    with standalone(tmp_path / "cluster") as cluster:
        left = driven(cluster, tmp_path, postgres, "slices", "gate", "slices-killed", "gate-killed")
    assert left["slices-killed"] == left["slices"]
    assert left["gate-killed"] == left["gate"]
