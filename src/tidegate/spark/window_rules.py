"""The rules of a windowed query: it must mean the same however windows share a batch.

A batch holds several complete windows, and which ones it holds is nobody's promise. So whatever
looks at several rows at once must stay inside a window: groups, partitions of OVER, DISTINCT, joins
and set operations must all be by `_window_start` or `_window_end`. What cannot be shown to keep to
that is refused when the query is declared. One thing is taken on trust: that a user's own function
is one of a row.

>>> from tidegate.spark.sql_text import Statement
>>> def check(text: str) -> str:
...     return check_windowed(Statement.parse(text, ["orders"]))
>>> check("SELECT _window_end, item, count(*) AS n FROM orders GROUP BY _window_end, item")
'_window_end'
>>> check("SELECT _window_start AS _event_time, item FROM orders")
'_event_time'
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from tidegate import errors
from tidegate.spark.query_parts import (
    OF_A_BATCH,
    aggregates,
    function_name,
    output_name,
    own_parts,
    subqueries,
    windows_in,
)
from tidegate.spark.sql_text import Statement
from tidegate.spark.window_lineage import (
    CONSTANT,
    EVENT_TIME,
    STREAM,
    WINDOW_END,
    Output,
    Scope,
    Shape,
    Source,
    conjuncts,
    equated,
)

TOP_N: Final = (
    "number the rows: ROW_NUMBER() OVER (PARTITION BY _window_end ORDER BY ...) with QUALIFY,"
    " or in a subquery."
)
JOIN_HINT: Final = "add a._window_end = b._window_end to the ON, for each pair of streams joined."


def check_windowed(statement: Statement) -> str:
    """The column with the event time of a result row: `_event_time` if there, else `_window_end`.

    A query that could mix windows, or whose result has no event time, is refused.
    """
    tree = statement.tree
    _refuse_anywhere(statement)
    shape = _Rules(statement).shape(tree, None)
    if not shape.from_stream:
        raise errors.query_mixes_windows(
            "the query reads no stream",
            statement.fragment(tree),
            "read a stream: a row of no window would come out once per batch.",
        )
    names = {output.name for output in shape.outputs}
    if EVENT_TIME in names:
        return EVENT_TIME
    if WINDOW_END in shape.kinds():
        return WINDOW_END
    raise errors.no_window_in_output(
        output.name or "(no name)" for output in shape.outputs if output.name != WINDOW_END
    )


def _refuse_anywhere(statement: Statement) -> None:
    """What cannot be right at any level."""
    for node in statement.tree.walk():
        what, hint = "", "leave it out."
        if isinstance(node, exp.Limit | exp.Offset | exp.Fetch):
            what, hint = "a limit counts rows of all windows of a batch", TOP_N
        elif isinstance(node, exp.TableSample):
            what = "a sample is drawn from all windows of a batch"
        elif isinstance(node, exp.Pivot):
            what, hint = "PIVOT groups by columns it does not name", "write CASE in aggregates."
        elif isinstance(node, exp.QueryTransform):
            what = "a script sees rows of several windows"
        elif isinstance(node, exp.With) and node.args.get("recursive"):
            what, hint = "recursion may leave its window", "write the steps as joins."
        elif isinstance(node, exp.Func) and function_name(node) in OF_A_BATCH:
            what = "the value depends on how a batch is divided"
        if what:
            raise errors.query_mixes_windows(what, statement.fragment(node), hint)


class _Rules:
    """Walks a query from the inside out; gives the shape of each relation or refuses it."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement

    def refuse(self, what: str, node: exp.Expr, hint: str) -> errors.InputError:
        return errors.query_mixes_windows(what, self.statement.fragment(node), hint)

    def shape(self, query: exp.Expr, outer: Scope | None) -> Shape:
        if isinstance(query, exp.Subquery):
            return self.shape(query.this, outer)
        if isinstance(query, exp.SetOperation):
            return self.set_operation(query, outer)
        if isinstance(query, exp.Select):
            return self.select(query, outer)
        return CONSTANT

    # ---- relations ----

    def source(self, node: exp.Expr) -> Source:
        alias = node.alias_or_name.lower()
        if isinstance(node, exp.Table):
            if node.args.get("joins"):
                raise self.refuse("joins in parentheses are not followed", node, "unfold them.")
            if self.statement.stream_of(node) is not None:
                return Source(alias, STREAM)
            if (cte := self.statement.cte_of(node)) is not None:
                return Source(alias, _renamed(self.shape(cte.this, None), cte))
            return Source(alias, CONSTANT)
        if isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table):
                inner = self.source(node.this)
                return Source(alias or inner.alias, inner.shape)
            return Source(alias, _renamed(self.shape(node.this, None), node))
        if any(map(self.statement.stream_of, node.find_all(exp.Table))):
            raise self.refuse("a relation that is not followed reads a stream", node, JOIN_HINT)
        return Source(alias, CONSTANT)

    def scope(self, select: exp.Select, outer: Scope | None) -> Scope:
        """The relations of FROM, joined one after the other."""
        scope = Scope(outer=outer)
        if (start := select.args.get("from_")) is None:
            return scope
        first = self.source(start.this)
        scope.sources.append(first)
        if first.shape.from_stream:
            scope.covers = [frozenset({first.alias})]
        for join in select.args.get("joins") or ():
            self.join(scope, join, select)
        for lateral in select.args.get("laterals") or ():
            scope.sources.append(self.source(lateral))
        return scope

    def join(self, scope: Scope, join: exp.Join, select: exp.Select) -> None:
        """Take one more relation in; refuse if pairs of two windows could match."""
        source = self.source(join.this)
        side, half = join.side, join.kind in ("SEMI", "ANTI")
        ours, theirs = scope.from_stream(), source.shape.from_stream
        keeps_ours = side in ("LEFT", "FULL") or half
        keeps_theirs = side in ("RIGHT", "FULL") and not half
        if (theirs and keeps_ours and not ours) or (ours and keeps_theirs and not theirs):
            raise self.refuse(
                "an outer join keeps rows that belong to no window",
                join,
                "put the stream on the side whose rows are kept, or join by INNER.",
            )
        alone = Scope([source], [frozenset({source.alias})])
        if ours and theirs:
            conditions = list(conjuncts(join.args.get("on")))
            if not side and not half:
                conditions += conjuncts(select.args.get("where"))
            shared = self.shared_names(scope, source, join)
            if not shared and not equated(scope, alone, conditions):
                raise self.refuse(
                    "a join does not equate the windows of its sides", join, JOIN_HINT
                )
        if half:
            return
        self.merge(scope, source, join)
        scope.sources.append(source)
        if theirs:
            there = frozenset({source.alias})
            if not ours or side == "RIGHT":
                scope.covers = [there]
            elif side == "FULL":
                scope.covers = [cover | there for cover in scope.covers]
            elif side != "LEFT":
                scope.covers = [*scope.covers, there]

    def shared_names(self, scope: Scope, source: Source, join: exp.Join) -> list[str]:
        """The window columns that USING or NATURAL makes equal."""
        kinds = source.shape.kinds()
        names = [name.name.lower() for name in join.args.get("using") or ()]
        if join.method == "NATURAL":
            names = list(kinds)
        found = {name: scope.window_column(exp.column(name)) for name in names}
        return [
            name for name, ours in found.items() if ours is not None and kinds.get(name) == ours[0]
        ]

    def merge(self, scope: Scope, source: Source, join: exp.Join) -> None:
        for name in self.shared_names(scope, source, join):
            ours = scope.window_column(exp.column(name))
            scope.merged[name] = (ours[1] if ours else frozenset()) | {source.alias}

    # ---- queries ----

    def set_operation(self, query: exp.SetOperation, outer: Scope | None) -> Shape:
        left, right = self.shape(query.this, outer), self.shape(query.expression, outer)
        if not left.from_stream and not right.from_stream:
            return left
        if not left.from_stream or not right.from_stream:
            raise self.refuse(
                "one side of a set operation reads no stream, and would come out once per batch",
                query.expression if left.from_stream else query.this,
                "make it a table of constants that is joined to a stream.",
            )
        if left.open or right.open or query.args.get("by_name"):
            raise self.refuse(
                "the sides of a set operation are matched by place, and `*` hides the places",
                query,
                "name the columns of both sides.",
            )
        outputs = tuple(
            Output(one.name, one.kind if one.kind == other.kind else None)
            for one, other in zip(left.outputs, right.outputs, strict=False)
        )
        shape = Shape(outputs, True)
        all_rows = isinstance(query, exp.Union) and not query.args.get("distinct")
        if not all_rows and not shape.kinds():
            raise self.refuse(
                "rows of different windows would be compared",
                query,
                "put _window_end at the same place of both select lists, or use UNION ALL.",
            )
        return shape

    def select(self, select: exp.Select, outer: Scope | None) -> Shape:
        scope = self.scope(select, outer)
        self.subqueries(select, scope)
        from_stream = scope.from_stream()
        grouped: set[str] | None = None
        if from_stream and not self.pinned(select, scope):
            grouped = self.check_groups(select, scope)
            self.check_over(select, scope)
        outputs, is_open = self.outputs(select, scope, grouped)
        distinct = select.args.get("distinct")
        apart = any(output.kind for output in outputs) and not (
            distinct and distinct.args.get("on")
        )
        if distinct and from_stream and not apart and not self.pinned(select, scope):
            raise self.refuse(
                "DISTINCT has no window column", select, "add _window_end to the select list."
            )
        return Shape(outputs, from_stream, open=is_open)

    def pinned(self, select: exp.Select, scope: Scope) -> bool:
        """Whether a subquery sees one window only: that of the row it is asked for."""
        if scope.outer is None or not scope.covers:
            return False
        return equated(scope, scope.outer, list(conjuncts(select.args.get("where"))), hides=True)

    def subqueries(self, select: exp.Select, scope: Scope) -> None:
        for query in subqueries(select):
            if not self.shape(query, scope).from_stream:
                continue
            inner = query.unnest() if isinstance(query, exp.Subquery) else query
            if not isinstance(inner, exp.Select) or not self.pinned(
                inner, self.scope(inner, scope)
            ):
                raise self.refuse(
                    "a subquery reads a stream in all windows of a batch",
                    query,
                    "join the streams by _window_end, or equate it in the subquery's WHERE.",
                )

    def check_groups(self, select: exp.Select, scope: Scope) -> set[str] | None:
        """Refuse groups across windows; the borders that no set leaves out, None: all of them."""
        group = select.args.get("group")
        if group is None or group.args.get("all"):
            if not select.args.get("having") and not any(map(aggregates, own_parts(select))):
                return None
            keys = {scope.key(part) for part in select.expressions if not aggregates(part)}
            if group is None or not keys - {None}:
                raise self.refuse(
                    "an aggregate has rows of all windows of a batch",
                    select,
                    "GROUP BY _window_end.",
                )
            return None
        plain = [part for part in group.expressions if not isinstance(part, _SETS)]
        found = {scope.key(_meant(part, select, scope)) for part in plain}
        older = any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
        if older:
            found = set()  # the older form: what is listed before is only what the sets are made of
        for sets in [*group.expressions, *(group.args.get("grouping_sets") or ())]:
            if isinstance(sets, exp.GroupingSets):
                each = [
                    {scope.key(_meant(part, select, scope)) for part in _members(one)}
                    for one in sets.expressions
                ]
                found |= set.intersection(*each) if each else set()
        kept = {key for key in found if key}
        if not kept:
            raise self.refuse(
                "GROUP BY has no window column, or not in all of its sets",
                group,
                "add _window_end to the GROUP BY, and to each of its sets.",
            )
        return kept if older or len(plain) < len(group.expressions) else None

    def check_over(self, select: exp.Select, scope: Scope) -> None:
        named = {window.name.lower(): window for window in select.args.get("windows") or ()}
        for window in (window for part in own_parts(select) for window in windows_in(part)):
            by = list(window.args.get("partition_by") or ())
            base = window.args.get("alias")
            while base is not None and (over := named.get(base.name.lower())) is not None:
                by += over.args.get("partition_by") or ()
                base = over.args.get("alias")
            if not any(scope.key(column) for column in by):
                raise self.refuse(
                    "OVER has rows of all windows of a batch",
                    window,
                    "PARTITION BY _window_end, and what else it is by.",
                )

    def outputs(
        self, select: exp.Select, scope: Scope, grouped: set[str] | None
    ) -> tuple[tuple[Output, ...], bool]:
        found: list[Output] = []
        is_open = False
        for part in select.expressions:
            star = part.find(exp.Star) if part.is_star else None
            if star is not None:
                without = frozenset(c.name.lower() for c in star.args.get("except_") or ())
                qualifier = part.table.lower() if isinstance(part, exp.Column) else ""
                found += scope.star(qualifier, without)
                is_open = True
                continue
            kind = scope.key(part)
            kept = grouped is None or kind in grouped
            found.append(Output(output_name(part).lower(), kind if kept else None))
        return tuple(found), is_open


_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _meant(part: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """What GROUP BY means by a place in the select list, or by an alias there."""
    if isinstance(part, exp.Literal) and part.is_int:
        place = int(part.name) - 1
        if 0 <= place < len(select.expressions):
            part = select.expressions[place]
        return part
    if isinstance(part, exp.Column) and not part.table and scope.window_column(part) is None:
        for column in select.expressions:
            # An aggregate of that name is none: there Spark would take a column of the stream.
            if output_name(column).lower() == part.name.lower() and not aggregates(column):
                part = column
                break
    return part


def _members(one: exp.Expr) -> list[exp.Expr]:
    return one.expressions if isinstance(one, exp.Tuple) else [one.unnest()]


def _renamed(shape: Shape, node: exp.Expr) -> Shape:
    """The shape under the column names of an alias: `AS t (a, b)`."""
    alias = node.args.get("alias")
    names = [column.name.lower() for column in (alias.columns if alias is not None else ())]
    if not names:
        return shape
    if shape.open:
        return Shape(tuple(Output(name) for name in names), shape.from_stream)
    pairs = zip(names, shape.outputs, strict=False)
    return Shape(tuple(Output(name, o.kind) for name, o in pairs), shape.from_stream)
