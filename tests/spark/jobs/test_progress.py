"""What a job tells of itself: to whoever asks, in this process or in another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest
from tests.spark.jobs.test_partitions import JOINED
from tests.spark.jobs.world import S, World, begun
from tests.spark.test_totals import collected

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import claim
from tidegate.spark.progress import JobProgress
from tidegate.spark.running import summary
from tidegate.store.catalog import progress

CORES = 6


def test_every_figure_of_a_job_is_what_happened(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.stream(segments=3)
    split, left, right = (record.name for record in world.store.segments("orders"))
    a, b, c = (world.key(place) for place in range(3))
    world.append([(a, 1, 3), (b, 1, 5), (c, 1, 14)])
    world.store.split("orders", split)
    low, high = world.key(0), world.key(1, nth=1)
    _, first, second = (
        record.name for record in world.store.segments("orders") if record.name not in (left, right)
    )
    world.append([(low, 1, 24), (high, 1, 6), (b, 1, 22)])
    job = world.windows(size=10, cores=CORES, idle_after="1 hour")

    def told() -> dict[str, Any]:
        """All of the last batch, once what no two runs share has been looked at."""
        nodes = world.store.database.read(lambda on: progress.told(on, "job"))
        detail = dict(job.progress.detail())
        assert detail == nodes["job"].detail
        assert len(detail.pop("lineage")) == 32
        assert 0 < detail.pop("seconds") < 300
        assert detail.pop("lag") == nodes["job"].updated_at - detail["watermark"]
        lanes = detail.pop("lanes")
        assert len(lanes) == CORES
        assert claim(collected(lanes)) == detail["watermark"]
        detail["idle lanes"] = sorted(lane for lane in lanes if lane[1] == "idle")
        assert nodes["sink:out"].detail == {"rows": detail["rows_out"]}
        return detail

    def partitions() -> dict[str, Any]:
        return dict(job.progress.detail("source:orders"))

    nobody = [0, "idle", "unknown"]
    with begun(job) as running:
        # In one batch the sealed segment is read to its end; in the next its successors are.
        assert told() == {
            "batch": 2,
            "interval": None,
            "watermark": 6 * S - 1,
            "rows_in": 2,
            "rows_out": 0,
            "late": 0,
            "lost": 0,
            "bad": 0,
            "amplification": None,
            "kernel": "duckdb",
            "held": 6,
            "idle lanes": [nobody] * 4,
            "holds": [f"orders, partition {second}: at its latest event"],
            "warnings": [],
            "finished": False,
        }
        assert partitions() == {
            "strategy": "events",
            "active": 4,
            "idle": 0,
            "partitions": {
                left: [22 * S, 22 * S, 2, False],
                right: [14 * S, 14 * S, 1, False],
                first: [24 * S, 24 * S, 1, False],
                second: [6 * S, 6 * S, 1, False],
            },
        }

        # By the clock of the log one of them is long silent: nobody waits for it.
        world.shift = timedelta(hours=2)
        world.append([(low, 1, 31), (c, 1, 33), (b, 1, 35)])
        running.process_all()
        assert told() == {
            "batch": 3,
            "interval": [0, 30 * S],
            "watermark": 31 * S - 1,
            "rows_in": 3,
            "rows_out": 6,
            "late": 0,
            "lost": 0,
            "bad": 0,
            "amplification": 1.0,
            "kernel": "duckdb",
            "held": 3,
            "idle lanes": [nobody] * 2 + [[1, "idle", 6 * S]],
            "holds": [f"orders, partition {first}: at its latest event"],
            "warnings": [],
            "finished": False,
        }
        assert partitions()["active"] == 3
        assert partitions()["idle"] == 1
        assert partitions()["partitions"][second] == [6 * S, 6 * S, 1, True]

        # Both rows are late: one of them is lost, for the other its window is still open.
        world.append([(b, 9, 12), (low, 9, 30.5)])
        running.process_all()
        assert told() == {
            "batch": 4,
            "interval": None,
            "watermark": 31 * S - 1,
            "rows_in": 2,
            "rows_out": 0,
            "late": 2,
            "lost": 1,
            "bad": 0,
            "amplification": None,
            "kernel": "duckdb",
            "held": 4,
            "idle lanes": [nobody] * 3 + [[1, "idle", 6 * S]],
            "holds": [f"orders, partition {first}: at its latest event"],
            "warnings": [],
            "finished": False,
        }
        assert capsys.readouterr().err == ""

    figures = job.progress.figures()
    assert json.loads(json.dumps(figures)) == figures
    assert capsys.readouterr().err == summary(figures) + "\n"
    seconds = figures.pop("seconds")
    assert figures.pop("rows_per_second") == round(11 / seconds)
    assert figures == {
        "job": "job",
        "batches": 4,
        "rows_in": 11,
        "rows_out": 6,
        "late": 2,
        "lost": 1,
        "bad": 0,
        "watermarks": 2,  # 0 and 30 s
        "advances": 3,
        "rebalances": 1,
        "partitions": {"orders": {left: [1, 1, 0], first: [1, 0, 0]}},
        "finished": False,
    }


WAITING = """
import sys
import threading
from datetime import timedelta
from tidegate.spark.progress import JobProgress

