"""Functions of dates and times: parts, cutting, counting.

Times are instants in UTC, also where Spark would look at the session's zone, which must be UTC for
this. Before 1970 everything rounds down, as after it.

>>> PARTS["DAYOFWEEK"].format(x="d")
'dayofweek(d) + 1'
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from tidegate.spark.duckdb_rules.casts import widened
from tidegate.spark.duckdb_rules.functions import of_type
from tidegate.spark.duckdb_rules.registry import NotCoveredError, Translator, Typed, row_rule
from tidegate.spark.duckdb_rules.types import BIGINT, DATE, INTEGER, TIMES, TIMESTAMP, WHOLE

TIME: Final = "Functions of dates and times"

PARTS: Final[dict[str, str]] = {
    "YEAR": "year({x})",
    "QUARTER": "quarter({x})",
    "MONTH": "month({x})",
    "WEEK": "weekofyear({x})",
    "DAY": "day({x})",
    "DAYOFWEEK": "dayofweek({x}) + 1",
    "WEEKDAY": "isodow({x}) - 1",
    "DOY": "dayofyear({x})",
    "HOUR": "hour({x})",
    "MINUTE": "minute({x})",
    "SECOND": "second({x})",
}
"""The parts of a time; Spark counts the days of the week from Sunday = 1, or from Monday = 0."""

PART_OF: Final[dict[type[exp.Expr] | str, str]] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.WeekOfYear: "WEEK",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfWeek: "DAYOFWEEK",
    "weekday": "WEEKDAY",
    exp.DayOfYear: "DOY",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}
OF_A_DAY: Final = frozenset({"HOUR", "MINUTE", "SECOND"})


@row_rule(
    TIME,
    "`year`, `quarter`, `month`, `day`, `dayofmonth`, `dayofweek`, `weekday`, `dayofyear`,"
    " `weekofyear`, `hour`, `minute`, `second`",
    *PART_OF,
    note="in UTC",
)
def _part(translator: Translator, node: exp.Expr) -> Typed:
    named = isinstance(node, exp.Anonymous)
    part = PART_OF[node.name.lower() if named else type(node)]
    return part_of(translator, node.expressions[0] if named else node.this, part)


@row_rule(TIME, "`extract(part FROM t)`", exp.Extract, note="the same parts, but not SECOND")
def _extract(translator: Translator, node: exp.Expr) -> Typed:
    part = node.this.name.upper()
    if part not in PARTS or part in ("SECOND", "WEEKDAY"):  # a decimal with a fraction, in Spark
        raise NotCoveredError(f"EXTRACT of {part}")
    return part_of(translator, node.expression, part)


def part_of(translator: Translator, node: exp.Expr, part: str) -> Typed:
    """One part of a date or a timestamp, as an int."""
    value = of_type(translator, node, DATE, TIMESTAMP)
    if part in OF_A_DAY:
        value = widened(value, TIMESTAMP)
    return Typed(f"CAST({PARTS[part].format(x=value.sql)} AS INTEGER)", INTEGER)


@row_rule(TIME, "`to_date(t)`, `date(t)`", exp.TsOrDsToDate, note="of dates and timestamps")
def _to_date(translator: Translator, node: exp.Expr) -> Typed:
    value = of_type(translator, node.this, DATE, TIMESTAMP)
    return Typed(value.sql if value.type == DATE else f"CAST({value.sql} AS DATE)", DATE)


UNITS: Final = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "DAY": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
}
SHORT: Final = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH", "DD": "DAY"}


@row_rule(
    TIME,
    "`date_trunc('unit', t)`, `trunc(d, 'unit')`",
    exp.TimestampTrunc,
    exp.DateTrunc,
    note=f"units: {', '.join(UNITS.values())}; of trunc, from week upwards",
    more="unit",
)
def _trunc(translator: Translator, node: exp.Expr) -> Typed:
    said = node.args["unit"].name.upper()
    unit = SHORT.get(said, said)
    value = of_type(translator, node.this, DATE, TIMESTAMP)
    to_date = isinstance(node, exp.DateTrunc)
    if unit not in UNITS or (to_date and unit not in ("YEAR", "QUARTER", "MONTH", "WEEK")):
        raise NotCoveredError(f"DATE_TRUNC or TRUNC to {unit}")
    cut = f"date_trunc('{UNITS[unit]}', {widened(value, TIMESTAMP).sql})"
    return Typed(f"CAST({cut} AS DATE)", DATE) if to_date else Typed(cut, TIMESTAMP)


@row_rule(TIME, "`datediff(a, b)`", exp.DateDiff, note="days between two dates")
def _datediff(translator: Translator, node: exp.Expr) -> Typed:
    a, b = (of_type(translator, part, DATE).sql for part in (node.this, node.expression))
    return Typed(f"CAST({a} - {b} AS INTEGER)", INTEGER)


@row_rule(TIME, "`date_add(d, n)`, `date_sub(d, n)`", exp.TsOrDsAdd, note="ints", more="unit")
def _date_add(translator: Translator, node: exp.Expr) -> Typed:
    value = of_type(translator, node.this, *TIMES)
    many = of_type(translator, node.expression, INTEGER).sql
    if node.args["unit"].name.upper() != "DAY":
        raise NotCoveredError("DATE_ADD of something else than days")
    day = value.sql if value.type == DATE else f"CAST({value.sql} AS DATE)"
    return Typed(f"CAST({day} + {many} AS DATE)", DATE)


@row_rule(TIME, "`last_day(d)`", exp.LastDay)
def _last_day(translator: Translator, node: exp.Expr) -> Typed:
    return Typed(f"last_day({of_type(translator, node.this, DATE).sql})", DATE)


SINCE_1970: Final[dict[type[exp.Expr] | str, int]] = {
    exp.UnixMicros: 1,
    exp.UnixMillis: 1_000,
    exp.UnixSeconds: 1_000_000,
}


@row_rule(TIME, "`unix_micros(t)`, `unix_millis(t)`, `unix_seconds(t)`", *SINCE_1970)
def _since(translator: Translator, node: exp.Expr) -> Typed:
    micros = f"epoch_us({of_type(translator, node.this, TIMESTAMP).sql})"
    unit = SINCE_1970[type(node)]
    if unit == 1:
        return Typed(micros, BIGINT)
    # Down, also before 1970.
    return Typed(f"(({micros} - (({micros} % {unit}) + {unit}) % {unit}) // {unit})", BIGINT)


UNTIL: Final = {"timestamp_micros": 1, "timestamp_millis": 1_000, "timestamp_seconds": 1_000_000}


@row_rule(TIME, "`timestamp_micros(n)`, `timestamp_millis(n)`, `timestamp_seconds(n)`", *UNTIL)
def _instant(translator: Translator, node: exp.Expr) -> Typed:
    many = widened(of_type(translator, node.expressions[0], *WHOLE), BIGINT).sql
    return Typed(f"make_timestamp({many} * {UNTIL[node.name.lower()]})", TIMESTAMP)
