"""The text of an interval join: one SELECT over two streams, driven by one of them.

Every row of the driver meets the rows of the other stream whose time lies around its own. A batch
has the driver's rows of [a, b) and all of the other's that can meet them, so an inner join, and an
outer one that keeps the driver, is right in every batch by itself. The bounds are added to the ON,
so that what a query gives cannot depend on how much of the other stream a batch happens to hold.
Anything that looks at several result rows at once would: that is refused.

>>> text = "SELECT o.id, p.paid FROM orders o LEFT JOIN payments p ON o.id = p.id"
>>> joined = JoinText.of(Statement.parse(text, ["orders", "payments"]), "orders", "payments",
...                      before=timedelta(0), after=timedelta(seconds=5))
>>> joined.driver, joined.other, joined.time_behind
('orders', 'payments', datetime.timedelta(0))
>>> print(joined.statement.text)           # doctest: +NORMALIZE_WHITESPACE
SELECT o.id, p.paid, o._event_time AS _event_time FROM orders AS o LEFT JOIN payments AS p
ON o.id = p.id AND (p._event_time >= o._event_time - INTERVAL '0.000000' SECOND
AND p._event_time <= o._event_time + INTERVAL '5.000000' SECOND)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlglot import exp

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.spark.query_parts import aggregates
from tidegate.spark.shape import EVENT_TIME
from tidegate.spark.sql_text import Statement

_REFUSED = (
    *("group", "having", "distinct", "order", "sort", "cluster", "limit", "offset"),
    *("qualify", "laterals", "windows"),
)


@dataclass(frozen=True)
class JoinText:
    """An interval join, ready to be planned: rows of `other` around rows of `driver`."""

    statement: Statement
    driver: str
    other: str
    before: timedelta
    after: timedelta
    time_behind: timedelta
    """How far before the driver's time a result's own may lie."""

    @staticmethod
    def of(
        statement: Statement, first: str, second: str, *, before: timedelta, after: timedelta
    ) -> JoinText:
        """Rows of `second` from `before` earlier to `after` later than a row of `first`."""
        select, join = _checked(statement)
        source = select.args["from_"].this
        left, right = Statement.stream_of(source), Statement.stream_of(join.this)
        if {left, right} != {first, second}:
            raise _refused(statement, f"it does not join {first} with {second}")
        assert left is not None
        assert right is not None
        side = (join.side or "").upper()
        if side == "FULL":
            raise _refused(statement, "a FULL join keeps both sides, and neither drives it")
        driver, other = (right, left) if side == "RIGHT" else (left, right)
        if driver != first:
            before, after = after, before
        named = {left: source.alias_or_name, right: join.this.alias_or_name}
        tree = _bounded(statement, named[driver], named[other], before, after)
        tree = _timed(statement, tree, named[left], named[right], side)
        return JoinText(
            Statement.parse(tree.sql(dialect="spark"), [first, second]),
            driver,
            other,
            before,
            after,
            # A row kept by a RIGHT join has the time of its left side, where there is one.
            before if side == "RIGHT" else timedelta(0),
        )


def check_row_by_row(statement: Statement) -> None:
    """Refuse a query over one stream whose results would depend on what else is in a batch."""
    reason = not_row_by_row(statement.tree)
    if reason is None and statement.tree.args.get("joins"):
        reason = "it has a JOIN"
    if reason is not None:
        raise errors.query_not_row_by_row(reason, statement.fragment(statement.tree))


def not_row_by_row(tree: exp.Expr) -> str | None:
    """Why a query is not a function of single rows; None when it is."""
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) != 1:
        return "it is not one plain SELECT"
    for part in _REFUSED:
        if tree.args.get(part):
            return f"it has {part.upper().rstrip('S')}"
    if tree.find(exp.Window) or any(aggregates(part) for part in tree.expressions):
        return "it looks at several rows at once"
    return None


def _checked(statement: Statement) -> tuple[exp.Select, exp.Join]:
    tree = statement.tree
    reason = not_row_by_row(tree)
    if reason is not None:
        raise _refused(statement, reason)
    assert isinstance(tree, exp.Select)
    joins = tree.args.get("joins") or []
    if len(joins) != 1 or not isinstance(joins[0].this, exp.Table) or not joins[0].args.get("on"):
        raise _refused(statement, "it has not exactly one JOIN ... ON of the two streams")
    return tree, joins[0]


def _bounded(
    statement: Statement, driver: str, other: str, before: timedelta, after: timedelta
) -> exp.Select:
    """The same with the bounds in its ON."""
    tree = statement.tree.copy()
    assert isinstance(tree, exp.Select)
    [join] = tree.args["joins"]
    time, mine = exp.column(EVENT_TIME, table=other), exp.column(EVENT_TIME, table=driver)
    bounds = exp.and_(
        exp.GTE(this=time, expression=exp.Sub(this=mine, expression=_interval(before))),
        exp.LTE(
            this=time.copy(), expression=exp.Add(this=mine.copy(), expression=_interval(after))
        ),
    )
    join.set("on", exp.and_(join.args["on"], exp.paren(bounds)))
    return tree


def _timed(statement: Statement, tree: exp.Select, left: str, right: str, side: str) -> exp.Select:
    """The same with an event time: that of the first stream, or of the side that a row has."""
    if any(isinstance(part, exp.Star) for part in tree.expressions):
        raise _refused(statement, "* would give two columns of every system column")
    if any(part.alias_or_name.lower() == EVENT_TIME for part in tree.expressions):
        return tree
    whole = {
        part.table.lower()
        for part in tree.expressions
        if isinstance(part, exp.Column) and isinstance(part.this, exp.Star)
    }
    if len(whole) > 1:
        raise _refused(statement, "two .* would give two columns of every system column")
    if whole:
        return tree
    time: exp.Expr = exp.column(EVENT_TIME, table=left)
    if side == "RIGHT":
        time = exp.Coalesce(this=time, expressions=[exp.column(EVENT_TIME, table=right)])
    return tree.select(exp.alias_(time, EVENT_TIME))


def _interval(length: timedelta) -> exp.Interval:
    whole, part = divmod(micros(length), 1_000_000)
    return exp.Interval(this=exp.Literal.string(f"{whole}.{part:06d}"), unit=exp.var("SECOND"))


def _refused(statement: Statement, reason: str) -> errors.InputError:
    return errors.join_not_by_interval(reason, statement.fragment(statement.tree))
