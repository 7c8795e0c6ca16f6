"""Aggregates: functions of the rows of a group, or of a frame with OVER.

Sums of whole numbers are exact in DuckDB and fail in Spark when they pass a bigint: a cast makes
them fail here too. Floating sums may differ in their last digits, for no engine adds in a given
order. A percentile is computed from the sorted values by Spark's own formula.

>>> interpolated("l", "0.5").startswith("list_transform([l], lambda v: CASE WHEN")
True
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from tidegate.spark.duckdb_rules.casts import widened
from tidegate.spark.duckdb_rules.operators import condition
from tidegate.spark.duckdb_rules.registry import (
    Aggregate,
    NotCoveredError,
    Typed,
    group_rule,
)
from tidegate.spark.duckdb_rules.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOATING,
    MOST_DIGITS,
    NULL,
    WHOLE,
    decimal,
    is_decimal,
    is_numeric,
)

MORE_DIGITS: Final = 10
"""By so many digits a sum of decimals is longer than its terms, in Spark."""


def one_zero(value: Typed) -> str:
    """A value by which one groups: Spark makes -0.0 into 0.0 there."""
    if value.type not in FLOATING:
        return value.sql
    zero = f"CAST(0 AS {value.type.duckdb})"
    return f"(CASE WHEN {value.sql} = 0 THEN {zero} ELSE {value.sql} END)"


def argument(at: Aggregate, node: exp.Expr) -> tuple[str, Typed]:
    """`DISTINCT ` or nothing, and the one argument."""
    inner = node.this
    if not isinstance(inner, exp.Distinct):
        return "", at.given(inner)
    if len(inner.expressions) != 1 or inner.args.get("on") or at.over:
        raise NotCoveredError("DISTINCT of several in an aggregate, or with OVER")
    value = at.given(inner.expressions[0])
    return "DISTINCT ", Typed(one_zero(value), value.type)


@group_rule("`COUNT(*)`, `COUNT(x, ...)`, `COUNT(DISTINCT x, ...)`", exp.Count)
def _count(at: Aggregate, node: exp.Expr) -> Typed:
    inner = node.this
    if isinstance(inner, exp.Star):
        given = f"CASE WHEN {at.condition} THEN 1 END" if at.condition else "*"
        return Typed(f"COUNT({given}){at.over}", BIGINT)
    distinct = isinstance(inner, exp.Distinct)
    if distinct and at.over:
        raise NotCoveredError("DISTINCT with OVER")
    nodes = inner.expressions if distinct else [inner, *node.expressions]
    values = [at.given(part) for part in nodes]
    keys = [one_zero(value) if distinct else value.sql for value in values]
    given = keys[0]
    if len(keys) > 1:  # a row counts when none of them is null
        there = " AND ".join(f"{key} IS NOT NULL" for key in keys)
        counted = f"({', '.join(keys)})" if distinct else "1"
        given = f"CASE WHEN {there} THEN {counted} END"
    return Typed(f"COUNT({'DISTINCT ' if distinct else ''}{given}){at.over}", BIGINT)


@group_rule("`COUNT_IF(c)`", exp.CountIf)
def _count_if(at: Aggregate, node: exp.Expr) -> Typed:
    met = condition(at.translator, node.this)
    both = f"({at.condition}) AND ({met})" if at.condition else met
    return Typed(f"COUNT(CASE WHEN {both} THEN 1 END){at.over}", BIGINT)


@group_rule(
    "`SUM(x)`, `SUM(DISTINCT x)`",
    exp.Sum,
    note="whole numbers: a bigint, past it fails; floating: a double; decimals up to 28 digits",
)
def _sum(at: Aggregate, node: exp.Expr) -> Typed:
    distinct, value = argument(at, node)
    if value.type in WHOLE:
        return Typed(f"CAST(SUM({distinct}{value.sql}){at.over} AS BIGINT)", BIGINT)
    if value.type in FLOATING:
        return Typed(f"SUM({distinct}{widened(value, DOUBLE).sql}){at.over}", DOUBLE)
    if is_decimal(value.type) and value.type.precision + MORE_DIGITS <= MOST_DIGITS:
        kind = decimal(value.type.precision + MORE_DIGITS, value.type.scale)
        return Typed(f"CAST(SUM({distinct}{value.sql}){at.over} AS {kind.duckdb})", kind)
    raise NotCoveredError(f"SUM over {value.type:a}")


@group_rule("`AVG(x)`, `MEAN(x)`", exp.Avg, "mean", note="a double; not of decimals")
def _avg(at: Aggregate, node: exp.Expr) -> Typed:
    plain = _plain(node)
    distinct, value = argument(at, plain)
    if value.type not in WHOLE and value.type not in FLOATING:
        raise NotCoveredError(f"AVG over {value.type:a}")
    return Typed(f"AVG({distinct}{widened(value, DOUBLE).sql}){at.over}", DOUBLE)


@group_rule("`MIN(x)`, `MAX(x)`", exp.Min, exp.Max, note="every type; NaN is the largest")
def _extreme(at: Aggregate, node: exp.Expr) -> Typed:
    if node.expressions:
        raise NotCoveredError("MIN or MAX of several")
    _, value = argument(at, node)
    if value.type == NULL:
        raise NotCoveredError("MIN or MAX of null")
    function = "MIN" if isinstance(node, exp.Min) else "MAX"
    return Typed(f"{function}({value.sql}){at.over}", value.type)


@group_rule(
    "`BOOL_AND(c)`, `EVERY(c)`, `BOOL_OR(c)`, `SOME(c)`",
    exp.LogicalAnd,
    exp.LogicalOr,
    "every",
    "some",
)
def _logical(at: Aggregate, node: exp.Expr) -> Typed:
    value = at.given(_plain(node).this)
    if value.type != BOOLEAN:
        raise NotCoveredError(f"{value.type:a} as a condition")
    every = isinstance(node, exp.LogicalAnd) or node.name.lower() == "every"
    # The cast is what the parser would write: `duckdb_panes.py` leaves alone what it would change.
    given = f"CAST({value.sql} AS BOOLEAN)"
    return Typed(f"{'BOOL_AND' if every else 'BOOL_OR'}({given}){at.over}", BOOLEAN)


SPREADS: Final[dict[type[exp.Expr] | str, str]] = {
    exp.Stddev: "STDDEV_SAMP",
    exp.StddevSamp: "STDDEV_SAMP",
    "std": "STDDEV_SAMP",
    exp.StddevPop: "STDDEV_POP",
    exp.Variance: "VAR_SAMP",
    exp.VariancePop: "VAR_POP",
}


@group_rule(
    "`STDDEV`, `STD`, `STDDEV_SAMP`, `STDDEV_POP`, `VARIANCE`, `VAR_SAMP`, `VAR_POP`",
    *SPREADS,
    note="null of one row where it is of a sample; NaN as soon as a value is not finite",
)
def _spread(at: Aggregate, node: exp.Expr) -> Typed:
    named = isinstance(node, exp.Anonymous)
    function = SPREADS[node.name.lower() if named else type(node)]
    value = at.given(_plain(node).this)
    if not is_numeric(value.type):
        raise NotCoveredError(f"{function} over {value.type:a}")
    # To 1e-9 a decimal may be rounded to a double on the way.
    x = f"CAST({value.sql} AS DOUBLE)"
    if value.type not in FLOATING:
        return Typed(f"{function}({x}){at.over}", DOUBLE)
    # DuckDB gives 0 for one value, whatever it is, and may refuse infinities.
    strange = f"COUNT(CASE WHEN NOT isfinite({x}) THEN 1 END){at.over} > 0"
    enough = f"COUNT({x}){at.over} > {1 if function.endswith('SAMP') else 0}"
    spread = f"{function}(CASE WHEN isfinite({x}) THEN {x} END){at.over}"
    nan = "CAST('nan' AS DOUBLE)"
    return Typed(f"(CASE WHEN {strange} AND {enough} THEN {nan} ELSE {spread} END)", DOUBLE)


# ---- percentiles ----


def interpolated(values: str, share: str) -> str:
    """The percentile of a sorted list, between its two nearest members by Spark's own formula."""
    at = f"((len(v) - 1) * CAST('{share}' AS DOUBLE))"
    low, high = (f"v[CAST({cut}({at}) AS BIGINT) + 1]" for cut in ("floor", "ceil"))
    between = f"{low} + ({high} - {low}) * ({at} - floor({at}))"
    return (
        f"list_transform([{values}], lambda v: CASE WHEN floor({at}) = ceil({at})"
        f" OR {low} = {high} THEN {low} ELSE {between} END)[1]"
    )


