"""Casts: those that Spark does by itself, and those that a user writes.

By itself Spark only widens. What a user writes is covered where both kernels take the same values,
refuse the same values, and round alike: a double is cut towards zero, never rounded.

>>> from tidegate.spark.duckdb_rules.registry import Typed
>>> from tidegate.spark.duckdb_rules.types import BIGINT, DOUBLE, INTEGER
>>> widened(Typed("x", INTEGER), BIGINT).sql, widened(Typed("1.5", BIGINT, "1.5"), DOUBLE).sql
('CAST(x AS BIGINT)', "CAST('1.5' AS DOUBLE)")
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final

from sqlglot import exp

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
    FLOAT,
    FLOATING,
    INTEGER,
    NULL,
    STRING,
    TIMESTAMP,
    WHOLE,
    SparkType,
    as_decimal,
    common,
    decimal,
    is_decimal,
)

EXACT_DIGITS: Final = 15
"""As many digits as a double holds for sure."""

WRITTEN: Final[dict[SparkType, frozenset[SparkType]]] = {
    BOOLEAN: frozenset({INTEGER, BIGINT, STRING}),
    INTEGER: frozenset({BIGINT, FLOAT, DOUBLE, STRING, BOOLEAN}),
    BIGINT: frozenset({INTEGER, FLOAT, DOUBLE, STRING, BOOLEAN}),
    FLOAT: frozenset({DOUBLE}),
    DOUBLE: frozenset({INTEGER, BIGINT}),
    DATE: frozenset({TIMESTAMP, STRING}),
    TIMESTAMP: frozenset({DATE, STRING}),
}
"""What a user may cast to what, beside decimals."""

TARGETS: Final = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.INT: INTEGER,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
}

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")


def widened(value: Typed, to: SparkType) -> Typed:
    """A value in the wider type that Spark gives it without being told."""
    if value.type == to:
        return value
    if value.number is not None and to in FLOATING:
        return Typed(f"CAST('{value.number}' AS {to.duckdb})", to)
    if is_decimal(value.type) and to in FLOATING and value.type.precision > EXACT_DIGITS:
        raise NotCoveredError(f"{value.type:a} as {to:a}")
    if value.type == STRING or common(value.type, to) != to:
        raise NotCoveredError(f"{value.type:a} as {to:a}")
    return Typed(f"CAST({value.sql} AS {to.duckdb})", to)


def together(*values: Typed) -> list[Typed]:
    """Values in the one type that Spark gives them when they must have one."""
    kind = NULL
    for value in values:
        if (wider := common(kind, value.type)) is None:
            raise NotCoveredError(f"{value.type:a} where {kind:a} stands")
        kind = wider
    return [widened(value, kind) for value in values]


def time_literal(text: str, to: SparkType) -> Typed:
    """A date or an instant that is written out in full."""
    form = _DATE if to == DATE else _TIMESTAMP
    if not form.fullmatch(text):
        raise NotCoveredError(f"the {to} {text!r}, which is not written in full")
    try:
        at = date.fromisoformat(text) if to == DATE else datetime.fromisoformat(text)
    except ValueError:
        raise NotCoveredError(f"the {to} {text!r}, which there is not") from None
    shown = at.isoformat(" ") if isinstance(at, datetime) else at.isoformat()
    return Typed(f"CAST('{shown}' AS {to.duckdb})", to)


@row_rule(
    "Casts",
    "`CAST(x AS type)`, `x::type`, `DATE '...'`, `TIMESTAMP '...'`",
    exp.TryCast,
    exp.Cast,
    note="see the table of casts below; of strings only dates and timestamps written in full",
    more="to",
)
def _cast(translator: Translator, node: exp.Expr) -> Typed:
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        raise NotCoveredError("TRY_CAST")
    to = _target(node.args["to"])
    inner = node.this
    if isinstance(inner, exp.Literal) and inner.is_string and to in (DATE, TIMESTAMP):
        return time_literal(inner.name, to)
    value = translator.typed(inner)
    if value.type == to:
        return Typed(value.sql, to)
    if value.type == NULL:
        return Typed(f"CAST(NULL AS {to.duckdb})", to)
    if value.number is not None and to == DOUBLE:
        return Typed(widened(value, to).sql, to)
    if is_decimal(to):
        return _to_decimal(value, to)
    if is_decimal(value.type) and to == STRING and value.type.scale <= 6:
        return Typed(f"CAST({value.sql} AS VARCHAR)", to)
    if to not in WRITTEN.get(value.type, frozenset()):
        raise NotCoveredError(f"a cast of {value.type:a} to {to:a}")
    if value.type == DOUBLE and to in WHOLE:
        return _cut(value.sql, to)
    return Typed(f"CAST({value.sql} AS {to.duckdb})", to)


def _target(to: exp.DataType) -> SparkType:
    if to.this == exp.DType.DECIMAL:
        sizes = [int(size.name) for size in to.expressions]
        return decimal(*(sizes + [10, 0][len(sizes) :]))
    if to.this not in TARGETS or to.expressions:
        raise NotCoveredError(f"a cast to {to.sql(dialect='spark')}")
    return TARGETS[to.this]


def _to_decimal(value: Typed, to: SparkType) -> Typed:
    """Only where no digit can be lost behind the point; too many before it fail in both."""
    held = as_decimal(value.type)
    if held is None or held.scale > to.scale:
        raise NotCoveredError(f"a cast of {value.type:a} to {to:a}")
    return Typed(f"CAST({value.sql} AS {to.duckdb})", to)


def _cut(sql: str, to: SparkType) -> Typed:
    if to == INTEGER:
        return Typed(f"CAST(trunc({sql}) AS INTEGER)", to)
    # The double next to the largest bigint is one past it, and Spark takes it for that.
    top = "CAST('9223372036854775808' AS DOUBLE)"
    cut = f"CAST(trunc({sql}) AS BIGINT)"
    return Typed(f"(CASE WHEN {sql} = {top} THEN 9223372036854775807 ELSE {cut} END)", to)


def literal(node: exp.Literal) -> Typed:
    """A number or a string, in the type that Spark reads it as."""
    text = node.name
    if node.is_string:
        return Typed(text_literal(text), STRING)
    return number(text)


def number(text: str) -> Typed:
    """A bare number: an int or a bigint, a decimal with a point, a double with an e."""
    if re.fullmatch(r"-?\d+", text):
        for kind, bits in ((INTEGER, 31), (BIGINT, 63)):
            if -(1 << bits) <= int(text) < 1 << bits:
                return Typed(f"CAST({text} AS {kind.duckdb})", kind, text)
        raise NotCoveredError(f"the number {text}")
    if re.fullmatch(r"-?\d*\.\d*", text):
        whole, _, part = text.lstrip("-").partition(".")
        digits = len(whole.lstrip("0")) + len(part)
        kind = decimal(max(digits, len(part), 1), len(part))
        if kind.precision > 38 or not (whole + part):
            raise NotCoveredError(f"the number {text}")
        return Typed(f"CAST('{text}' AS {kind.duckdb})", kind, text)
    if re.fullmatch(r"-?[\d.]+[eE][+-]?\d+", text):
        return Typed(f"CAST('{text}' AS DOUBLE)", DOUBLE, text)
    raise NotCoveredError(f"the number {text}")
