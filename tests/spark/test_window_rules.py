"""A windowed query means the same however windows share a batch, or it is refused."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from pyspark.sql import SparkSession
from sqlglot import parse_one, transpile
from sqlglot.errors import ParseError

from tidegate.errors import InputError
from tidegate.spark.query_parts import aggregates
from tidegate.spark.sql_text import Statement
from tidegate.spark.window_rules import check_windowed

W = "_window_end"


def check(text: str) -> str:
    return check_windowed(Statement.parse(text, ["a", "b", "c"]))


STAY_INSIDE = [
    f"SELECT {W}, x FROM a WHERE x > 0",
    f"SELECT {W}, x, count(*) FROM a GROUP BY {W}, x ORDER BY x",
    f"SELECT max({W}) AS {W}, count(*) FROM a GROUP BY _window_start",
    f"SELECT {W}, count(*) FROM a GROUP BY 1",
    f"SELECT count(*), {W} FROM a GROUP BY ALL",
    f"SELECT w AS {W}, n FROM (SELECT {W} AS w, count(*) AS n FROM a GROUP BY w)",
    f"WITH c AS (SELECT _window_start AS s, {W} AS e FROM a)"
    f" SELECT e AS {W}, count(*) FROM c GROUP BY e",
    f"SELECT {W}, x, count(*) FROM a GROUP BY {W}, ROLLUP(x)",
    f"SELECT {W}, x, y, count(*) FROM a GROUP BY GROUPING SETS (({W}, x), ({W}, y), {W})",
    f"SELECT {W}, x, y, count(*) FROM a GROUP BY {W}, x, y GROUPING SETS (({W}, x), ({W}))",
    f"SELECT {W}, x FROM a QUALIFY row_number() OVER (PARTITION BY {W} ORDER BY x) <= 3",
    f"SELECT {W}, sum(x) OVER w FROM a WINDOW w AS (PARTITION BY x, _window_start ORDER BY y)",
    f"SELECT {W}, x, rank() OVER (PARTITION BY {W} ORDER BY sum(y)) FROM a GROUP BY {W}, x",
    f"SELECT DISTINCT {W}, x FROM a",
    f"SELECT {W}, count(DISTINCT x) FROM a GROUP BY {W}",
    f"SELECT a.{W}, a.x, b.y FROM a JOIN b ON a.{W} = b.{W} AND a.k = b.k",
    f"SELECT a.{W} FROM a, b WHERE b.{W} = a.{W} AND (a.k = b.k OR a.x > 1)",
    f"SELECT a.{W}, b.y FROM a LEFT JOIN b ON a.{W} = b.{W}",
    f"SELECT b.{W}, b.y FROM a RIGHT JOIN b ON a._window_start = b._window_start",
    f"SELECT coalesce(a.{W}, b.{W}) AS {W} FROM a FULL JOIN b ON a.{W} = b.{W} AND a.k = b.k",
    f"SELECT {W}, count(*) FROM a FULL JOIN b USING ({W}, k) GROUP BY {W}",
    f"SELECT a.{W} FROM a LEFT ANTI JOIN b ON a.{W} = b.{W} AND a.k = b.k",
    f"SELECT a.{W} FROM a JOIN b ON a.{W} = b.{W} JOIN c ON c.{W} = b.{W}",
    f"SELECT a.{W}, v.x FROM a JOIN (VALUES (1), (2)) v(x) ON a.x = v.x",
    f"SELECT a.{W}, e.y FROM a LATERAL VIEW explode(a.list) e AS y",
    f"SELECT {W}, x FROM a UNION ALL SELECT {W}, y FROM b",
    f"SELECT x, {W} FROM a EXCEPT SELECT y, {W} FROM b",
    f"SELECT {W}, x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.{W} = a.{W} AND b.k = a.k)",
    f"SELECT {W}, (SELECT max(y) FROM b WHERE b.{W} = a.{W}) AS m FROM a",
    f"SELECT {W}, x FROM a WHERE x IN (SELECT x FROM (VALUES (1)) t(x))",
    f"SELECT {W}, x FROM a WHERE x > (SELECT max(x) FROM (VALUES (1)) t(x))",
    f"SELECT t.{W}, t.x FROM a AS t",
]

MIX = {
    f"SELECT x, count(*) AS {W} FROM a GROUP BY x": "GROUP BY has no window column",
    f"SELECT count(*) AS {W} FROM a": "an aggregate has rows",
    f"SELECT try_sum(x) AS {W} FROM a": "an aggregate has rows",
    f"SELECT 1 AS {W} FROM a HAVING true": "an aggregate has rows",
    "SELECT x, count(*) FROM a GROUP BY ALL": "an aggregate has rows",
    f"SELECT {W}, x, count(*) FROM a GROUP BY ROLLUP({W}, x)": "GROUP BY has no window column",
    f"SELECT {W}, x, count(*) FROM a GROUP BY {W}, x WITH CUBE": "GROUP BY has no window column",
    f"SELECT {W}, x FROM a GROUP BY GROUPING SETS (({W}), (x))": "GROUP BY has no window column",
    f"SELECT {W}, x FROM a GROUP BY GROUPING SETS (({W}), (_window_start))": "GROUP BY has no",
    f"SELECT {W}, x FROM a GROUP BY {W}, x GROUPING SETS (({W}), (x))": "GROUP BY has no window",
    f"SELECT max({W}) AS w, count(*) FROM a GROUP BY w": "GROUP BY has no window column",
    f"SELECT {W} AS w, rank() OVER (PARTITION BY w ORDER BY x) FROM a": "OVER has rows",
    f"SELECT {W}, row_number() OVER (ORDER BY {W}) FROM a": "OVER has rows",
    f"SELECT {W}, sum(x) OVER w FROM a WINDOW w AS (PARTITION BY x)": "OVER has rows",
    f"SELECT {W} FROM a QUALIFY rank() OVER (ORDER BY x) = 1": "OVER has rows",
    "SELECT DISTINCT x FROM a": "DISTINCT has no window column",
    f"SELECT DISTINCT date_trunc('DAY', {W}) AS {W} FROM a": "DISTINCT has no window column",
    f"SELECT {W} FROM a LIMIT 3": "a limit counts rows",
    f"SELECT {W} FROM (SELECT {W} FROM a ORDER BY x OFFSET 2)": "a limit counts rows",
    f"SELECT {W} FROM a TABLESAMPLE (10 PERCENT)": "a sample is drawn",
    f"SELECT a.{W} FROM a JOIN b ON a.k = b.k": "a join does not equate",
    f"SELECT a.{W} FROM a CROSS JOIN b": "a join does not equate",
    f"SELECT a.{W} FROM a JOIN b USING (k)": "a join does not equate",
    f"SELECT a.{W} FROM a LEFT JOIN b ON a.k = b.k WHERE a.{W} = b.{W}": "a join does not equate",
    f"SELECT a.{W} FROM a JOIN b ON a.{W} = b.{W} OR a.k = b.k": "a join does not equate",
    f"SELECT a.{W} FROM a JOIN b ON a.{W} = b._window_start": "a join does not equate",
    f"SELECT a.{W} FROM a LEFT SEMI JOIN b ON a.k = b.k": "a join does not equate",
    f"SELECT a.{W} FROM a JOIN b ON a.{W} = b.{W} JOIN c ON c.k = b.k": "a join does not equate",
    f"SELECT b.{W}, count(*) FROM a LEFT JOIN b ON a.{W} = b.{W} GROUP BY b.{W}": "GROUP BY has no",
    f"SELECT v.x, a.{W} FROM (VALUES (1)) v(x) LEFT JOIN a ON a.x = v.x": "an outer join keeps",
    f"SELECT a.{W} FROM a FULL JOIN (VALUES (1)) v(x) ON a.x = v.x": "an outer join keeps",
    "SELECT x FROM a UNION SELECT y FROM b": "rows of different windows",
    f"SELECT x, {W} FROM a INTERSECT ALL SELECT {W}, y FROM b": "rows of different windows",
    "SELECT * FROM a UNION ALL SELECT * FROM b": "the sides of a set operation",
    f"SELECT {W} FROM a UNION ALL SELECT TIMESTAMP '2026-01-01'": "one side of a set operation",
    f"SELECT {W} FROM a WHERE x IN (SELECT x FROM b)": "a subquery reads a stream",
    f"SELECT {W} FROM a WHERE x > (SELECT avg(x) FROM a GROUP BY {W})": "a subquery reads a stream",
    f"SELECT {W} FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {W} = {W})": "a subquery reads",
    f"SELECT {W} FROM a WHERE x > (SELECT avg(x) FROM a)": "an aggregate has rows",
    f"SELECT {W}, monotonically_increasing_id() FROM a": "the value depends on how",
    "SELECT * FROM a PIVOT (sum(x) FOR y IN (1, 2))": "PIVOT groups by",
    f"WITH RECURSIVE r AS (SELECT {W} FROM a) SELECT * FROM r": "recursion may leave",
    f"SELECT TIMESTAMP '2026-01-01' AS {W}": "the query reads no stream",
    f"SELECT * FROM a, LATERAL (SELECT max(x) FROM b WHERE b.{W} = a.{W})": "a relation that is",
}


@pytest.mark.parametrize("text", STAY_INSIDE)
def test_a_query_that_stays_inside_its_windows_passes(text: str) -> None:
    assert check(text) == W


@pytest.mark.parametrize("text", MIX)
def test_a_query_that_could_mix_windows_is_refused(text: str) -> None:
    with pytest.raises(InputError) as told:
        check(text)
    assert told.value.code == "query-mixes-windows"
    assert told.value.detail.startswith(MIX[text])
    assert told.value.hint


def windowed(seed: int) -> list[tuple[int, int, int, int | None, int, int]]:
    """Rows of four windows: start, end, event time, x, y, k."""
    draw = random.Random(seed)
    starts = [draw.choice([0, 10, 20, 30]) for _ in range(30)]
    return [
        (at, at + 10, at + draw.randrange(10), draw.choice([None, 0, 1, 2]), n, draw.randrange(3))
        for n, at in enumerate(starts)
    ]


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for seed, name in enumerate(("a", "b", "c")):
            rows = ", ".join(str(row).replace("None", "NULL") for row in windowed(seed))
            names = "_window_start, _window_end, _event_time, x, y, k"
            connection.execute(f"CREATE TABLE all_{name} AS FROM (VALUES {rows}) AS t ({names})")
        yield connection


def answers(
    tables: duckdb.DuckDBPyConnection, text: str, *windows: int
) -> Counter[tuple[object, ...]]:
    """What a query gives over some windows."""
    for name in ("a", "b", "c"):
        inside = f"FROM all_{name} WHERE _window_start IN {windows}".replace(",)", ")")
        tables.execute(f"CREATE OR REPLACE VIEW {name} AS {inside}")
    (translated,) = transpile(text, read="spark", write="duckdb")
    return Counter(tables.execute(translated).fetchall())


@pytest.mark.parametrize("text", [text for text in STAY_INSIDE if "LATERAL" not in text])
def test_a_query_that_passes_gives_the_same_window_by_window(
    tables: duckdb.DuckDBPyConnection, text: str
) -> None:
    one_by_one = sum((answers(tables, text, start) for start in (0, 10, 20, 30)), Counter())
    assert answers(tables, text, 0, 10, 20, 30) == one_by_one != Counter()


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT * FROM a", "_event_time"),
        (f"SELECT {W}, _window_start AS _EVENT_TIME FROM a", "_event_time"),
        ("SELECT * EXCEPT (_event_time) FROM a", W),
        ("SELECT _WINDOW_END, x FROM a", W),
        (f"WITH t (w, n) AS (SELECT {W}, count(*) FROM a GROUP BY 1) SELECT w AS {W} FROM t", W),
    ],
)
def test_the_event_time_of_the_result_is_the_named_column_or_the_windows_end(
    text: str, column: str
) -> None:
    assert check(text) == column


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM a",
        "SELECT _window_start, count(*) FROM a GROUP BY _window_start",
        f"SELECT date_trunc('DAY', {W}) AS {W} FROM a",
        f"SELECT b.{W} FROM a LEFT JOIN b ON a.{W} = b.{W}",
    ],
)
def test_a_result_without_event_time_is_refused(text: str) -> None:
    with pytest.raises(InputError) as told:
        check(text)
    assert told.value.code == "no-window-in-output"


def seen_as_an_aggregate(name: str) -> bool:
    for given in ("x", "x, y", "x, y, z"):  # the parser counts the arguments of some
        with contextlib.suppress(ParseError):
            tree = parse_one(f"SELECT {name}({given})", dialect="spark")
            return aggregates(tree.expressions[0])
    return False


def test_every_aggregate_of_spark_is_seen_as_one(spark: SparkSession) -> None:
    known = [
        function.name
        for function in spark.catalog.listFunctions()
        if ".aggregate." in (function.className or "") or function.name.endswith("_agg")
    ]
    assert len(known) > 70
    assert [name for name in known if not seen_as_an_aggregate(name)] == []
