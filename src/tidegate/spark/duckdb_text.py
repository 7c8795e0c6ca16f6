"""The same query for DuckDB, if it is in the subset where both kernels give equal results.

Equal means: sums, averages and deviations of floating numbers to a relative 1e-9, everything else
exactly, failures included. A query is translated whole or not at all; what is outside says why, and
then Spark runs it. DuckDB has read every text that comes out. The result has the columns of Spark's
result in its order; timestamps come out without a zone and are UTC, so that a cast of each column
to Spark's type is exact.

>>> import pyarrow as pa
>>> schema = pa.schema({"_window_end": pa.timestamp("us", "UTC"), "n": pa.int64()})
>>> def shown(text: str) -> str | Outside:
...     return translate(Statement.parse(text, ["orders"]), {"orders": schema})
>>> shown("SELECT sum(n) AS s FROM orders")
'SELECT CAST(SUM("orders"."n") AS BIGINT) AS "s" FROM (SELECT "n" AS "n" FROM "orders") AS "orders"'
>>> shown("SELECT exp(n) FROM orders")
Outside(reason='function EXP')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from tidegate.spark.duckdb_panes import in_panes
from tidegate.spark.duckdb_rules.aggregates import one_zero
from tidegate.spark.duckdb_rules.casts import together, widened
from tidegate.spark.duckdb_rules.operators import compared, condition
from tidegate.spark.duckdb_rules.registry import NotCoveredError, Outside, Typed, described, quoted
from tidegate.spark.duckdb_rules.types import NULL, TIMESTAMP, common, from_arrow
from tidegate.spark.duckdb_scope import Column, Scope, Source, direction
from tidegate.spark.duckdb_windows import WindowKeys
from tidegate.spark.query_parts import aggregates, output_name, own_parts
from tidegate.spark.shape import BOUNDS, WINDOW_NUMBER, Windows, panes_of
from tidegate.spark.sql_text import Statement

JOINS: Final = {
    ("", ""): "INNER JOIN",
    ("", "INNER"): "INNER JOIN",
    ("", "CROSS"): "CROSS JOIN",
    ("LEFT", ""): "LEFT JOIN",
    ("LEFT", "OUTER"): "LEFT JOIN",
    ("RIGHT", ""): "RIGHT JOIN",
    ("RIGHT", "OUTER"): "RIGHT JOIN",
    ("FULL", ""): "FULL JOIN",
    ("FULL", "OUTER"): "FULL JOIN",
    ("LEFT", "SEMI"): "SEMI JOIN",
    ("LEFT", "ANTI"): "ANTI JOIN",
    ("", "SEMI"): "SEMI JOIN",
    ("", "ANTI"): "ANTI JOIN",
}
"""The joins by the side and the kind they are written with."""

CLAUSES: Final = frozenset(
    {"with_", "expressions", "from_", "joins", "where", "group", "having", "qualify"}
    | {"windows", "order", "distinct", "hint", "kind", "match"}
)
"""What a SELECT may have."""

_NUMBER: Final = pa.field(WINDOW_NUMBER, pa.int64())
_STARTS: Final = pa.schema({"low": pa.int64(), "high": pa.int64()})


def translate(
    statement: Statement,
    schemas: Mapping[str, pa.Schema],
    windows: Windows | None = None,
    *,
    panes: bool = True,
) -> str | Outside:
    """The query in DuckDB's SQL over relations named as the streams, or why there is none.

    `windows`: those of the streams, which then have one more column `_window_number`, the start of
    the window as a number. With `panes` hopping ones are read by pane where that can be, from
    relations of their own.
    """
    try:
        _refuse_strings(statement.text)
        taken = {name.lower() for name in statement.streams}
        panes = panes and taken.isdisjoint({BOUNDS, *map(panes_of, taken)})
        made = _Translation(statement, schemas, windows, panes=panes)
        relation = made.query(statement.tree, top=True)
        ctes = ", ".join(f"{quoted(name)} AS ({sql})" for name, sql in made.ctes.items())
        text = f"WITH {ctes} {relation.sql}" if ctes else relation.sql
        there = {name: schemas[name] for name in statement.streams}
        if windows is not None:
            there = {name: schema.append(_NUMBER) for name, schema in there.items()}
            by_pane = {panes_of(name): schema for name, schema in there.items()}
            there = {BOUNDS: _STARTS, **by_pane, **there}
        _try_out(text, relation.columns, there)
        return text
    except NotCoveredError as reason:
        return Outside(str(reason))


def _try_out(text: str, columns: Sequence[Column], schemas: Mapping[str, pa.Schema]) -> None:
    """Let DuckDB read the text, not run it: it must take it, and its types must be Spark's."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, schema in schemas.items():
            connection.register(name, schema.empty_table())
        try:
            found = [str(kind) for kind in connection.sql(text).types]
        except duckdb.Error as refused:
            raise NotCoveredError(f"DuckDB refuses it: {str(refused).splitlines()[0]}") from None
    for column, kind in zip(columns, found, strict=True):
        if column.type is None or column.type.duckdb != kind:
            raise NotCoveredError(f'column "{column.name}", a {column.type} that becomes a {kind}')


