"""Which kernel runs a job, the exact reason, and right results where only Spark can give them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tests.spark.jobs.world import World
from tests.spark.test_kernels_agree import settings as changed

from tidegate.errors import TidegateError

WINDOW = "_window_start, _window_end"
WHOLE = f"SELECT {WINDOW}, count(*) AS n FROM orders GROUP BY {WINDOW}"
under_settings = contextmanager(changed)


def _counted(what: str) -> str:
    """How many rows of a window have the same of something."""
    return f"SELECT {WINDOW}, {what} AS what, count(*) AS n FROM orders GROUP BY {WINDOW}, k"


def _by_function(orders: DataFrame) -> DataFrame:
    found = orders.groupBy("_window_start", "_window_end", F.col("k").alias("what"))
    return found.agg(F.count("*").alias("n"))


def _setting(name: str, found: str, tested: str) -> tuple[dict[str, str], str]:
    return {name: found}, f"{name} is {found}, and the subset is tested with {tested}"


NEW_YORK = (
    {"spark.sql.session.timeZone": "America/New_York"},
    "the session's time zone is America/New_York, and the subset is tested in UTC",
)
NOT_ANSI = _setting("spark.sql.ansi.enabled", "false", "true")
QUOTED = _setting("spark.sql.ansi.doubleQuotedIdentifiers", "true", "false")


@pytest.mark.parametrize(
    ("under", "query", "given"),
    [
        # Of the first ten seconds of 1970: what the two rows of "a" and the one of "b" are said to
        # be by Spark under that setting, or by that query.
        (NEW_YORK, _counted("hour(max(at))"), [(19, 1), (19, 2)]),
        (NOT_ANSI, _counted("sum(v) / 0"), [(None, 1), (None, 2)]),
        (QUOTED, _counted('concat(k, "k")'), [("aa", 2), ("bb", 1)]),
        (({}, "function UPPER"), _counted("upper(k)"), [("A", 2), ("B", 1)]),
        (({}, "the query is a function of DataFrames"), _by_function, [("a", 2), ("b", 1)]),
    ],
    ids=["zone", "ansi", "quotes", "query", "function"],
)
def test_what_duckdb_cannot_runs_on_spark_with_the_reason_and_the_right_result(
    world: World, under: tuple[dict[str, str], str], query: Any, given: list[tuple[Any, int]]
) -> None:
    world.stream()
    world.append([("a", 1, 1), ("b", 2, 5), ("a", 3, 9), ("a", 4, 12)])
    settings, reason = under
    with under_settings(world.spark, settings):
        job = world.windows(size=10, query=query)
        assert job.explain().splitlines()[0] == f"kernel: spark, because {reason}"
        assert job.run(tell=False)["lost"] == 0
        asked = world.windows(size=10, query=query, kernel="duckdb", name="asked")
        with pytest.raises(TidegateError) as refused:
            asked.run(tell=False)
    found = [(row["window_start"], row["what"], row["n"]) for row in world.read("out")]
    assert sorted(found, key=lambda row: row[1:]) == [(0, *row) for row in given]
    assert str(refused.value).splitlines() == [
        "kernel cannot run this query",
        f'Detail: kernel "duckdb": {reason}.',
        'Hint: use kernel="auto", which takes Spark for such a query and says why.',
    ]
    assert refused.value.code == "kernel-cannot"
    assert world.store.list_streams() == ["orders", "out"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        _setting("spark.sql.caseSensitive", "true", "false"),
        _setting("spark.sql.groupByAliases", "false", "true"),
        _setting("spark.sql.storeAssignmentPolicy", "legacy", "ansi"),
        _setting("spark.sql.parser.escapedStringLiterals", "true", "false"),
        _setting("spark.sql.decimalOperations.allowPrecisionLoss", "false", "true"),
        _setting("spark.sql.legacy.statisticalAggregate", "true", "false"),
        _setting("spark.sql.legacy.timeParserPolicy", "legacy", "corrected"),
    ],
)
def test_under_other_settings_than_the_tested_ones_spark_runs_it(
    world: World, settings: dict[str, str], reason: str
) -> None:
    world.stream()
    with under_settings(world.spark, settings):
        told = world.windows(size=10).explain()
    assert told.splitlines()[0] == f"kernel: spark, because {reason}"


def test_the_reason_for_a_kernel_that_can_is_the_query_or_the_wish(world: World) -> None:
    world.stream()
    why = {
        "auto": "kernel: duckdb, because every part of it is in the subset",
        "duckdb": "kernel: duckdb, because it was asked for",
        "spark": "kernel: spark, because it was asked for",
    }
    for kernel, told in why.items():
        keyed = world.windows(size=10, kernel=kernel)
        assert keyed.explain().splitlines() == [
            told,
            "division: by time, and by key range when there are fewer windows than cores",
        ]
        whole = world.windows(size=10, kernel=kernel, query=WHOLE)
        assert whole.explain().splitlines() == [
            told,
            "division: by time; by rows with one shuffle when a few windows are large",
        ]
    hopping = world.windows(size=10, slide=4, kernel="auto")
    panes = "windows: put together from panes of 2s, so that a row is counted once"
    assert hopping.explain().splitlines()[2:] == [panes]
    # A correction is a difference, and must not come from the order in which parts are added.
    corrected = world.windows(size=10, slide=4, kernel="auto", late="update")
    assert corrected.explain().splitlines()[2:] == []
    # UTC by its other names is UTC.
    for zone in ("Etc/UTC", "GMT", "Z", "+00:00"):
        with under_settings(world.spark, {"spark.sql.session.timeZone": zone}):
            assert world.windows(size=10).explain().startswith(why["auto"])


@pytest.mark.parametrize("kernel", ["duckdb", "spark"])
def test_a_window_that_nobody_asks_for_may_hold_rows_that_cannot_be_computed(
    kernel: str, world: World
) -> None:
    """By pane they would fail, for a pane does not know of whom its windows are."""
    world.stream()
    world.append([("a", 1, 5), ("a", 0, 25), ("a", 1, 60)])
    text = (
        f"SELECT {WINDOW}, sum(6 div v) AS s FROM orders GROUP BY {WINDOW}"
        " HAVING _window_end <= TIMESTAMP '1970-01-01 00:00:10'"
    )
    job = world.windows(size=20, slide=10, kernel=kernel, query=text)
    assert ("put together from panes" in job.explain()) is (kernel == "duckdb")
    job.run(tell=False)
    assert [row["s"] for row in world.read("out")] == [6]
