"""The text of an interval join: one SELECT over two streams, driven by one of them.

Every row of the driver meets the rows of the other stream whose time lies around its own. A batch
has the driver's rows of [a, b) and all of the other's that can meet them, so an inner join, and an
outer one that keeps the driver, is right in every batch by itself. The bounds are added to the ON,
so that what a query gives cannot depend on how much of the other stream a batch happens to hold.
Anything that looks at several result rows at once would: that is refused.

A full join has its left stream for a driver. Rows of the other that met nobody are given out when
the last that could have met them has been, so a batch also reads the driver's rows of before. What
of all that is due now the frames say, in columns that a condition of ours compares: see `Full`.

>>> text = "SELECT o.id, p.paid FROM orders o LEFT JOIN payments p ON o.id = p.id"
>>> joined = JoinText.of(Statement.parse(text, ["orders", "payments"]), "orders", "payments",
...                      before=timedelta(0), after=timedelta(seconds=5))
>>> joined.driver, joined.other, joined.time_behind
('orders', 'payments', datetime.timedelta(0))
>>> print(joined.statement.text)           # doctest: +NORMALIZE_WHITESPACE
SELECT o.id, p.paid, o._event_time AS _event_time FROM orders AS o LEFT JOIN payments AS p
ON o.id = p.id AND (p._event_time >= o._event_time
AND p._event_time <= o._event_time + INTERVAL '5' SECOND)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlglot import exp

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.spark.query_parts import aggregates
from tidegate.spark.shape import ALONE_BELOW, ALONE_FROM, EVENT_TIME, GIVEN_FROM, MEETS_FROM
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
    full: bool = False
    """Rows of `other` that met nobody are kept too."""

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
        driver, other = (right, left) if side == "RIGHT" else (left, right)
        if driver != first:
            before, after = after, before
        named = {left: source.alias_or_name, right: join.this.alias_or_name}
        tree = _bounded(statement, named[driver], named[other], before, after)
        tree = _timed(statement, tree, named[left], named[right], side)
        if side == "FULL":
            tree = _due(tree, named[driver], named[other])
        return JoinText(
            Statement.parse(tree.sql(dialect="spark"), [first, second]),
            driver,
            other,
            before,
            after,
            # Whatever is not the driver's own time is the other's, which may lie so far behind;
            # kept by a FULL join, it has waited so long for those that could have met it.
            timedelta(0) if side != "FULL" and _is_timed_by(tree, named[driver]) else before,
            full=side == "FULL",
        )


def check_row_by_row(statement: Statement) -> None:
    """Refuse a query over one stream whose results would depend on what else is in a batch."""
    reason = not_row_by_row(statement.tree)
    if reason is None and statement.tree.args.get("joins"):
        reason = "it has a JOIN"
    if reason is not None:
        raise errors.query_not_row_by_row(reason, statement.fragment(statement.tree))


def chooses_time(tree: exp.Expr) -> bool:
    """Whether only the user knows how far behind the time of a result may lie.

    Known are the times of rows as they are, and the least, largest or first known of these.
    """
    known = (exp.Identifier, exp.Least, exp.Greatest, exp.Coalesce)
    for part in tree.expressions:
        if part.alias_or_name.lower() == EVENT_TIME:
            return not all(
                isinstance(node, known)
                or (isinstance(node, exp.Column) and node.name.lower() == EVENT_TIME)
                for node in part.unalias().walk()
            )
    return False


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
        exp.GTE(this=time, expression=_moved(mine, exp.Sub, before)),
        exp.LTE(this=time.copy(), expression=_moved(mine.copy(), exp.Add, after)),
    )
    join.set("on", exp.and_(join.args["on"], exp.paren(bounds)))
    return tree


def _due(tree: exp.Select, driver: str, other: str) -> exp.Select:
    """Of a full join over more rows than are due: those that are."""
    [join] = tree.args["joins"]
    mine, time = exp.column(EVENT_TIME, table=driver), exp.column(EVENT_TIME, table=other)
    met = exp.GTE(this=mine, expression=exp.column(MEETS_FROM, table=other))
    join.set("on", exp.and_(join.args["on"], met))
    given = exp.GTE(this=mine.copy(), expression=exp.column(GIVEN_FROM, table=driver))
    alone = exp.and_(
        exp.Is(this=mine.copy(), expression=exp.null()),
        exp.GTE(this=time, expression=exp.column(ALONE_FROM, table=other)),
        exp.LT(this=time.copy(), expression=exp.column(ALONE_BELOW, table=other)),
    )
    return tree.where(exp.paren(exp.or_(given, exp.paren(alone))))


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
    missing = {"LEFT": {right}, "RIGHT": {left}, "FULL": {left, right}}.get(side, set())
    if whole & {name.lower() for name in missing}:
        raise _refused(statement, "a .* has no time where its side has no row: name the columns")
    if len(whole) > 1:
        raise _refused(statement, "two .* would give two columns of every system column")
    if whole:
        return tree
    time: exp.Expr = exp.column(EVENT_TIME, table=left)
    if side in ("RIGHT", "FULL"):
        time = exp.Coalesce(this=time, expressions=[exp.column(EVENT_TIME, table=right)])
    return tree.select(exp.alias_(time, EVENT_TIME))


def _is_timed_by(tree: exp.Select, source: str) -> bool:
    """Whether a result's event time is that of its row of this stream, as it is."""
    times = [part for part in tree.expressions if part.alias_or_name.lower() == EVENT_TIME]
    # Without any, it comes with all the other columns of one side.
    found = times or [part for part in tree.expressions if isinstance(part.this, exp.Star)]
    time = found[0].unalias()
    return (
        isinstance(time, exp.Column)
        and time.name.lower() in (EVENT_TIME, "*")
        and time.table.lower() == source.lower()
    )


def _moved(time: exp.Expr, sign: type[exp.Binary], length: timedelta) -> exp.Expr:
    """A time moved by a length, in whole units: these both kernels know."""
    for many, unit in zip(
        divmod(micros(length), 1_000_000), ("SECOND", "MICROSECOND"), strict=True
    ):
        if many:
            by = exp.Interval(this=exp.Literal.string(str(many)), unit=exp.var(unit))
            time = sign(this=time, expression=by)
    return time


def _refused(statement: Statement, reason: str) -> errors.InputError:
    return errors.join_not_by_interval(reason, statement.fragment(statement.tree))
