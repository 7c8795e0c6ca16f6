"""The example that writes to a database of its own, killed and started again: every row once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.restart.kills import POINTS
from tests.restart.lives import lived, said_by
from tests.spark.sinks.own_database_driver import OWN, example

from tidegate.spark import JobProgress
from tidegate.store import Store

DRIVER = "tests.spark.sinks.own_database_driver"
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


def test_the_example_has_every_row_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example().main(tmp_path)
    check(tmp_path, capsys.readouterr().out)


@pytest.mark.faults
@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("point", [*POINTS, *OWN])
def test_the_example_is_killed_at_every_point(tmp_path: Path, point: str, nth: int) -> None:
    assert not lived(tmp_path, point=point, nth=nth, module=DRIVER)
    assert lived(tmp_path, module=DRIVER)
    check(tmp_path, said_by(tmp_path))
