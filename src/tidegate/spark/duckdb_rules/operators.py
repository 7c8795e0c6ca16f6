"""Operators: arithmetic, comparison, logic, choice.

Operands get Spark's common type first, so that DuckDB has nothing to decide. Where Spark fails
(overflow, division by zero) DuckDB must fail too: whole numbers do so in both, and a division asks
first. Doubles follow Spark in all: NaN equals itself and is larger than every number.

>>> guarded("a", "b", "a / b")
"(CASE WHEN b = 0 THEN error('division by zero') ELSE a / b END)"
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from tidegate.spark.duckdb_rules.casts import literal, number, time_literal, together, widened
from tidegate.spark.duckdb_rules.registry import (
    NotCoveredError,
    Translator,
    Typed,
    row_rule,
    text_literal,
)
from tidegate.spark.duckdb_rules.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATING,
    MOST_DIGITS,
    NULL,
    STRING,
    TIMES,
    TIMESTAMP,
    WHOLE,
    SparkType,
    as_decimal,
    common,
    decimal,
    is_decimal,
    is_numeric,
)

COMPARED: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
SIGNS: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}

SECOND: Final = 1_000_000
MICROSECONDS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": SECOND,
    "MINUTE": 60 * SECOND,
    "HOUR": 3_600 * SECOND,
    "DAY": 86_400 * SECOND,
    "WEEK": 7 * 86_400 * SECOND,
}
MONTHS: Final = {"MONTH": 1, "YEAR": 12}


# ---- literals ----


@row_rule(
    "Literals", "`'text'`, `1`, `1.5`, `1e3`, `1L`, `TRUE`, `NULL`", exp.Literal, more="is_string"
)
def _literal(_translator: Translator, node: exp.Expr) -> Typed:
    assert isinstance(node, exp.Literal)
    return literal(node)


@row_rule("Literals", "`'text'`, `1`, `1.5`, `1e3`, `1L`, `TRUE`, `NULL`", exp.Boolean, exp.Null)
def _constant(_translator: Translator, node: exp.Expr) -> Typed:
    if isinstance(node, exp.Null):
        return Typed("NULL", NULL)
    return Typed("TRUE" if node.this else "FALSE", BOOLEAN)


@row_rule("Operators", "parentheses", exp.Paren)
def _paren(translator: Translator, node: exp.Expr) -> Typed:
    return translator.typed(node.this)


# ---- arithmetic ----


@row_rule(
    "Operators",
    "`+`, `-`, `*`",
    *SIGNS,
    note="whole numbers (overflow fails), floating ones, decimals up to 38 digits;"
    " a timestamp and an interval of one unit; a date and days",
)
def _arithmetic(translator: Translator, node: exp.Expr) -> Typed:
    if isinstance(node.expression, exp.Interval):
        return _moved(translator.typed(node.this), node.expression, isinstance(node, exp.Sub))
    left, right = translator.typed(node.this), translator.typed(node.expression)
    sign = SIGNS[type(node)]
    kinds = (left.type, right.type)
    if any(map(is_decimal, kinds)) and not FLOATING & set(kinds):
        return _decimal_arithmetic(left, right, sign, (node.this, node.expression))
    left, right = together(left, right)
    if not is_numeric(left.type):
        raise NotCoveredError(f"{sign} on {left.type:a}")
    return Typed(f"({left.sql} {sign} {right.sql})", left.type)


def _decimal_arithmetic(
    left: Typed, right: Typed, sign: str, nodes: tuple[exp.Expr, exp.Expr]
) -> Typed:
    one, other = (_as_operand(v, n) for v, n in zip((left, right), nodes, strict=True))
    if sign == "*":
        kind = decimal(one.precision + other.precision + 1, one.scale + other.scale)
    else:
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        kind = decimal(whole + scale + 1, scale)
    if kind.precision > MOST_DIGITS:
        raise NotCoveredError(f"a decimal of {kind.precision} digits")
    scales = (one.scale, other.scale) if sign == "*" else (kind.scale, kind.scale)
    operands = [
        f"CAST({value.sql} AS {decimal(MOST_DIGITS, scale).duckdb})"
        for value, scale in zip((left, right), scales, strict=True)
    ]
    return Typed(f"CAST({operands[0]} {sign} {operands[1]} AS {kind.duckdb})", kind)


def _as_operand(value: Typed, node: exp.Expr) -> SparkType:
    """A whole number beside a decimal counts as many digits as it is written with."""
    if value.number is not None and value.type in WHOLE:
        return decimal(len(value.number.lstrip("-")), 0)
    kind = as_decimal(value.type)
    if kind is None or (isinstance(node, exp.TryCast) and isinstance(node.this, exp.Literal)):
        raise NotCoveredError(f"{value.type:a} with a decimal")
    return kind


def _moved(at: Typed, interval: exp.Interval, back: bool) -> Typed:
    unit = interval.unit.name.upper().rstrip("S") if interval.unit is not None else ""
    said = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    if not re.fullmatch(r"-?\d{1,9}", said) or unit not in {*MICROSECONDS, *MONTHS}:
        raise NotCoveredError(f"the interval {interval.sql(dialect='spark')}")
    many = -int(said) if back else int(said)
    if at.type == DATE and unit == "DAY":
        return Typed(f"CAST({at.sql} + CAST({many} AS INTEGER) AS DATE)", DATE)
    if at.type != TIMESTAMP:
        raise NotCoveredError(f"{at.type:a} and an interval in units of {unit.lower()}")
    if unit in MONTHS:
        return Typed(f"({at.sql} + to_months({many * MONTHS[unit]}))", TIMESTAMP)
    return Typed(f"({at.sql} + to_microseconds({many * MICROSECONDS[unit]}))", TIMESTAMP)


def guarded(_left: str, right: str, division: str) -> str:
    """A division that fails as Spark's does."""
    return f"(CASE WHEN {right} = 0 THEN error('division by zero') ELSE {division} END)"


