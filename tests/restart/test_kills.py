"""A straight run equals one killed with SIGKILL and resumed: rows, late and bad rows, marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.restart.driver import FILES, KINDS, streams_of
from tests.restart.kills import FAILS, IN_OTHER_TASKS, POINTS
from tests.restart.lives import failures, lived
from tests.restart.sources import Folders

from tidegate.spark.gate.routing import ANCIENT, FIRST
from tidegate.spark.progress import JobProgress
from tidegate.store import Store
from tidegate.store.catalog import marks, streams, writers
from tidegate.store.mark_cycle import run_due_cycle
from tidegate.store.reading import read_between

CELLS = [
    *((kind, point) for kind in KINDS for point in POINTS),
    *(("files", point) for point in IN_OTHER_TASKS),
]


def left_by(folder: Path, kind: str) -> dict[str, Any]:
    """All that a job leaves behind, except when it did what."""
    with Store.open(folder / "store") as store:
        out = [row for batch in read_between(store, "out") for row in batch.to_pylist()]
        late = [
            (stream, row["late_time"], row["k"], row["v"], row["late_watermark"])
            for stream, row in _routed(store, kind, ".late")
        ]
        bad = [
            (stream, row["reason"], row["row"], row["writer"])
            for stream, row in _routed(store, kind, ".errors")
        ]
        run_due_cycle(store, "out", interval=timedelta(0))
        found = store.describe("out").id
        noted = store.database.read(lambda on: writers.look(on, found, "job:job"))
        assert noted is not None
        figures = JobProgress.of(store, "job").figures()
        return {
            "rows": out if kind == "ordered" else Counter(map(repr, out)),
            "late": Counter(late),
            "bad": Counter(bad),
            "noted": noted.notes.highest,
            "marked": store.database.read(_last_mark),
            "frontier": JobProgress.of(store, "job").frontier(),
            "figures": {n: figures[n] for n in ("rows_in", "rows_out", "late", "lost", "bad")},
            "by partition": figures["partitions"],
        }


def _routed(store: Store, kind: str, suffix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for stream in streams_of(kind):
        if stream + suffix in store.list_streams():
            for batch in read_between(store, stream + suffix):
                yield from ((stream, row) for row in batch.to_pylist())


def bad_by_place(left: dict[str, Any]) -> Counter[tuple[str, str, int]]:
    """The bad rows by reason, partition and offset; without those that only Spark cannot judge."""
    found: Counter[tuple[str, str, int]] = Counter()
    for (_, reason, text, _), count in left["bad"].items():
        if reason not in (ANCIENT, FIRST):
            row = json.loads(text)
            found[reason, row["partition"], row["offset"]] += count
    return found


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
            figures = known[kind]["figures"]
            # Nothing comes too late for running totals.
            assert (figures["lost"] > 0) == (kind != "gated totals")
            assert figures["bad"] == known[kind]["bad"].total()
            if kind in FILES:
                assert bad_by_place(known[kind]) == Folders.bad()
        return known[kind]

    return of


def test_a_driver_that_is_killed_leaves_what_a_straight_run_leaves(
    straight: Any, tmp_path: Path
) -> None:
    assert not lived(tmp_path, "join", point="after the transaction")
    assert lived(tmp_path, "join", point="a task fails")
    assert left_by(tmp_path, "join") == straight("join")


@pytest.mark.faults
@pytest.mark.parametrize(("kind", "point"), CELLS)
def test_a_driver_is_killed_at_every_point(
    straight: Any, tmp_path: Path, kind: str, point: str
) -> None:
    assert not lived(tmp_path, kind, point=point, nth=2)
    assert lived(tmp_path, kind, point="a task fails")
    if kind == "files":
        assert failures(tmp_path) == set(FAILS)
    assert left_by(tmp_path, kind) == straight(kind)
