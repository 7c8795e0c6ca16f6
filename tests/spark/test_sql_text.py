"""The parsed query: streams are found as Spark finds them, and the text stays the user's."""

from __future__ import annotations

import pytest

from tidegate.errors import InputError
from tidegate.spark.sql_text import Statement

STREAMS = ["orders", "payments", "orders.late"]


def parse(text: str) -> Statement:
    return Statement.parse(text, STREAMS)


# ---- streams ----


@pytest.mark.parametrize(
    ("text", "streams"),
    [
        ("SELECT * FROM orders", ("orders",)),
        ("SELECT * FROM ORDERS", ("orders",)),
        ("SELECT * FROM payments p, orders o, payments q", ("payments", "orders")),
        ("SELECT * FROM orders.late", ("orders.late",)),
        ("SELECT * FROM `orders.late`", ("orders.late",)),
        ("WITH c AS (SELECT * FROM orders) SELECT * FROM c", ("orders",)),
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM orders", ("orders",)),
        ("WITH orders AS (SELECT 1 AS x) SELECT * FROM orders", ()),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b, payments", ("payments",)),
        ("SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM payments)", ("orders", "payments")),
        ("SELECT * FROM orders UNION ALL SELECT * FROM payments", ("orders", "payments")),
        ("SELECT /*+ BROADCAST(orders) */ id FROM orders, range(3)", ("orders",)),
        ("(SELECT * FROM orders)", ("orders",)),
    ],
)
def test_the_streams_are_the_names_that_nothing_in_the_query_defines(
    text: str, streams: tuple[str, ...]
) -> None:
    assert parse(text).streams == streams


def test_a_name_is_taken_with_its_case_when_two_streams_differ_only_by_it() -> None:
    assert Statement.parse("SELECT * FROM B", ["b", "B"]).streams == ("B",)
    with pytest.raises(InputError, match="unknown stream"):
        Statement.parse("SELECT * FROM Ab", ["ab", "AB"])


def test_an_unknown_stream_is_shown_with_its_place_and_the_known_ones() -> None:
    with pytest.raises(InputError) as told:
        parse("SELECT *\nFROM orders JOIN\n  paiments USING (id)")
    assert told.value.code == "unknown-stream-in-query"
    assert told.value.detail == (
        'line 3, column 3: "paiments" is none of the streams of the job:'
        " orders, orders.late, payments."
    )


# ---- what is not a query ----


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT a FROM orders WHERE (x", (1, 29)),
        ("SELECT a\nFROM orders o p", (2, 15)),
        ("SELECT 'open FROM orders", (1, 25)),
    ],
)
def test_what_is_not_sql_is_shown_with_its_place(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(InputError) as told:
        parse(text)
    assert told.value.code == "query-not-parsed"
    assert (told.value.fields["line"], told.value.fields["column"]) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-- nothing",
        "INSERT INTO orders SELECT 1",
        "SELECT 1 FROM orders; SELECT 2 FROM orders",
        "DROP TABLE orders",
        "VALUES (1)",
        "FROM orders |> LIMIT 3 |> AGGREGATE count(*)",
    ],
)
def test_what_is_not_one_select_is_refused(text: str) -> None:
    with pytest.raises(InputError) as told:
        parse(text)
    assert told.value.code == "not-one-query"


# ---- the text for Spark ----


@pytest.mark.parametrize(
    ("text", "for_spark"),
    [
        ("SELECT * FROM orders o", "SELECT * FROM {orders} o"),
        ("SELECT orders.x FROM orders", "SELECT orders.x FROM {orders} AS `orders`"),
        ("SELECT '{x}' FROM orders AS o -- }", "SELECT '{{x}}' FROM {orders} AS o -- }}"),
        ("SELECT 1 FROM `orders.late`", "SELECT 1 FROM {stream_0} AS `orders.late`"),
        ("SELECT late.x FROM orders.late", "SELECT late.x FROM {stream_0} AS `late`"),
        (
            "WITH orders AS (SELECT * FROM Orders) SELECT * FROM orders",
            "WITH orders AS (SELECT * FROM {orders} AS `Orders`) SELECT * FROM orders",
        ),
        (
            "SELECT * FROM orders a JOIN orders b ON a.orders = b.orders",
            "SELECT * FROM {orders} a JOIN {orders} b ON a.orders = b.orders",
        ),
        ("SELECT 'é' FROM orders o;", "SELECT 'é' FROM {orders} o;"),
    ],
)
def test_only_stream_names_are_replaced_and_every_other_brace_is_doubled(
    text: str, for_spark: str
) -> None:
    assert parse(text).for_spark() == for_spark


def test_formatting_gives_the_text_back_but_for_the_streams() -> None:
    text = "SELECT '{}{a}' AS `{`, o.x FROM orders o WHERE o.y = '}' AND o.orders = 1"
    statement = parse(text)
    assert statement.for_spark().format(orders="orders") == text


def test_a_stream_that_cannot_name_an_argument_gets_another_name() -> None:
    statement = Statement.parse("SELECT * FROM args, stream_0, `a-b`", ["args", "stream_0", "a-b"])
    named = statement.arguments
    assert named == {"args": "stream_0_", "stream_0": "stream_0", "a-b": "stream_2"}
    given = dict.fromkeys(named.values(), "t")
    assert statement.for_spark().format(**given).count("t AS") == 3


# ---- columns ----


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * FROM orders", None),
        ("SELECT o.* FROM orders o JOIN payments p ON o.a = p.b", None),
        ("SELECT p.*, o.x FROM orders o JOIN payments p ON o.a = p.b", {"o", "p", "x", "a"}),
        ("SELECT count(*) FROM orders", set()),
        (
            "SELECT count(*), Sum(AMOUNT) FROM orders GROUP BY _window_end",
            {"amount", "_window_end"},
        ),
        ("SELECT struct(*) FROM orders", None),
        ("SELECT x FROM orders JOIN payments USING (id)", {"x", "id"}),
        ("SELECT x FROM orders NATURAL JOIN payments", None),
        ("SELECT * FROM (SELECT x FROM orders WHERE y > 0)", {"x", "y"}),
        ("WITH c AS (SELECT x FROM orders) SELECT c.x, c.z FROM c", {"x", "c"}),
        ("SELECT item.name FROM orders", {"item", "name"}),
        ("SELECT x FROM orders PIVOT (sum(a) FOR b IN (1, 2))", None),
        ("SELECT a.x FROM orders a JOIN orders b ON a.k = b.k2", {"a", "b", "x", "k", "k2"}),
    ],
)
def test_the_columns_are_those_that_the_text_can_touch(text: str, columns: set[str] | None) -> None:
    assert parse(text).columns_used("orders") == columns
