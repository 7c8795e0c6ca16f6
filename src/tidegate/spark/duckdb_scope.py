"""What the names of one SELECT mean, and its expressions in DuckDB's SQL.

Every column is written with its qualifier, so that no alias of DuckDB's choosing can come between.
In a SELECT with groups an expression is either one of the keys, or made of keys and aggregates.

>>> from sqlglot import parse_one
>>> from tidegate.spark.duckdb_rules.types import DOUBLE, INTEGER
>>> scope = Scope([Source("o", (Column("n", INTEGER), Column("x", DOUBLE)))])
>>> scope.typed(parse_one("n + x", dialect="spark")).sql
'(CAST("o"."n" AS DOUBLE) + "o"."x")'
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from sqlglot import exp

from tidegate.spark.duckdb_rules import aggregates, casts, functions, operators, time_functions
from tidegate.spark.duckdb_rules.registry import (
    Aggregate,
    NotCoveredError,
    Typed,
    quoted,
    rule_of,
)
from tidegate.spark.duckdb_rules.types import DOUBLE, INTEGER, SparkType
from tidegate.spark.query_parts import aggregates as has_aggregates
from tidegate.spark.query_parts import function_name, windows_in

RANKS: Final = {
    "row_number": INTEGER,
    "rank": INTEGER,
    "dense_rank": INTEGER,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
}
"""Functions of a row's place in its partition."""

REGISTERED: Final = (operators, casts, functions, time_functions, aggregates)
"""The rooms of the rules; to import them is to register what they know."""


class Column(NamedTuple):
    """A column of a relation; without a type it cannot be used."""

    name: str
    type: SparkType | None


@dataclass(frozen=True)
class Source:
    """A relation in FROM under its alias."""

    alias: str
    columns: tuple[Column, ...]

    def find(self, name: str) -> list[Typed]:
        """The columns of that name, whatever its case."""
        found = [column for column in self.columns if column.name.lower() == name.lower()]
        return [self.typed(column) for column in found]

    def typed(self, column: Column) -> Typed:
        """A column, written with its qualifier."""
        if column.type is None:
            raise NotCoveredError(f'the type of column "{column.name}"')
        return Typed(f"{quoted(self.alias)}.{quoted(column.name)}", column.type)


