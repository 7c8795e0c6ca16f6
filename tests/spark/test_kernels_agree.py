"""One query, two kernels, equal results: every rule of the subset, and queries drawn from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlglot import exp
from tests.spark.both_kernels import Both, Failed, asked, duckdb_with, table_difference
from tests.spark.kernel_frames import frames
from tests.spark.query_maker import QueryMaker

from tidegate.spark.duckdb_rules.registry import RULES

DRAWN = 200
QUICK = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
"""What makes a query over sixty rows quicker, and nothing else of it."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark without compiling each query: half the time. What is written by hand runs compiled."""


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> Iterator[Both]:
    with_settings = settings(spark, QUICK)
    next(with_settings)
    made = Both(spark, frames())
    yield made
    for frame in made.frames.values():
        frame.unpersist()
    next(with_settings, None)


def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Settings of the session, and back as they were."""
    before = {key: spark.conf.get(key) for key in values}
    try:
        for key, value in values.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            assert old is not None
            spark.conf.set(key, old)


def written() -> dict[str, list[str]]:
    """The queries of `kernels_agree.txt` by their section."""
    sections: dict[str, list[str]] = {}
    lines = Path(__file__).with_name("kernels_agree.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("== "):
            sections[line.strip("= ")] = section = []
        elif line and not line.startswith("--"):
            section.append(line)
    return sections


def every_query() -> list[str]:
    said = written()
    rows = [f"SELECT {line} FROM a" for line in said["rows"]]
    grouped = [f"SELECT k, {line} FROM a GROUP BY k" for line in said["groups"]]
    whole = [f"SELECT {line} FROM a" for line in said["groups"]]
    return [*rows, *grouped, *whole, *said["queries"]]


@pytest.mark.parametrize("text", every_query())
def test_both_kernels_agree_on_what_the_reference_lists(both: Both, text: str) -> None:
    assert both.difference(text) == ""


@pytest.mark.parametrize("text", written()["failures"])
def test_where_spark_fails_duckdb_fails(both: Both, text: str) -> None:
    assert both.difference(text) == ""
    assert isinstance(both.by_spark(text), Failed)


def test_every_rule_is_in_some_query() -> None:
    seen: set[type[exp.Expr] | str] = set()
    for text in every_query():
        for node in Both.parsed(text).tree.walk():
            seen.add(node.name.lower() if isinstance(node, exp.Anonymous) else type(node))
    assert {rule for rule in RULES if rule not in seen} == set()


def disagreements(both: Both, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        text = QueryMaker(seed).query()
        if said := both.difference(text):
            found.append(f"seed {seed}: {text}\n{said}")
    return found


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    yield from settings(spark, INTERPRETED)


@pytest.mark.parametrize("first", range(0, DRAWN, 20))
@pytest.mark.usefixtures("interpreted")
def test_both_kernels_agree_on_queries_that_are_drawn(both: Both, first: int) -> None:
    assert disagreements(both, range(first, first + 20)) == []


def test_a_text_of_few_values_answers_as_any_other_or_is_refused() -> None:
    """The name of a partition is an enumeration to DuckDB, and must not be told from a string.

    What is refused is read again as strings; nothing in the subset but the default of a LEAD is.
    """
    queries = [*every_query(), *written()["failures"]]
    queries += [QueryMaker(seed).query() for seed in range(DRAWN)]
    refused = []
    with duckdb_with(frames()) as plain, duckdb_with(frames(), few=("s",)) as few:
        for text in queries:
            ours, theirs = asked(few, text), asked(plain, text)
            if isinstance(ours, Failed) or isinstance(theirs, Failed):
                assert isinstance(ours, Failed)
                if not isinstance(theirs, Failed):
                    refused.append(text)
                continue
            read = [c.cast(f.type) for c, f in zip(ours.columns, theirs.schema, strict=True)]
            given = pa.table(read, theirs.schema.names)
            assert table_difference(given, theirs) == "", text
    assert len(refused) == 1
    assert "LEAD(s, 2, 'none')" in refused[0]


@pytest.mark.faults
@pytest.mark.parametrize("first", range(10_000, 12_000, 100))
def test_both_kernels_agree_on_many_queries_that_are_drawn(both: Both, first: int) -> None:
    assert disagreements(both, range(first, first + 100)) == []
