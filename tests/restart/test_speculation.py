"""Tasks that Spark runs twice at once: results, late and bad rows and notes are there once.

The cluster is a real one, for a local session does not speculate.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.restart.cluster import SPECULATING, cluster
from tests.restart.lives import TOLD, ended, environment_of, lived
from tests.restart.test_kills import left_by

Task = tuple[int, int]


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["tumbling", "files"])
def test_what_speculative_attempts_write_beside_the_first_is_there_once(
    tmp_path: Path, kind: str
) -> None:
    assert lived(tmp_path / "straight", kind)
    straight = left_by(tmp_path / "straight", kind)
    assert straight["rows"]
    assert straight["late"]
    assert bool(straight["bad"]) == (kind == "files")

    told = tmp_path / "told"
    told.mkdir()
    environment = environment_of(told, "tasks run twice")
    with cluster(tmp_path / "cluster", environment) as master:
        environment |= {"DRIVER_MASTER": master, "DRIVER_SETTINGS": json.dumps(SPECULATING)}
        code = ended(told, environment, str(tmp_path / "twice"), kind, patience=300)
    assert code == 0, (told / TOLD).read_text()[-4000:]

    began = _attempts(told, "began")
    assert began
    # Every task that came to write a file ran a second time, and both wrote theirs.
    assert {task for task, both in began.items() if both != {0, 1}} == set()
    assert _attempts(told, "wrote") == began
    for rows in ("late", "bad"):
        assert bool(_attempts(told, rows)) == bool(straight[rows])
    assert left_by(tmp_path / "twice", kind) == straight


def _attempts(told: Path, what: str) -> dict[Task, set[int]]:
    """By task the attempts that did it."""
    found: dict[Task, set[int]] = {}
    for path in told.glob(f"{what}-*"):
        stage, partition, attempt = map(int, path.name.split("-")[1:])
        found.setdefault((stage, partition), set()).add(attempt)
    return found