def _refuse_strings(text: str) -> None:
    """Refuse strings that the parser may read otherwise than Spark: escapes and doubled quotes."""
    last = None
    for token in sqlglot.tokenize(text, dialect="spark"):
        kind = token.token_type.name
        if kind.endswith("STRING") and kind != "STRING":
            raise NotCoveredError("a string with a prefix")
        if kind == "STRING" and (last == kind or "\\" in text[token.start : token.end + 1]):
            raise NotCoveredError("a string with a backslash or a doubled quote")
        last = kind


class Relation(NamedTuple):
    """A query that is written, and the columns it gives out."""

    sql: str
    columns: tuple[Column, ...]


class _Translation:
    """One statement; `ctes` are those that were met, in an order in which each may be read."""

    def __init__(
        self,
        statement: Statement,
        schemas: Mapping[str, pa.Schema],
        windows: Windows | None,
        *,
        panes: bool,
    ) -> None:
        self.statement, self.schemas = statement, schemas
        self.windows, self.panes = windows, panes
        self.ctes: dict[str, str] = {}
        self.unnamed = 0
        self.known: dict[int, tuple[str, tuple[Column, ...]]] = {}

    def query(self, node: exp.Expr, *, top: bool = False) -> Relation:
        if isinstance(node, exp.Subquery):
            return self.query(node.this)
        if isinstance(node, exp.Union):
            return self.union(node, top=top)
        if isinstance(node, exp.Select):
            return self.select(node, top=top)
        raise NotCoveredError(described(node))

    # ---- FROM ----

    def source(self, node: exp.Expr) -> tuple[str, Source]:
        """A relation of FROM, written with its alias."""
        alias = node.alias_or_name
        if (given := node.args.get("alias")) is not None and given.columns:
            raise NotCoveredError("an alias with names of columns")
        if isinstance(node, exp.Table):
            for name in ("joins", "pivots", "sample", "version", "when", "hints"):
                if node.args.get(name):
                    raise NotCoveredError(f"a table with {name}")
            if (stream := self.statement.stream_of(node)) is not None:
                sql, columns = self.stream(stream)
            elif (cte := self.statement.cte_of(node)) is not None:
                sql, columns = self.cte(cte)
            else:
                raise NotCoveredError(f"the table {node.this.sql(dialect='spark')}")
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            if node.args.get("pivots") or node.args.get("sample"):
                raise NotCoveredError("a subquery with PIVOT or a sample")
            relation = self.query(node.this)
            self.unnamed += not alias
            alias = alias or f"_query_{self.unnamed}"
            sql, columns = f"({relation.sql})", relation.columns
        else:
            raise NotCoveredError(f"{described(node)} in FROM")
        return f"{sql} AS {quoted(alias)}", Source(alias, columns)

    def stream(self, stream: str) -> tuple[str, tuple[Column, ...]]:
        """The frame of a stream: only what the query can touch, timestamps as instants in UTC."""
        used = self.statement.columns_used(stream)
        columns = tuple(
            Column(field.name, from_arrow(field.type))
            for field in self.schemas[stream]
            if used is None or field.name.lower() in used
        )
        if len({column.name.lower() for column in columns}) < len(columns):
            raise NotCoveredError("columns whose names differ by case alone")
        if self.windows is not None and any(c.name.lower() == WINDOW_NUMBER for c in columns):
            raise NotCoveredError(
                f"a column with the name {WINDOW_NUMBER}, which DuckDB has for windows"
            )
        items = [
            f"{_instant(column)} AS {quoted(column.name)}" for column in columns if column.type
        ]
        if self.windows is not None:
            items.append(quoted(WINDOW_NUMBER))
        return f"(SELECT {', '.join(items) or '1'} FROM {quoted(stream)})", columns

    def cte(self, cte: exp.CTE) -> tuple[str, tuple[Column, ...]]:
        if id(cte) not in self.known:
            within = cte.parent
            if cte.args["alias"].columns or (within is not None and within.args.get("recursive")):
                raise NotCoveredError("WITH RECURSIVE, or with names of columns")
            relation = self.query(cte.this)
            # Under a name of ours: in DuckDB it may not be that of a relation it reads.
            name = f"_with_{len(self.ctes) + 1}"
            self.ctes[name] = relation.sql
            self.known[id(cte)] = (quoted(name), relation.columns)
        return self.known[id(cte)]

    def sources(self, select: exp.Select) -> tuple[str, Scope]:
        start = select.args.get("from_")
        if start is None:
            raise NotCoveredError("a SELECT without FROM")
        sql, first = self.source(start.this)
        scope = Scope([first])
        for join in select.args.get("joins") or ():
            joined, scope = self.join(scope, join)
            sql += f" {joined}"
        return sql, scope

    def join(self, scope: Scope, join: exp.Join) -> tuple[str, Scope]:
        word = JOINS.get((join.side, join.kind))
        if word is None or join.method or join.args.get("match_condition"):
            said = (join.method, join.side, join.kind, "JOIN")
            raise NotCoveredError(" ".join(filter(None, said)))
        sql, source = self.source(join.this)
        if source.alias.lower() in {there.alias.lower() for there in scope.sources}:
            raise NotCoveredError(f"the alias {source.alias} twice")
        both = replace(scope, sources=[*scope.sources, source])
        using = [name.name for name in join.args.get("using") or ()]
        if using:
            met, merged = _using(scope, Scope([source]), using, join.side)
            both = replace(both, merged={**scope.merged, **merged})
        else:
            on = join.args.get("on")
            met = "" if on is None else condition(both, on)
        if word == "CROSS JOIN" and met:
            word = "INNER JOIN"
        if word == "INNER JOIN" and not met:
            word = "CROSS JOIN"
        if not met and word != "CROSS JOIN":
            raise NotCoveredError(f"{word} without a condition")
        text = f"{word} {sql} ON {met}" if met else f"{word} {sql}"
        return text, scope if word in ("SEMI JOIN", "ANTI JOIN") else both

    # ---- SELECT ----

    def select(self, select: exp.Select, *, top: bool) -> Relation:
        for name, value in select.args.items():
            if value and name not in CLAUSES:
                raise NotCoveredError(name.rstrip("_").upper())
        sql, scope = self.sources(select)
        windows = {window.name.lower(): window for window in select.args.get("windows") or ()}
        scope = replace(scope, windows=windows)
        where = select.args.get("where")
        filtered = f" WHERE {condition(scope, where.this)}" if where is not None else ""
        grouping, scope = self.groups(select, scope)
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise NotCoveredError("DISTINCT ON")
        items = [item for part in select.expressions for item in self.items(part, scope)]
        if distinct is not None:
            items = [(name, Typed(one_zero(value), value.type)) for name, value in items]
        if any(value.type == NULL for _, value in items):
            raise NotCoveredError("a column of nothing but NULL")
        names = [name or f"_c{place}" for place, (name, _) in enumerate(items)]
        written = ", ".join(
            f"{value.sql} AS {quoted(name)}" for name, (_, value) in zip(names, items, strict=True)
        )
        after = scope.with_aliases(
            {
                part.alias.lower(): scope.typed(part.this)
                for part in select.expressions
                if isinstance(part, exp.Alias)
            }
        )
        for clause in ("having", "qualify"):
            if (part := select.args.get(clause)) is not None:
                if clause == "qualify" and aggregates(part):
                    raise NotCoveredError("an aggregate in QUALIFY")
                grouping += f" {clause.upper()} {condition(after, part.this)}"
        order = self.order(select, names, after) if top else ""
        word = "SELECT DISTINCT" if distinct is not None else "SELECT"
        columns = tuple(
            Column(name, value.type) for name, (_, value) in zip(names, items, strict=True)
        )
        text = f"{word} {written} FROM {sql}{filtered}{grouping}{order}"
        if self.windows is not None and self.panes:
            text = in_panes(text, self.windows, self.statement.streams)
        return Relation(text, columns)

    def groups(self, select: exp.Select, scope: Scope) -> tuple[str, Scope]:
        group = select.args.get("group")
        if group is None:
            grouped = select.args.get("having") is not None
            grouped = grouped or any(aggregates(part) for part in own_parts(select))
            return "", scope.grouped({}) if grouped else scope
        for name, value in group.args.items():
            if value and name != "expressions":
                raise NotCoveredError(f"GROUP BY {name.upper().replace('_', ' ')}")
        keys: dict[str, Typed] = {}
        for part in group.expressions:
            value = scope.typed(_group_key(part, select, scope))
            keys[value.sql] = Typed(one_zero(value), value.type)
        written = [key.sql for key in keys.values()]
        if (windows := WindowKeys.of(self.statement, select, self.windows)) is not None:
            written, keys = windows.grouped(keys)
        return f" GROUP BY {', '.join(written)}", scope.grouped(keys)

    def items(self, part: exp.Expr, scope: Scope) -> list[tuple[str, Typed]]:
        """What one item of a select list stands for: its name and its value."""
        if not part.is_star:
            inner = part.this if isinstance(part, exp.Alias) else part
            return [(output_name(part), scope.typed(inner))]
        star = part.find(exp.Star)
        if scope.keys is not None or star is None or any(star.args.values()):
            raise NotCoveredError("* with GROUP BY, EXCEPT or REPLACE")
        qualifier = part.table.lower() if isinstance(part, exp.Column) else ""
        merged = {} if qualifier else scope.merged
        found = [
            (column.name, source.typed(column))
            for source in scope.sources
            if qualifier in ("", source.alias.lower())
            for column in source.columns
            if column.name.lower() not in merged
        ]
        return [*merged.items(), *found]

    def order(self, node: exp.Query, names: list[str], scope: Scope | None) -> str:
        order = node.args.get("order")
        if order is None:
            return ""
        lowered = [name.lower() for name in names]
        keys = []
        for key in order.expressions:
            by = key.this
            if isinstance(by, exp.Column) and not by.table and lowered.count(by.name.lower()) == 1:
                place = str(lowered.index(by.name.lower()) + 1)
            elif isinstance(by, exp.Literal) and by.is_int:
                place = by.name
            elif scope is not None and node.args.get("distinct") is None:
                place = scope.typed(by).sql
            else:
                raise NotCoveredError("ORDER BY something that is not selected")
            keys.append(f"{place}{direction(key)}")
        return f" ORDER BY {', '.join(keys)}"

    # ---- UNION ----

    def union(self, node: exp.Union, *, top: bool) -> Relation:
        for name, value in node.args.items():
            if value and name not in ("this", "expression", "distinct", "order", "with_"):
                raise NotCoveredError(f"UNION {name.upper().replace('_', ' ')}")
        left, right = self.query(node.this), self.query(node.expression)
        if len(left.columns) != len(right.columns):
            raise NotCoveredError("UNION of different numbers of columns")
        columns = []
        for one, other in zip(left.columns, right.columns, strict=True):
            kind = common(one.type or NULL, other.type or NULL)
            if kind is None or kind == NULL:
                raise NotCoveredError(f"UNION of {one.type:a} and {other.type:a}")
            columns.append(Column(one.name, kind))
        distinct = bool(node.args.get("distinct"))
        sides = (_as_columns(side, columns, distinct) for side in (left, right))
        word = " UNION " if distinct else " UNION ALL "
        names = [column.name for column in columns]
        order = self.order(node, names, None) if top else ""
        return Relation(f"{word.join(sides)}{order}", tuple(columns))