job = JobProgress.of(sys.argv[1], "job")
print(job.wait_for(int(sys.argv[2]), timedelta(0)), flush=True)
print(job.wait_for(int(sys.argv[2]), timedelta(minutes=2)), job.sink("out").frontier(), flush=True)
"""


def test_a_job_of_two_streams_has_frontiers_for_each_and_any_process_may_wait_for_them(
    world: World,
) -> None:
    world.stream()
    world.stream("payments")
    world.append([("a", 1, 3), ("a", 1, 47)])
    world.append([("a", 1, 5), ("a", 1, 28)], "payments")
    job = world.windows(
        size=10, streams=["orders", "payments"], query=JOINED, time_behind="3s", idle_after="never"
    )
    before = job.progress
    assert (before.nodes(), before.detail(), before.figures()["batches"]) == ([], {}, 0)
    with begun(job):
        told = JobProgress.of(world.folder / "store", "job")
        assert told.nodes() == ["job", "sink:out", "source:orders", "source:payments"]
        assert told.source("orders").frontier() == 47 * S
        assert told.source("payments").frontier() == 28 * S
        # All before 20 s has been given out, and a result may lie 3 s before the end of its window.
        assert told.sink("out").frontier() == told.frontier() == 17 * S
        assert told.sink("out").complete_before(17 * S)
        assert not told.sink("out").complete_before(17 * S + 1)
        for ask in (told.sink, told.source):
            with pytest.raises(TidegateError) as unknown:
                ask("elsewhere")
            assert unknown.value.code == "unknown-job-node"
            node = f"{ask.__name__}:elsewhere"
            assert str(unknown.value) == (
                "unknown node of a job\n"
                f'Detail: job "job" has told nothing of "{node}"; it has: job, sink:out,'
                " source:orders, source:payments.\n"
                "Hint: name a source or a sink of the job; nodes appear with its first batch."
            )

        # Another process, which has no Java to start a Spark with.
        asking = subprocess.Popen(
            [sys.executable, "-c", WAITING, str(world.folder / "store"), str(37 * S)],
            env={**os.environ, "PATH": "", "JAVA_HOME": str(world.folder)},
            stdout=subprocess.PIPE,
            text=True,
        )
        with asking:
            assert asking.stdout is not None
            assert asking.stdout.readline() == "False\n"
            world.append([("a", 1, 41)], "payments")
            assert asking.stdout.readline() == f"True {37 * S}\n"
        assert asking.returncode == 0


def test_a_job_tells_its_figures_though_only_its_query_is_waited_for(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.stream()
    world.append([("a", 1, 3), ("a", 1, 14)])
    job = world.windows(size=10, idle_after="never")
    running = job.start(available_now=True)
    assert running.query.awaitTermination(60)
    for thread in threading.enumerate():
        if thread.name == "end of job":
            thread.join()
    assert capsys.readouterr().err == summary(job.progress.figures()) + "\n"
    running.stop()
    assert capsys.readouterr().err == ""