@row_rule("Operators", "`/`", exp.Div, note="as doubles; not of decimals; by zero fails")
def _divide(translator: Translator, node: exp.Expr) -> Typed:
    left, right = translator.typed(node.this), translator.typed(node.expression)
    both = common(left.type, right.type)
    if both is None or (both not in WHOLE and both not in FLOATING):
        raise NotCoveredError(f"/ on {both or left.type:a}")
    left, right = widened(left, DOUBLE), widened(right, DOUBLE)
    return Typed(guarded(left.sql, right.sql, f"{left.sql} / {right.sql}"), DOUBLE)


@row_rule("Operators", "`div`", exp.IntDiv, note="whole numbers; a bigint; by zero fails")
def _div(translator: Translator, node: exp.Expr) -> Typed:
    left, right = together(translator.typed(node.this), translator.typed(node.expression))
    if left.type not in WHOLE:
        raise NotCoveredError(f"div on {left.type:a}")
    left, right = widened(left, BIGINT), widened(right, BIGINT)
    return Typed(guarded(left.sql, right.sql, f"{left.sql} // {right.sql}"), BIGINT)


@row_rule(
    "Operators",
    "`%`, `mod(a, b)`",
    exp.Mod,
    note="whole and floating numbers; the sign is that of the left; by zero fails",
)
def _modulo(translator: Translator, node: exp.Expr) -> Typed:
    left, right = together(translator.typed(node.this), translator.typed(node.expression))
    if left.type not in WHOLE and left.type not in FLOATING:
        raise NotCoveredError(f"% on {left.type:a}")
    return Typed(guarded(left.sql, right.sql, f"{left.sql} % {right.sql}"), left.type)


@row_rule("Operators", "`-x`", exp.Neg, note="numbers")
def _negative(translator: Translator, node: exp.Expr) -> Typed:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(f"-{node.this.name}")
    value = translator.typed(node.this)
    if not is_numeric(value.type):
        raise NotCoveredError(f"- on {value.type:a}")
    return Typed(f"(-{value.sql})", value.type)


# ---- comparison and logic ----


def compared(left: Typed, right: Typed, nodes: tuple[exp.Expr, exp.Expr]) -> tuple[Typed, Typed]:
    """Two values as Spark compares them: a text beside a time is read as one."""
    for one, other, node in ((left, right, nodes[1]), (right, left, nodes[0])):
        if one.type in TIMES and other.type == STRING and isinstance(node, exp.Literal):
            time = time_literal(node.name, one.type)
            return (left, time) if one is left else (time, right)
    left, right = together(left, right)
    return left, right


@row_rule(
    "Operators",
    "`=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`, `IS [NOT] DISTINCT FROM`",
    *COMPARED,
    note="not between strings and numbers; NaN equals NaN and is the largest",
)
def _compare(translator: Translator, node: exp.Expr) -> Typed:
    nodes = (node.this, node.expression)
    left, right = compared(translator.typed(nodes[0]), translator.typed(nodes[1]), nodes)
    return Typed(f"({left.sql} {COMPARED[type(node)]} {right.sql})", BOOLEAN)


def condition(translator: Translator, node: exp.Expr) -> str:
    """An expression that must be a boolean."""
    value = translator.typed(node)
    if value.type not in (BOOLEAN, NULL):
        raise NotCoveredError(f"{value.type:a} as a condition")
    return value.sql if value.type == BOOLEAN else "CAST(NULL AS BOOLEAN)"


@row_rule("Operators", "`AND`, `OR`, `NOT`", exp.And, exp.Or)
def _logic(translator: Translator, node: exp.Expr) -> Typed:
    word = "AND" if isinstance(node, exp.And) else "OR"
    both = (condition(translator, part) for part in (node.this, node.expression))
    return Typed(f"({f' {word} '.join(both)})", BOOLEAN)


@row_rule("Operators", "`AND`, `OR`, `NOT`", exp.Not)
def _not(translator: Translator, node: exp.Expr) -> Typed:
    return Typed(f"(NOT {condition(translator, node.this)})", BOOLEAN)


