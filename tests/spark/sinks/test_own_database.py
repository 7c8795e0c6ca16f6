"""The example that writes to a database of its own, killed and started again: every row once."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.spark.sinks.own_database_driver import STEPS, example

from tidegate.spark import JobProgress
from tidegate.store import Store

ROOT = Path(__file__).resolve().parents[3]
Sale = tuple[str, str, int, int]


def truth() -> list[Sale]:
    """What the database must have: complete minutes, counted in the plainest way."""
    own = example()
    orders: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for order in own.orders()[:-1]:  # the last one stands in a minute that is not complete
        place = (f"{order['at']:%H:%M}", order["item"])
        orders[place] += 1
        total[place] += order["price"]
    return sorted((*place, orders[place], total[place]) for place in orders)


def run(folder: Path, kill_at: str = "never", count: int = 1) -> str:
    """Run the example in a process group of its own; what it printed."""
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.spark.sinks.own_database_driver",
            folder,
            kill_at,
            str(count),
        ],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, told = child.communicate(timeout=600)
    expected = 0 if kill_at == "never" else -signal.SIGKILL
    assert child.returncode == expected, told
    return out


def check(folder: Path, printed: str) -> None:
    """Every row once, every batch noted once, and the job's own figures agree."""
    with closing(sqlite3.connect(folder / "sales.db")) as database:
        sales = sorted(database.execute("SELECT * FROM sales"))
        [(batches,)] = database.execute("SELECT count(*) FROM batches")
    assert sales == truth()
    assert [tuple(line.split()) for line in printed.splitlines()] == [
        tuple(str(value) for value in sale) for sale in sales
    ]
    with Store.open(folder / "shop") as store:
        figures = JobProgress.of(store, "sales").figures()
    assert figures["rows_out"] == len(sales)
    assert figures["batches"] == batches >= 4


@pytest.mark.faults
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kill_at", STEPS)
def test_the_example_is_killed_at_every_step(tmp_path: Path, kill_at: str, count: int) -> None:
    run(tmp_path, kill_at, count)
    check(tmp_path, run(tmp_path))
