"""A straight run equals one that was killed with SIGKILL and resumed: rows, late rows, marks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.restart.driver import KINDS, streams_of
from tests.restart.kills import POINTS

from tidegate.spark.progress import JobProgress
from tidegate.store import Store
from tidegate.store.catalog import marks, streams, writers
from tidegate.store.mark_cycle import run_due_cycle
from tidegate.store.reading import read_between

ROOT = Path(__file__).parents[2]


def environment_of(kills: Path, point: str | None, nth: int = 1) -> dict[str, str]:
    """What all processes of a driver are told."""
    hook = ROOT / "tests" / "restart" / "hook"
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(hook), *before, str(ROOT), str(ROOT / "src")]),
        "KILL_AT": point or "",
        "KILL_NTH": str(nth),
        "KILL_FOLDER": str(kills),
    }


def lived(folder: Path, kind: str, point: str | None = None, nth: int = 1) -> bool:
    """Let a driver live; return whether it came to its end."""
    kills = folder / f"kills-{len(list(folder.glob('kills-*')))}"
    kills.mkdir(parents=True)
    environment = environment_of(kills, point, nth)
    with driving(folder, kind, environment) as driver:
        said, _ = driver.communicate(timeout=600)
    if driver.returncode == -signal.SIGKILL and (kills / "killed").exists():
        return False
    assert driver.returncode == 0, said.decode()[-4000:]
    assert (kills / "failed").exists() == (point == "a task fails")
    return True


@contextmanager
def driving(
    folder: Path, kind: str, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.restart.driver", str(folder), kind]
    driver = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield driver
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()


def left_by(folder: Path, kind: str) -> dict[str, Any]:
    """All that a job leaves behind, except when it did what."""
    with Store.open(folder / "store") as store:
        out = [row for batch in read_between(store, "out") for row in batch.to_pylist()]
        late = [
            (stream, row["late_time"], row["k"], row["v"], row["late_watermark"])
            for stream in streams_of(kind)
            if f"{stream}.late" in store.list_streams()
            for batch in read_between(store, f"{stream}.late")
            for row in batch.to_pylist()
        ]
        run_due_cycle(store, "out", interval=timedelta(0))
        found = store.describe("out").id
        noted = store.database.read(lambda on: writers.look(on, found, "job:job"))
        assert noted is not None
        figures = JobProgress.of(store, "job").figures()
        return {
            "rows": out if kind == "ordered" else Counter(map(repr, out)),
            "late": Counter(late),
            "noted": noted.notes.highest,
            "marked": store.database.read(_last_mark),
            "frontier": JobProgress.of(store, "job").frontier(),
            "figures": {n: figures[n] for n in ("rows_in", "rows_out", "late", "lost", "bad")},
            "by partition": figures["partitions"],
        }


def _last_mark(on: Connection) -> Any:
    _, mark = marks.last(on, streams.get(on, "out").id)
    return None if mark is None else (mark.lower, mark.upper, mark.cut.to_json())


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a run leaves that nobody disturbed, by kind."""
    known: dict[str, dict[str, Any]] = {}

    def of(kind: str) -> dict[str, Any]:
        if kind not in known:
            folder = tmp_path_factory.mktemp(f"straight-{kind}")
            assert lived(folder, kind)
            known[kind] = left_by(folder, kind)
            assert known[kind]["rows"]
            # Nothing comes too late for running totals.
            assert (known[kind]["figures"]["lost"] > 0) == (kind != "gated totals")
        return known[kind]

    return of


def test_a_driver_that_is_killed_leaves_what_a_straight_run_leaves(
    straight: Any, tmp_path: Path
) -> None:
    assert not lived(tmp_path, "join", "after the transaction")
    assert lived(tmp_path, "join", "a task fails")
    assert left_by(tmp_path, "join") == straight("join")


@pytest.mark.faults
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_is_killed_at_every_point(
    straight: Any, tmp_path: Path, kind: str, point: str
) -> None:
    assert not lived(tmp_path, kind, point, nth=2)
    assert lived(tmp_path, kind, "a task fails")
    assert left_by(tmp_path, kind) == straight(kind)
