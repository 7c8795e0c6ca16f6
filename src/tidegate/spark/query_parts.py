"""What one SELECT computes for itself: its aggregates, its OVERs, its subqueries.

All of them stop at the borders of a SELECT: what a subquery computes is the subquery's.

>>> from sqlglot import parse_one
>>> [aggregates(parse_one(text, dialect="spark")) for text in ("sum(x) + 1", "sum(x) OVER ()")]
[True, False]
>>> aggregates(parse_one("sum(count(x)) OVER ()", dialect="spark"))
True
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

UNSEEN_AGGREGATES: Final = frozenset(
    {
        *("approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine"),
        *("bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "collect_union"),
        *("count_min_sketch", "every", "histogram_numeric", "hll_sketch_agg", "hll_union_agg"),
        *("kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float"),
        *("kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float"),
        *("mean", "measure", "schema_of_variant_agg", "some", "std", "theta_intersection_agg"),
        *("theta_sketch_agg", "theta_union_agg", "try_avg", "try_sum"),
        *("tuple_intersection_agg_double", "tuple_intersection_agg_integer"),
        *("tuple_sketch_agg_double", "tuple_sketch_agg_integer"),
        *("tuple_union_agg_double", "tuple_union_agg_integer"),
    }
)
"""Aggregates of Spark that the parser takes for functions like any other."""

OF_A_BATCH: Final = frozenset(
    {
        *("monotonically_increasing_id", "spark_partition_id"),
        *("input_file_name", "input_file_block_start", "input_file_block_length"),
    }
)
"""Functions whose value depends on how a batch was divided."""


def function_name(function: exp.Func) -> str:
    """The name of a function, in lower case."""
    named = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return named.lower()


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a function of a group of rows."""
    if isinstance(node, exp.AggFunc | exp.WithinGroup | exp.AnonymousAggFunc):
        return True
    if isinstance(node, exp.Any):  # any(x) is bool_or(x); any (SELECT ...) is not
        return not isinstance(node.this, exp.Query)
    return isinstance(node, exp.Func) and function_name(node) in UNSEEN_AGGREGATES


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression groups rows; a function OVER does not, but what it is given may."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            function = function.this
        given = [*function.iter_expressions(), *node.iter_expressions()]
        return any(aggregates(part) for part in given if part is not node.this)
    return is_aggregate(node) or any(aggregates(part) for part in node.iter_expressions())


def output_name(part: exp.Expr) -> str:
    """The name that an item of a select list has for others; a computed one has none."""
    # The alias of an OVER is the window it names, not the column.
    named = isinstance(part, exp.Alias | exp.Column | exp.Dot)
    return part.alias_or_name if named else ""


def own_parts(select: exp.Select) -> Iterator[exp.Expr]:
    """What a SELECT computes behind FROM and WHERE."""
    yield from select.expressions
    for name in ("having", "qualify", "order", "sort", "distribute", "cluster"):
        if (part := select.args.get(name)) is not None:
            yield part


def windows_in(node: exp.Expr) -> Iterator[exp.Window]:
    """Every OVER of an expression."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
    for part in node.iter_expressions():
        yield from windows_in(part)


def subqueries(select: exp.Select) -> Iterator[exp.Expr]:
    """The queries in the expressions of a SELECT, not those in its FROM."""
    todo = [
        part
        for name, parts in select.args.items()
        if name not in ("from_", "joins", "with_", "laterals")
        for part in (parts if isinstance(parts, list) else [parts])
    ]
    todo += [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on")]
    while todo:
        part = todo.pop()
        if isinstance(part, exp.Query):
            yield part
        elif isinstance(part, exp.Expr):
            todo += part.iter_expressions()
