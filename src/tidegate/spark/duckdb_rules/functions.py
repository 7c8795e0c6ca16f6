"""Functions of a row: numbers and strings.

Strings are counted in characters (code points) and compared by their bytes, as in Spark. What
differs beyond the plain case is not here: UPPER and LOWER follow other tables beyond ASCII, and
ROUND to digits rounds doubles by their decimal text in Spark, by their value in DuckDB.

>>> floored("x", "floor")
'(CASE WHEN isnan(x) THEN 0 ELSE CAST(floor(x) AS BIGINT) END)'
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from tidegate.spark.duckdb_rules.casts import widened
from tidegate.spark.duckdb_rules.registry import (
    NotCoveredError,
    Translator,
    Typed,
    described,
    row_rule,
    text_literal,
)
from tidegate.spark.duckdb_rules.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOATING,
    INTEGER,
    NULL,
    STRING,
    WHOLE,
    SparkType,
    decimal,
    is_decimal,
    is_numeric,
)

NUMBERS: Final = "Functions of numbers"
STRINGS: Final = "Functions of strings"


def of_type(translator: Translator, node: exp.Expr, *kinds: SparkType) -> Typed:
    """An argument that must have one of some types."""
    value = translator.typed(node)
    if value.type not in kinds:
        raise NotCoveredError(f"{value.type:a} in {described(node.parent or node)}")
    return value


def whole_literal(node: exp.Expr | None) -> int | None:
    """The value of an argument that is a bare whole number."""
    if isinstance(node, exp.Neg) and (inner := whole_literal(node.this)) is not None:
        return -inner
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


# ---- numbers ----


@row_rule(NUMBERS, "`abs(x)`", exp.Abs)
def _abs(translator: Translator, node: exp.Expr) -> Typed:
    value = translator.typed(node.this)
    if not is_numeric(value.type):
        raise NotCoveredError(f"ABS of {value.type:a}")
    return Typed(f"abs({value.sql})", value.type)


@row_rule(NUMBERS, "`sqrt(x)`", exp.Sqrt, note="NaN below zero")
def _sqrt(translator: Translator, node: exp.Expr) -> Typed:
    x = widened(translator.typed(node.this), DOUBLE).sql
    nan = "CAST('nan' AS DOUBLE)"
    return Typed(f"(CASE WHEN {x} < 0 THEN {nan} ELSE sqrt({x}) END)", DOUBLE)


def floored(x: str, function: str) -> str:
    """A double cut to a bigint: NaN is 0 in Spark, and what is too large fails in both."""
    return f"(CASE WHEN isnan({x}) THEN 0 ELSE CAST({function}({x}) AS BIGINT) END)"


@row_rule(
    NUMBERS,
    "`floor(x)`, `ceil(x)`",
    exp.Floor,
    exp.Ceil,
    note="a bigint, NaN is 0, past it fails; not of decimals",
)
def _floor(translator: Translator, node: exp.Expr) -> Typed:
    value = translator.typed(node.this)
    if value.type in WHOLE:
        return Typed(widened(value, BIGINT).sql, BIGINT)
    if value.type not in FLOATING:
        raise NotCoveredError(f"FLOOR or CEIL of {value.type:a}")
    function = "floor" if isinstance(node, exp.Floor) else "ceil"
    return Typed(floored(widened(value, DOUBLE).sql, function), BIGINT)


@row_rule(
    NUMBERS,
    "`round(x)`, `round(x, n)`",
    exp.Round,
    note="half away from zero; to n digits only decimals, and fewer than they have",
    more="decimals",
)
def _round(translator: Translator, node: exp.Expr) -> Typed:
    value = translator.typed(node.this)
    digits = node.args.get("decimals")
    places = 0 if digits is None else whole_literal(digits)
    if is_decimal(value.type) and places is not None and 0 <= places <= value.type.scale:
        kind = value.type
        if places < kind.scale:
            kind = decimal(kind.precision - kind.scale + places + 1, places)
        else:
            raise NotCoveredError("ROUND of a decimal to all of its digits")
        return Typed(f"CAST(round({value.sql}, {places}) AS {kind.duckdb})", kind)
    if places == 0 and value.type in WHOLE:
        return Typed(value.sql, value.type)
    if places == 0 and value.type == DOUBLE:
        return Typed(f"round({value.sql})", DOUBLE)
    raise NotCoveredError(f"ROUND of {value.type:a} to digits")


@row_rule(NUMBERS, "`isnan(x)`", exp.IsNan, note="false of null")
def _isnan(translator: Translator, node: exp.Expr) -> Typed:
    value = of_type(translator, node.this, *FLOATING)
    return Typed(f"COALESCE(isnan({value.sql}), FALSE)", BOOLEAN)


@row_rule("Operators", "`isnull(x)`, `isnotnull(x)`", "isnull", "isnotnull")
def _isnull(translator: Translator, node: exp.Expr) -> Typed:
    if len(node.expressions) != 1:
        raise NotCoveredError("ISNULL of several")
    word = "IS NULL" if node.name.lower() == "isnull" else "IS NOT NULL"
    return Typed(f"({translator.typed(node.expressions[0]).sql} {word})", BOOLEAN)


# ---- strings ----


@row_rule(
    STRINGS,
    "`length(s)`, `char_length(s)`, `octet_length(s)`",
    exp.Length,
    "octet_length",
    note="characters, or bytes",
)
def _length(translator: Translator, node: exp.Expr) -> Typed:
    inner = node.this if isinstance(node, exp.Length) else node.expressions[0]
    function = "length" if isinstance(node, exp.Length) else "strlen"
    value = of_type(translator, inner, STRING)
    return Typed(f"CAST({function}({value.sql}) AS INTEGER)", INTEGER)


@row_rule(STRINGS, "`a || b`, `concat(a, b, ...)`", exp.DPipe, exp.Concat, note="null if any is")
def _concat(translator: Translator, node: exp.Expr) -> Typed:
    parts = node.expressions or [node.this, node.expression]
    values = [of_type(translator, part, STRING, NULL) for part in parts]
    texts = (v.sql if v.type == STRING else "CAST(NULL AS VARCHAR)" for v in values)
    return Typed(f"({' || '.join(texts)})", STRING)


@row_rule(
    STRINGS,
    "`concat_ws(sep, a, ...)`",
    exp.ConcatWs,
    note="a literal separator; nulls are left out",
    more="coalesce flatten",
)
def _concat_ws(translator: Translator, node: exp.Expr) -> Typed:
    if not isinstance(node.expressions[0], exp.Literal) or len(node.expressions) < 2:
        raise NotCoveredError("CONCAT_WS with a separator that is not a literal")
    values = [of_type(translator, part, STRING).sql for part in node.expressions]
    return Typed(f"concat_ws({', '.join(values)})", STRING)


@row_rule(
    STRINGS,
    "`substring(s, from[, many])`, `left(s, n)`, `right(s, n)`",
    exp.Substring,
    note="literal numbers; 0 counts as 1, below zero from the end",
    more="start length",
)
def _substring(translator: Translator, node: exp.Expr) -> Typed:
    s = of_type(translator, node.this, STRING).sql
    start, many = whole_literal(node.args.get("start")), node.args.get("length")
    length = whole_literal(many)
    if start is None or (many is not None and length is None):
        raise NotCoveredError("SUBSTRING with numbers that are not literals")
    if length is not None and length <= 0:
        return Typed(f"left({s}, 0)", STRING)
    if start >= 0:
        rest = f", {length}" if length is not None else ""
        return Typed(f"substring({s}, {max(start, 1)}{rest})", STRING)
    if length is None:
        return Typed(f"right({s}, {-start})", STRING)
    # Before the first character there is nothing, and it still counts.
    inside = f"left(right({s}, {-start}), {length})"
    beyond = f"left({s}, greatest(0, length({s}) + {length + start}))"
    return Typed(f"(CASE WHEN length({s}) >= {-start} THEN {inside} ELSE {beyond} END)", STRING)


@row_rule(
    STRINGS,
    "`substring(s, from[, many])`, `left(s, n)`, `right(s, n)`",
    exp.Left,
    exp.Right,
    note="literal numbers; 0 counts as 1, below zero from the end",
)
def _end(translator: Translator, node: exp.Expr) -> Typed:
    s, many = of_type(translator, node.this, STRING).sql, whole_literal(node.expression)
    if many is None:
        raise NotCoveredError("LEFT or RIGHT with a number that is not a literal")
    function = "left" if isinstance(node, exp.Left) else "right"
    return Typed(f"{function}({s}, {max(many, 0)})", STRING)


@row_rule(
    STRINGS,
    "`trim(s)`, `ltrim(s)`, `rtrim(s)`, `trim(BOTH 'c' FROM s)`",
    exp.Trim,
    note="spaces, or the characters of a literal",
    more="position",
)
def _trim(translator: Translator, node: exp.Expr) -> Typed:
    s, what = of_type(translator, node.this, STRING).sql, node.expression
    if what is not None and not (isinstance(what, exp.Literal) and what.is_string and what.name):
        raise NotCoveredError("TRIM of characters that are not a literal")
    characters = text_literal(what.name if what is not None else " ")
    position = node.args.get("position") or "BOTH"
    function = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}[position]
    return Typed(f"{function}({s}, {characters})", STRING)


FINDING: Final[dict[type[exp.Expr], str]] = {
    exp.Contains: "contains",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
}


@row_rule(STRINGS, "`contains(s, t)`, `startswith(s, t)`, `endswith(s, t)`", *FINDING)
def _find(translator: Translator, node: exp.Expr) -> Typed:
    s, t = (of_type(translator, part, STRING).sql for part in (node.this, node.expression))
    return Typed(f"{FINDING[type(node)]}({s}, {t})", BOOLEAN)


@row_rule(
    STRINGS,
    "`instr(s, 't')`, `locate('t', s)`, `position('t' IN s)`",
    exp.StrPosition,
    note="a literal that is not empty",
    more="substr",
)
def _position(translator: Translator, node: exp.Expr) -> Typed:
    s, sought = of_type(translator, node.this, STRING).sql, node.args["substr"]
    if not (isinstance(sought, exp.Literal) and sought.is_string and sought.name):
        raise NotCoveredError("INSTR of something that is not a literal")
    return Typed(f"CAST(instr({s}, {text_literal(sought.name)}) AS INTEGER)", INTEGER)


@row_rule(
    STRINGS,
    "`replace(s, 'a', 'b')`",
    exp.Replace,
    note="literals, the first not empty",
    more="replacement",
)
def _replace(translator: Translator, node: exp.Expr) -> Typed:
    s = of_type(translator, node.this, STRING).sql
    old, new = node.expression, node.args.get("replacement") or exp.Literal.string("")
    if not all(isinstance(part, exp.Literal) and part.is_string for part in (old, new)):
        raise NotCoveredError("REPLACE of something that is not a literal")
    if not old.name:
        raise NotCoveredError("REPLACE of nothing")
    return Typed(f"replace({s}, {text_literal(old.name)}, {text_literal(new.name)})", STRING)
