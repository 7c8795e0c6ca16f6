"""Tasks that Spark runs twice at once: results, late rows and notes are there once.

The cluster is a real one, for a local session does not speculate.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.restart.cluster import SPECULATING, cluster
from tests.restart.test_kills import driving, environment_of, left_by, lived

KIND = "tumbling"


@pytest.mark.faults
def test_what_speculative_attempts_write_beside_the_first_is_there_once(tmp_path: Path) -> None:
    assert lived(tmp_path / "straight", KIND)
    straight = left_by(tmp_path / "straight", KIND)
    assert straight["rows"]
    assert straight["late"]

    told = tmp_path / "told"
    told.mkdir()
    environment = environment_of(told, "tasks run twice")
    with cluster(tmp_path / "cluster", environment) as master:
        environment |= {"DRIVER_MASTER": master, "DRIVER_SETTINGS": json.dumps(SPECULATING)}
        with driving(tmp_path / "twice", KIND, environment) as driver:
            said, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0, said.decode()[-4000:]

    began = {tuple(map(int, p.name.split("-")[1:])) for p in told.glob("began-*")}
    wrote = {tuple(map(int, p.name.split("-")[1:])) for p in told.glob("wrote-*")}
    first = {task[:2] for task in began if task[2] == 0}
    second = {task[:2] for task in wrote if task[2] == 1}
    assert first
    assert first <= second  # every task that wrote a file ran a second time, and wrote another
    assert left_by(tmp_path / "twice", KIND) == straight
