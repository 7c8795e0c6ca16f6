"""One history per query: whoever comes with another one is fenced, and nothing is doubled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, S, World

from tidegate.errors import ConflictError


def test_old_and_deleted_checkpoints_and_second_drivers_are_fenced(world: World) -> None:
    world.stream()
    job = world.windows(size=10)
    both = Both(world, job, Truth(10 * S))
    world.append([("a", 1, 5), ("a", 2, 15)])
    both.go()
    both.stop()
    yesterday = world.folder / "yesterday"
    shutil.copytree(job.checkpoint, yesterday)
    # Within a session Spark itself stops a query for its double; a driver elsewhere is not seen.
    (yesterday / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    (yesterday / ".metadata.crc").unlink(missing_ok=True)
    world.append([("a", 3, 18), ("a", 4, 25)])
    both.go()

    # The first driver still runs when a second one comes with the checkpoint of yesterday.
    world.append([("a", 5, 28), ("a", 6, 42)])
    second = world.windows(size=10, checkpoint=yesterday)
    with pytest.raises(ConflictError, match="query is fenced") as fenced:
        second.run()
    assert fenced.value.code == "query-fenced"
    assert "the checkpoint is older than what was committed" in str(fenced.value)
    assert "reset it and delete its checkpoint" in str(fenced.value)
    both.go()
    both.stop()

    # And one whose checkpoint was deleted would begin anew under the old name.
    kept = world.folder / "kept"
    shutil.move(job.checkpoint, kept)
    with pytest.raises(ConflictError, match="query is fenced") as fenced:
        job.run()
    assert "another history" in str(fenced.value)
    both.check()

    # With its own checkpoint it goes on; after a reset it may begin anew.
    shutil.rmtree(job.checkpoint, ignore_errors=True)
    shutil.move(kept, job.checkpoint)
    world.append([("a", 7, 55)])
    both.go()
    both.stop()
    both.check()
    assert job.reset()
    shutil.rmtree(Path(job.checkpoint))
    assert job.run()["rows_in"] == 7
