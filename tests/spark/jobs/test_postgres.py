"""Jobs whose catalog is a PostgreSQL: the transactions of a batch are those of a real server."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Lock, get_ident
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from sqlalchemy.engine import URL
from tests.conftest import fresh_catalog
from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, S, World, begun

from tidegate.errors import ConflictError
from tidegate.store.steps import listening

Make = Callable[[str], World]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path, postgres: URL) -> Iterator[Make]:
    """Worlds with a catalog of their own, by name."""
    with ExitStack() as stack:

        def made(name: str) -> World:
            catalog = stack.enter_context(fresh_catalog(postgres))
            (tmp_path / name).mkdir()
            world = World(spark, tmp_path / name, catalog)
            stack.callback(world.close)
            return world

        yield made
        for query in spark.streams.active:
            query.stop()


def _lived(world: World, *, disturbed: bool) -> dict[str, Any]:
    """A job with late rows; with `disturbed` batches fail on their way, and run again."""
    world.stream(segments=2)
    here, there = world.key(0), world.key(1)
    job = world.windows(size=10, slide=4, tolerance="2s")
    both = Both(world, job, Truth(10 * S, 4 * S, tolerance=2 * S))
    world.append([(here, 1, 12), (there, 2, 11), (here, 3, 33), (there, 4, 35)])
    both.go()
    for step in ("batch: before commit", "batch: committed"):
        top = (both.truth.w or 0) / S
        rows = [(here, 3, top + by) for by in (-30, -3, 9, 22)]
        if disturbed:
            both.stop()  # else it may have had these rows before the batch that is to fail
        world.append(rows + [(there, 4, t + 1) for _, _, t in rows])
        if disturbed:
            both.fail(step)
            assert world.store.maintain("orders").chunks_joined > 0
        both.go()
    both.stop()
    assert both.truth.lost.total() > 0
    both.check()
    figures = job.progress.figures()
    late = world.read("orders.late")
    return {
        "rows": world.counts("out"),
        "late": Counter((r["late_time"], r["k"], r["v"], r["late_watermark"]) for r in late),
        "frontier": job.progress.frontier(),
        "figures": {name: figures[name] for name in ("rows_in", "rows_out", "late", "lost", "bad")},
        "by partition": figures["partitions"],
    }


def test_batches_that_fail_and_run_again_leave_what_a_straight_run_leaves(make: Make) -> None:
    straight = _lived(make("straight"), disturbed=False)
    assert straight["rows"]
    assert straight["late"]
    assert _lived(make("disturbed"), disturbed=True) == straight


def test_of_two_drivers_the_one_that_commits_second_is_fenced(make: Make) -> None:
    world = make("fenced")
    world.stream()
    job = world.windows(size=10)
    both = Both(world, job, Truth(10 * S))
    world.append([("a", 1, 5), ("a", 2, 15)])
    both.go()
    both.stop()
    copy = world.folder / "copy"
    shutil.copytree(job.checkpoint, copy)
    # Within a session Spark itself stops a query for its double; a driver elsewhere is not seen.
    (copy / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    (copy / ".metadata.crc").unlink(missing_ok=True)
    second = world.windows(size=10, checkpoint=copy)

    # The first stands before its transaction until the second has committed the same batch with
    # one more row in it: only the transaction itself can tell it so.
    stands, may_go, lock = Event(), Event(), Lock()
    first_thread: list[int] = []

    def hold_the_first(step: str) -> None:
        if step != "batch: before commit":
            return
        with lock:
            if not first_thread:
                first_thread.append(get_ident())
        if first_thread == [get_ident()] and not stands.is_set():
            stands.set()
            assert may_go.wait(120)

    world.append([("a", 3, 18), ("a", 4, 25)])
    with listening(hold_the_first):
        first = job.start()
        assert stands.wait(120)
        world.append([("a", 5, 19), ("a", 6, 42)])
        with begun(second):
            may_go.set()
            with pytest.raises(ConflictError, match="query is fenced") as fenced:
                first.process_all()
        first.stop()
    assert fenced.value.code == "query-fenced"
    both.truth.see(both.new())
    both.check()