@row_rule("Operators", "`IS [NOT] NULL`, `IS [NOT] TRUE`, `IS [NOT] FALSE`", exp.Is)
def _is(translator: Translator, node: exp.Expr) -> Typed:
    if isinstance(node.expression, exp.Null):
        return Typed(f"({translator.typed(node.this).sql} IS NULL)", BOOLEAN)
    if not isinstance(node.expression, exp.Boolean):
        raise NotCoveredError("IS with something else than NULL, TRUE, FALSE")
    word = "TRUE" if node.expression.this else "FALSE"
    return Typed(f"({condition(translator, node.this)} IS {word})", BOOLEAN)


@row_rule("Operators", "`BETWEEN`", exp.Between, more="low high")
def _between(translator: Translator, node: exp.Expr) -> Typed:
    value, low, high = (node.this, node.args["low"], node.args["high"])
    typed = translator.typed(value)
    above = compared(typed, translator.typed(low), (value, low))
    below = compared(typed, translator.typed(high), (value, high))
    return Typed(
        f"({above[0].sql} >= {above[1].sql} AND {below[0].sql} <= {below[1].sql})", BOOLEAN
    )


@row_rule("Operators", "`IN (...)`", exp.In, note="lists, not queries")
def _in(translator: Translator, node: exp.Expr) -> Typed:
    if not node.expressions:
        raise NotCoveredError("IN without a list")
    first, *rest = together(*(translator.typed(n) for n in (node.this, *node.expressions)))
    return Typed(f"({first.sql} IN ({', '.join(value.sql for value in rest)}))", BOOLEAN)


@row_rule(
    "Operators", "`[NOT] LIKE`", exp.Like, note="a literal pattern without ESCAPE", more="negate"
)
def _like(translator: Translator, node: exp.Expr) -> Typed:
    value, pattern = translator.typed(node.this), node.expression
    if value.type != STRING or not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise NotCoveredError("LIKE with a pattern that is not a literal")
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Typed(f"({value.sql} {word} {text_literal(pattern.name)})", BOOLEAN)


# ---- choice ----


@row_rule("Operators", "`CASE`", exp.Case, more="ifs default")
def _case(translator: Translator, node: exp.Expr) -> Typed:
    whens: list[str] = []
    for branch in node.args["ifs"]:
        if node.this is None:
            whens.append(condition(translator, branch.this))
        else:
            nodes = (node.this, branch.this)
            left, right = compared(translator.typed(nodes[0]), translator.typed(nodes[1]), nodes)
            whens.append(f"{left.sql} = {right.sql}")
    default = node.args.get("default")
    results = [translator.typed(branch.args["true"]) for branch in node.args["ifs"]]
    last = translator.typed(default) if default is not None else Typed("NULL", NULL)
    return chosen(whens, [*results, last])


@row_rule("Operators", "`IF(c, a, b)`", exp.If, more="true false")
def _if(translator: Translator, node: exp.Expr) -> Typed:
    no = node.args.get("false")
    other = translator.typed(no) if no is not None else Typed("NULL", NULL)
    yes = translator.typed(node.args["true"])
    return chosen([condition(translator, node.this)], [yes, other])


@row_rule("Operators", "`NVL2(x, a, b)`", exp.Nvl2, more="true false")
def _nvl2(translator: Translator, node: exp.Expr) -> Typed:
    there = f"{translator.typed(node.this).sql} IS NOT NULL"
    results = [translator.typed(node.args[name]) for name in ("true", "false")]
    return chosen([there], results)


def chosen(whens: list[str], results: list[Typed]) -> Typed:
    """A CASE whose results have one type; the last one is the ELSE."""
    alike = together(*results)
    if alike[0].type == NULL:
        raise NotCoveredError("a choice between nulls")
    pairs = zip(whens, alike, strict=False)
    arms = " ".join(f"WHEN {when} THEN {result.sql}" for when, result in pairs)
    return Typed(f"(CASE {arms} ELSE {alike[-1].sql} END)", alike[0].type)


@row_rule("Operators", "`COALESCE`, `NVL`, `IFNULL`", exp.Coalesce)
def _coalesce(translator: Translator, node: exp.Expr) -> Typed:
    values = together(*(translator.typed(part) for part in (node.this, *node.expressions)))
    return Typed(f"COALESCE({', '.join(value.sql for value in values)})", values[0].type)


@row_rule("Operators", "`NULLIF(a, b)`", exp.Nullif)
def _nullif(translator: Translator, node: exp.Expr) -> Typed:
    value = translator.typed(node.this)
    nodes = (node.this, node.expression)
    left, right = compared(value, translator.typed(node.expression), nodes)
    return Typed(f"(CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {value.sql} END)", value.type)


@row_rule(
    "Operators",
    "`GREATEST`, `LEAST`",
    exp.Greatest,
    exp.Least,
    note="nulls do not count",
    more="ignore_nulls",
)
def _extreme(translator: Translator, node: exp.Expr) -> Typed:
    values = together(*(translator.typed(part) for part in (node.this, *node.expressions)))
    word = "GREATEST" if isinstance(node, exp.Greatest) else "LEAST"
    return Typed(f"{word}({', '.join(value.sql for value in values)})", values[0].type)