def _instant(column: Column) -> str:
    name = quoted(column.name)
    return f"make_timestamp(epoch_us({name}))" if column.type == TIMESTAMP else name


def _using(left: Scope, right: Scope, names: list[str], side: str) -> tuple[str, dict[str, Typed]]:
    """The condition that USING means, and the columns it makes one."""
    conditions, merged = [], {}
    for name in names:
        node = exp.column(name)
        values = (left.typed(node), right.typed(node))
        one, other = compared(*values, (node, node))
        conditions.append(f"{one.sql} = {other.sql}")
        kept = values[1] if side == "RIGHT" else values[0]
        if side == "FULL":
            one, other = together(*values)
            kept = Typed(f"COALESCE({one.sql}, {other.sql})", one.type)
        merged[name.lower()] = kept
    return " AND ".join(conditions), merged


def _group_key(part: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """What GROUP BY means by a place in the select list, or by an alias where no column has it."""
    meant = part
    if isinstance(part, exp.Literal) and part.is_int:
        place = int(part.name) - 1
        if not 0 <= place < len(select.expressions):
            raise NotCoveredError(f"GROUP BY {part.name}")
        meant = select.expressions[place]
    elif (
        isinstance(part, exp.Column)
        and not part.table
        and not any(source.find(part.name) for source in scope.sources)
    ):
        for column in select.expressions:
            if output_name(column).lower() == part.name.lower():
                meant = column
    return meant.this if isinstance(meant, exp.Alias) else meant


def _as_columns(side: Relation, columns: list[Column], distinct: bool) -> str:
    """One side of a UNION with the types of the whole."""
    source = Source("side", side.columns)
    items = []
    for mine, column in zip(side.columns, columns, strict=True):
        assert column.type is not None
        value = widened(source.typed(mine), column.type)
        items.append(f"{one_zero(value) if distinct else value.sql} AS {quoted(column.name)}")
    return f'SELECT {", ".join(items)} FROM ({side.sql}) AS "side"'
