"""A job over a log that is not ours: folders of files, with rows and files that cannot be read.

The event time is of a type of the user's own, offered by a package that all processes have.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.jobs.truth import Row, Truth
from tests.spark.jobs.world import S, World, begun, counted, failing_at

from tidegate.errors import TidegateError
from tidegate.logs.files import FileLog
from tidegate.spark.running import summary

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", pa.string())])
FAR = "T9999999999"
"""In the year 2286."""


class Folders:
    """The folders, and the truth about them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.truth = Truth(10 * S)
        self.fresh: list[Row] = []
        self.files = 0

    def add(self, partition: str, *rows: tuple[str, int, float | str | None], age: int = 0) -> Path:
        """A new file; rows whose time is a text are bad ones. It came so many seconds ago."""
        lines = []
        for k, v, t in rows:
            lines.append({"k": k, "v": v, "at": f"T{t}" if isinstance(t, int | float) else t})
            if isinstance(t, int | float):
                self.fresh.append(Row(partition, round(t * S), k, v))
        self.files += 1
        place = self.root / partition / f"{self.files:04d}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        hidden = self.root / partition / "_new"
        hidden.write_text("".join(json.dumps(line) + "\n" for line in lines))
        came = time.time() - age
        os.utime(hidden, (came, came))
        hidden.rename(place)
        return place

    def log(self) -> FileLog:
        """The folders as a log."""
        return FileLog(
            "orders",
            self.root,
            format="jsonl",
            event_column="at",
            event_type="ticks",
            schema=SCHEMA,
        )

    def see(self, **said: Any) -> None:
        """Tell the truth what has come."""
        self.truth.see(self.fresh, **said)
        self.fresh = []


EACH_ONCE = Counter([("missing", "job"), ("unparsable", "job"), ("future", "job")])


def routed(world: World) -> Counter[tuple[str, str]]:
    """The bad rows by reason, and who found them."""
    return Counter((row["reason"], row["writer"]) for row in world.read("orders.errors"))


def test_folders_come_and_go_bad_rows_are_routed_and_the_end_gives_everything_out(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = Folders(world.folder / "files")
    folders.add("p0", ("a", 1, -15), ("b", 2, -5), ("a", 3, None), ("a", 4, "noon"), ("a", 5, 5))
    folders.add("p1", ("a", 6, 3), ("b", 7, FAR), ("b", 8, 14), age=300)
    log = folders.log()
    job = world.windows(streams={"orders": log}, size=10)
    running = begun(job)

    def go(**said: Any) -> None:
        running.process_all()
        folders.see(**said)
        assert world.counts("out") == folders.truth.results(counted)

    quiet = [("orders", "p1")]  # by the dates of its files
    go(idle=quiet)
    assert folders.truth.a == 0  # windows before 1970 are given out
    folders.add("p2", ("a", 1, 8), ("b", 1, 40))  # added
    folders.add("p0", ("b", 1, 22))
    go(idle=quiet)
    (folders.root / "p1").rename(world.folder / "away")  # removed, its rows have been given out
    folders.truth.highest.pop(("orders", "p1"))
    folders.add("p0", ("a", 1, 45))
    go()
    assert folders.truth.a == 40 * S
    (world.folder / "away").rename(folders.root / "p1")  # returning, with a late row
    folders.add("p1", ("c", 1, 12), ("c", 1, 60))
    go()

    broken = folders.root / "p2" / "0900.json"
    broken.write_text('{"k": "a", "v": 1, "at"')
    folders.add("p0", ("a", 1, 80))
    folders.add("p1", ("a", 1, 80))
    go()  # it holds the others, but they are read
    [hold] = job.progress.detail()["holds"]
    assert "p2: unreadable" in hold
    assert "0900.json" in hold
    strict = world.windows(streams={"orders": log}, size=10, name="strict", on_unreadable="fail")
    with pytest.raises(TidegateError) as failed:
        strict.run()
    assert failed.value.code == "partition-unreadable"

    broken.unlink()
    folders.add("p2", ("a", 9, 71))
    go()
    assert folders.truth.a == 70 * S
    for partition in ("p0", "p1", "p2"):
        (folders.root / partition / "_END").touch()
    go(ended=True)
    capsys.readouterr()
    assert running.wait()  # nothing more will ever come
    assert capsys.readouterr().err == summary(job.progress.figures()) + "\n"
    assert world.counts("out") == folders.truth.results(counted)
    figures = job.progress.figures()
    assert figures["finished"]
    assert figures["partitions"] == {"orders": {"p0": [0, 0, 2], "p1": [1, 1, 1]}}
    assert routed(world) == EACH_ONCE
    [lost] = world.read("orders.late")
    assert (lost["k"], lost["late_time"]) == ("c", 12 * S)
    with pytest.raises(TidegateError) as over:
        job.start()
    assert over.value.code == "query-finished"


def test_bad_rows_of_a_batch_that_runs_again_are_routed_once(world: World) -> None:
    folders = Folders(world.folder / "files")
    folders.add("p0", ("a", 1, 5), ("a", 2, None), ("a", 3, "noon"), ("a", 4, FAR), ("a", 5, 25))
    job = world.windows(streams={"orders": folders.log()}, size=10)
    # First the files are written and nobody sees them, then all is done and Spark does not know.
    for step, seen in (("batch: before commit", Counter()), ("batch: committed", EACH_ONCE)):
        with failing_at(step):
            begun(job)
        assert routed(world) == seen
    begun(job).stop()
    folders.see()
    assert world.counts("out") == folders.truth.results(counted)
    assert routed(world) == EACH_ONCE
    assert job.progress.figures()["partitions"] == {"orders": {"p0": [0, 0, 3]}}