@dataclass(frozen=True)
class Scope:
    """The relations of a SELECT, what USING made one, and the keys it is grouped by, if it is."""

    sources: list[Source] = field(default_factory=list)
    merged: dict[str, Typed] = field(default_factory=dict)
    keys: dict[str, Typed] | None = None
    aliases: dict[str, Typed] = field(default_factory=dict)
    windows: dict[str, exp.Window] = field(default_factory=dict)

    def grouped(self, keys: dict[str, Typed]) -> Scope:
        """The same names behind GROUP BY."""
        return replace(self, keys=keys)

    def with_aliases(self, aliases: dict[str, Typed]) -> Scope:
        """The same names, and those of the select list where no column has them."""
        return replace(self, aliases=aliases)

    def plain(self) -> Scope:
        """The same names before GROUP BY."""
        return replace(self, keys=None)

    def typed(self, node: exp.Expr) -> Typed:
        """An expression of this SELECT."""
        if isinstance(node, exp.Window):
            return self.over(node)
        if isinstance(node, exp.Filter):
            met = operators.condition(self.plain(), node.expression.this)
            return self.aggregate(node.this, met, "")
        if self.keys is not None and (key := self.key(node)) is not None:
            return key
        if isinstance(node, exp.Column):
            return self.column(node)
        rule = rule_of(node)
        if rule.group is not None:
            return self.aggregate(node, "", "")
        assert rule.row is not None
        return rule.row(self, node)

    def key(self, node: exp.Expr) -> Typed | None:
        """The key that an expression is, if it is one."""
        assert self.keys is not None
        if has_aggregates(node) or any(windows_in(node)):
            return None
        return self.keys.get(self.plain().typed(node).sql)

    def column(self, node: exp.Column) -> Typed:
        """A column by its name; of several, or of none, there is no translation."""
        if node.args.get("db") or not isinstance(node.this, exp.Identifier):
            raise NotCoveredError(f"the name {node.sql(dialect='spark')}")
        found = [
            typed
            for source in self.sources
            if not node.table or source.alias.lower() == node.table.lower()
            for typed in source.find(node.name)
        ]
        name = node.name.lower()
        if not node.table and name in self.merged:
            found = [self.merged[name]]
        alias = self.aliases.get(name) if not node.table else None
        if alias is not None and (not found or found[0] == alias):
            return alias
        if alias is not None:
            raise NotCoveredError(f'the name "{node.name}", which is a column and an alias')
        if len(found) != 1:
            raise NotCoveredError(f'the name "{node.name}", which could mean {len(found)} columns')
        if self.keys is not None and self.keys.get(found[0].sql) is None:
            raise NotCoveredError(f'column "{node.name}", which is neither grouped nor aggregated')
        return found[0]

    def aggregate(self, node: exp.Expr, condition: str, over: str) -> Typed:
        """An aggregate; what it is given are rows before GROUP BY, or groups under OVER."""
        rule = rule_of(node)
        if rule.group is None:
            raise NotCoveredError("FILTER on something that is no aggregate")
        if not over and self.keys is None:
            raise NotCoveredError("an aggregate where no group is")
        return rule.group(Aggregate(self if over else self.plain(), condition, over), node)

    # ---- OVER ----

    def over(self, node: exp.Window) -> Typed:
        """A function with OVER."""
        clause = f" OVER ({self.frame(node)})"
        function = node.this
        name = function_name(function) if isinstance(function, exp.Func) else ""
        if name in RANKS and not any(function.iter_expressions()):
            kind = RANKS[name]
            return Typed(f"CAST({name.upper()}(){clause} AS {kind.duckdb})", kind)
        if isinstance(function, exp.Lag | exp.Lead):
            return self.neighbour(function, clause)
        condition = ""
        if isinstance(function, exp.Filter):
            condition = operators.condition(self, function.expression.this)
            function = function.this
        return self.aggregate(function, condition, clause)

    def neighbour(self, node: exp.Lag | exp.Lead, clause: str) -> Typed:
        """LAG or LEAD by a fixed number of rows."""
        value = self.typed(node.this)
        asked = node.args.get("offset")
        step = 1 if asked is None else functions.whole_literal(asked)
        if step is None or step < 0:
            raise NotCoveredError("LAG or LEAD by a number that is not a literal")
        given = f"{value.sql}, {step}"
        if (default := node.args.get("default")) is not None:
            given += f", {casts.widened(self.typed(default), value.type).sql}"
        name = "LAG" if isinstance(node, exp.Lag) else "LEAD"
        return Typed(f"{name}({given}){clause}", value.type)

    def frame(self, node: exp.Window) -> str:
        """What stands between the parentheses of OVER."""
        if (base := node.args.get("alias")) is not None:
            named = self.windows.get(base.name.lower())
            if named is None or node.args.get("partition_by") or node.args.get("order"):
                raise NotCoveredError("OVER a window made of another")
            return self.frame(named)
        by = [self.typed(part) for part in node.args.get("partition_by") or ()]
        parts = [f"PARTITION BY {', '.join(part.sql for part in by)}"] if by else []
        if (order := node.args.get("order")) is not None:
            keys = (f"{self.typed(key.this).sql}{direction(key)}" for key in order.expressions)
            parts.append(f"ORDER BY {', '.join(keys)}")
        if (spec := node.args.get("spec")) is not None:
            parts.append(self.bounds(spec))
        return " ".join(parts)

    def bounds(self, spec: exp.WindowSpec) -> str:
        """The frame: rows by number, or a range up to its ends."""
        kind = spec.args.get("kind") or "ROWS"
        if spec.args.get("exclude"):
            raise NotCoveredError("EXCLUDE in a frame")
        sides = []
        for name, default in (("start", "UNBOUNDED"), ("end", "CURRENT ROW")):
            at, side = spec.args.get(name) or default, spec.args.get(f"{name}_side") or ""
            if isinstance(at, exp.Expr):
                many = functions.whole_literal(at)
                if many is None or many < 0 or kind != "ROWS":
                    raise NotCoveredError(f"a frame of {kind} by a value")
                at = str(many)
            sides.append(f"{at} {side}".strip())
        return f"{kind} BETWEEN {sides[0]} AND {sides[1]}"


def direction(key: exp.Ordered) -> str:
    """The direction of a sort key, and where its nulls go: first when rising, unless it is said."""
    down = " DESC" if key.args.get("desc") else " ASC"
    return f"{down} NULLS {'FIRST' if key.args.get('nulls_first') else 'LAST'}"
