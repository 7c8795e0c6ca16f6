"""The translation to DuckDB: whole or not at all, and what is outside says why."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from tests.spark.kernel_frames import SCHEMA, frames

from tidegate.spark.duckdb_rules.registry import Outside
from tidegate.spark.duckdb_rules.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INTEGER,
    NULL,
    STRING,
    TIMESTAMP,
    common,
    decimal,
    from_arrow,
)
from tidegate.spark.duckdb_text import translate
from tidegate.spark.shape import Windows
from tidegate.spark.sql_text import Statement

STREAMS = ["a", "b", "c"]


def translated(text: str, schema: pa.Schema = SCHEMA) -> str | Outside:
    return translate(Statement.parse(text, STREAMS), dict.fromkeys(STREAMS, schema))


OUTSIDE = {
    "SELECT exp(d) FROM a": "function EXP",
    "SELECT upper(s) FROM a": "function UPPER",
    "SELECT my_own(s) FROM a": "function MY_OWN",
    "SELECT date_format(t, 'yyyy') FROM a": "function DATE_FORMAT",
    "SELECT round(d, 2) FROM a": "ROUND of a double to digits",
    "SELECT m / 2 FROM a": "/ on a decimal(18,2)",
    "SELECT m % 2 FROM a": "% on a decimal(18,2)",
    "SELECT m * m * m FROM a": "a decimal of 56 digits",
    "SELECT m + d FROM a": "a decimal(18,2) as a double",
    "SELECT avg(m) FROM a": "AVG over a decimal(18,2)",
    "SELECT sum(CAST(m AS DECIMAL(30, 2))) FROM a": "SUM over a decimal(30,2)",
    "SELECT s + 1 FROM a": "an int where a string stands",
    "SELECT s = 1 FROM a": "an int where a string stands",
    "SELECT CAST(s AS INT) FROM a": "a cast of a string to an int",
    "SELECT CAST(d AS STRING) FROM a": "a cast of a double to a string",
    "SELECT TRY_CAST(i AS BIGINT) FROM a": "TRY_CAST",
    "SELECT CAST(m AS DECIMAL(18, 1)) FROM a": "a cast of a decimal(18,2) to a decimal(18,1)",
    "SELECT t > 'yesterday' FROM a": "the timestamp 'yesterday', which is not written in full",
    "SELECT DATE '2023-02-29' FROM a": "the date '2023-02-29', which there is not",
    "SELECT t - t FROM a": "- on a timestamp",
    "SELECT y + INTERVAL 1 HOUR FROM a": "a date and an interval in units of hour",
    "SELECT t + INTERVAL '1 day 2 hours' FROM a": "the interval INTERVAL '1 day 2 hours'",
    "SELECT s LIKE s FROM a": "LIKE with a pattern that is not a literal",
    "SELECT s LIKE 'a' ESCAPE '/' FROM a": "ESCAPE",
    "SELECT 'it''s' FROM a": "a string with a backslash or a doubled quote",
    "SELECT 'a\\nb' FROM a": "a string with a backslash or a doubled quote",
    "SELECT r'a' FROM a": "a string with a prefix",
    "SELECT i IN (SELECT i FROM b) FROM a": "IN with query",
    "SELECT EXISTS (SELECT 1 FROM b) FROM a": "function EXISTS",
    "SELECT (SELECT max(i) FROM b) FROM a": "SUBQUERY",
    "SELECT percentile(i, k) FROM a": "a percentile that is not a literal from 0 to 1",
    "SELECT percentile(m, 0.5) FROM a": "a percentile over a decimal(18,2)",
    "SELECT approx_count_distinct(i) FROM a": "function APPROX_COUNT_DISTINCT",
    "SELECT first(i) FROM a": "function FIRST",
    "SELECT collect_list(i) FROM a": "function COLLECT_LIST",
    "SELECT sum(DISTINCT i) OVER (PARTITION BY k) FROM a": "DISTINCT of several in an aggregate,"
    " or with OVER",
    "SELECT lag(i, k) OVER (ORDER BY i) FROM a": "LAG or LEAD by a number that is not a literal",
    "SELECT sum(i) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM a": "a frame"
    " of RANGE by a value",
    "SELECT k, count(*) FROM a GROUP BY ROLLUP(k)": "ROLLUP",
    "SELECT k, count(*) FROM a GROUP BY k WITH CUBE": "GROUP BY CUBE",
    "SELECT k, count(*) FROM a GROUP BY ALL": "GROUP BY ALL",
    "SELECT i, count(*) FROM a GROUP BY k": 'column "i", which is neither grouped nor aggregated',
    "SELECT i FROM a LIMIT 3": "LIMIT",
    "SELECT i FROM a NATURAL JOIN b": "NATURAL JOIN",
    "SELECT i FROM a INTERSECT SELECT i FROM b": "INTERSECT",
    "SELECT id FROM a JOIN b ON a.k = b.k": 'the name "id", which could mean 2 columns',
    "SELECT nothing FROM a": 'the name "nothing", which could mean 0 columns',
    "SELECT NULL AS n FROM a": "a column of nothing but NULL",
    "SELECT 1": "a SELECT without FROM",
    "SELECT id FROM a, range(3) AS r": "the table RANGE(3)",
    "SELECT max(i) AS i FROM a GROUP BY k HAVING i > 3": 'the name "i", which is a column and an'
    " alias",
    "SELECT * FROM a TABLESAMPLE (10 PERCENT)": "a table with sample",
    "WITH RECURSIVE r AS (SELECT i FROM a) SELECT i FROM r": "WITH RECURSIVE, or with names of"
    " columns",
}


@pytest.mark.parametrize("text", OUTSIDE)
def test_what_is_outside_the_subset_says_why(text: str) -> None:
    assert translated(text) == Outside(OUTSIDE[text])


def test_a_column_of_another_type_is_outside_only_where_it_is_used() -> None:
    schema = pa.schema({"n": pa.int64(), "tags": pa.list_(pa.string())})
    assert isinstance(translated("SELECT sum(n) AS s FROM a", schema), str)
    assert translated("SELECT tags FROM a", schema) == Outside('the type of column "tags"')
    assert translated("SELECT * FROM a", schema) == Outside('the type of column "tags"')


def test_only_columns_that_the_query_can_touch_are_named() -> None:
    text = translated("SELECT k, sum(i) AS n FROM a GROUP BY k")
    assert isinstance(text, str)
    assert '"d"' not in text
    assert '"i"' in text


def test_timestamps_are_utc_whatever_the_zone_of_the_connection() -> None:
    text = translated("SELECT id, hour(t) AS h, t FROM a WHERE t IS NOT NULL ORDER BY id")
    assert isinstance(text, str)
    found = []
    for zone in ("UTC", "Asia/Tokyo"):
        connection = duckdb.connect()
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.register("a", frames()["a"])
        found.append(connection.sql(text).to_arrow_table())
    assert found[0] == found[1]
    assert found[0].schema.field("t").type == pa.timestamp("us")


def test_a_definition_may_have_the_name_of_the_stream_it_reads() -> None:
    text = translated("WITH a AS (SELECT id FROM a WHERE k = 1) SELECT count(*) AS n FROM a")
    assert isinstance(text, str)
    connection = duckdb.connect()
    connection.register("a", frames()["a"])
    (counted,) = connection.sql(text).fetchall()
    assert counted[0] == sum(key == 1 for key in frames()["a"]["k"].to_pylist())


def test_the_filter_keeps_the_argument_from_failing() -> None:
    text = translated("SELECT sum(i div (k - 1)) FILTER (WHERE k <> 1) AS n FROM a")
    assert isinstance(text, str)
    connection = duckdb.connect()
    connection.register("a", frames()["a"])
    assert len(connection.sql(text).fetchall()) == 1


def test_a_name_of_a_stream_that_is_no_identifier_is_quoted() -> None:
    statement = Statement.parse("SELECT sum(n) AS s FROM orders.late", ["orders.late"])
    text = translate(statement, {"orders.late": pa.schema({"n": pa.int64()})})
    assert isinstance(text, str)
    assert 'FROM "orders.late") AS "late"' in text


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (INTEGER, BIGINT, BIGINT),
        (INTEGER, FLOAT, DOUBLE),
        (FLOAT, DOUBLE, DOUBLE),
        (NULL, STRING, STRING),
        (decimal(18, 2), INTEGER, decimal(18, 2)),
        (decimal(2, 1), INTEGER, decimal(11, 1)),
        (decimal(38, 0), decimal(38, 10), None),
        (decimal(18, 2), DOUBLE, DOUBLE),
        (STRING, INTEGER, None),
        (TIMESTAMP, STRING, None),
    ],
)
def test_two_types_meet_in_the_type_that_spark_gives_them(
    one: object, other: object, both: object
) -> None:
    assert common(one, other) == common(other, one) == both  # type: ignore[arg-type]


def test_types_that_spark_has_no_equal_of_are_not_known() -> None:
    for kind in (
        pa.int8(),
        pa.uint64(),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.binary(),
    ):
        assert from_arrow(kind) is None


def test_a_column_that_has_the_name_of_the_number_of_a_window_is_left_to_spark() -> None:
    schema = SCHEMA.append(pa.field("_Window_Number", pa.int64()))
    statement = Statement.parse("SELECT max(_window_number) FROM a GROUP BY _window_end", STREAMS)
    found = translate(statement, dict.fromkeys(STREAMS, schema), Windows(10, 10))
    assert found == Outside("a column with the name _window_number, which DuckDB has for windows")
