"""The benchmarks measure what they say they measure."""

from __future__ import annotations

import json
from pathlib import Path

import bench.report
import pytest
from bench.core import made, memory, single_update
from bench.report import Row, publish
from bench.steady import QUERY, STREAM, steady_state
from rich.console import Console

from tidegate.planning import Policy, Release, plan


@pytest.mark.parametrize("release", list(Release))
def test_the_steady_log_has_one_new_span_in_every_partition(release: Release) -> None:
    policy = Policy(release=release)
    state, facts = steady_state(100, policy)
    _, batch = plan(state, facts, QUERY, policy, now=0)
    assert batch.advanced
    assert len(batch.streams[STREAM].arrived) == 100
    assert len(batch.streams[STREAM].late) == 0
    if release is Release.TIME:
        assert batch.slice is not None
        released = batch.slice.interval
        assert (released.a, released.b) == (180_000_000, 240_000_000)
        # A window of one minute lies in two spans of each partition.
        assert [len(task.reads[STREAM]) for task in batch.slice.tasks] == [200]


def test_every_single_update_that_is_measured_moves_the_whole() -> None:
    tracker = made()
    single_update(tracker, 50, calls=20)
    # The filling is one step, then come 102 rounds of twenty updates.
    assert tracker.metrics().advances == 1 + 102 * 20


def test_the_tracker_keeps_to_its_memory_also_when_it_grew_one_by_one() -> None:
    assert [row.met for row in memory()] == [True, True, True]


def test_a_report_is_a_table_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.report, "FOLDER", tmp_path / "made")
    console = Console(width=100, record=True, quiet=True)
    rows = [
        Row("fast", 40, "ns", target=50),
        Row("slow", 60, "ns", target=50),
        Row("faster by", 20, "times", target=10, at_least=True),
        Row("told", 7, "us"),
    ]
    written = json.loads(publish("mine", rows, console).read_text())
    assert [row["met"] for row in written] == [True, False, True, None]
    assert written[0] == {"name": "fast", "value": 40, "unit": "ns", "target": 50, "met": True}
    assert [row["target"] for row in written] == [50, 50, 10, None]