def _percentile(at: Aggregate, node: exp.Expr, share: exp.Expr, *, down: bool = False) -> Typed:
    if at.over:
        raise NotCoveredError("a percentile with OVER")
    number = share.name if isinstance(share, exp.Literal) and not share.is_string else ""
    try:
        inside = 0 <= float(number) <= 1
    except ValueError:
        inside = False
    if not inside:
        raise NotCoveredError("a percentile that is not a literal from 0 to 1")
    value = at.given(node)
    if value.type not in WHOLE and value.type not in FLOATING:
        raise NotCoveredError(f"a percentile over {value.type:a}")
    x = widened(value, DOUBLE).sql
    order = "list_reverse_sort" if down else "list_sort"
    return Typed(interpolated(f"{order}(list({x}) FILTER (WHERE {x} IS NOT NULL))", number), DOUBLE)


@group_rule(
    "`MEDIAN(x)`, `PERCENTILE(x, p)`",
    exp.Median,
    exp.Quantile,
    note="p a literal; not of decimals",
    more="quantile",
)
def _quantile(at: Aggregate, node: exp.Expr) -> Typed:
    half = exp.Literal.number("0.5")
    return _percentile(at, node.this, node.args.get("quantile") or half)


@group_rule(
    "`PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x [DESC])`",
    exp.WithinGroup,
    note="p a literal; not of decimals",
)
def _within_group(at: Aggregate, node: exp.Expr) -> Typed:
    function, order = node.this, node.expression
    if not isinstance(function, exp.PercentileCont) or len(order.expressions) != 1:
        raise NotCoveredError(f"{type(function).__name__.upper()} WITHIN GROUP")
    by = order.expressions[0]
    return _percentile(at, by.this, function.this, down=bool(by.args.get("desc")))


def _plain(node: exp.Expr) -> exp.Expr:
    """A node whose argument is `this`, also if the parser does not know the function."""
    if not isinstance(node, exp.Anonymous):
        return node
    if len(node.expressions) != 1:
        raise NotCoveredError(f"function {node.name.upper()} with several arguments")
    return exp.Paren(this=node.expressions[0].copy())
