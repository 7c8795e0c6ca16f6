"""Hopping windows in panes, in DuckDB: a row is counted once, not once in each of its windows.

A hopping window is a run of panes, pieces of time as long as the longest step that divides both the
size and the slide. Where all that a SELECT says of a group can be put together from parts (counts,
sums, averages, the least and the largest), the rows of every pane and key become one row first;
these few then stand in their windows. What is said of a group otherwise (distinct values,
percentiles) needs the rows themselves, and stays as it is.

>>> text = 'SELECT MAX("o"."x") AS "m" FROM (SELECT "x" AS "x", "_window_number" FROM "orders")'
>>> text += ' AS "o" GROUP BY "o"."_window_number"'
>>> in_panes(text, Windows(size=10, slide=10), ["orders"]) == text
True
>>> in_panes(text, Windows(size=10, slide=5), ["orders"]).split(" FROM ")[0]
'SELECT MAX("_parts"."_part_0") AS "m"'
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from tidegate.spark.duckdb_rules.registry import quoted
from tidegate.spark.shape import (
    BOUNDS,
    WINDOW_END,
    WINDOW_NUMBER,
    WINDOW_START,
    Windows,
    panes_of,
)

CLAUSES: Final = frozenset({"expressions", "from_", "where", "group", "having", "order"})
"""What a SELECT may have whose groups are put together from parts."""

ALIKE: Final = (exp.Sum, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr)
"""Aggregates of a whole that are the same aggregates of its parts."""

FINEST: Final = 20
"""A pane that is shorter than such a part of the slide holds few rows, and saves nothing."""

NAMED: Final = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
"""Words whose kind does not tell which one it is."""


def in_panes(text: str, windows: Windows, streams: Collection[str]) -> str:
    """A SELECT over hopping windows of one stream, put together from panes; else it stays as it is.

    What it selects from may be any query, and is left alone.
    """
    shared = windows.most > 1 and windows.slide // windows.pane <= FINEST
    if not shared or " GROUP BY " not in text:
        return text
    try:
        select = sqlglot.parse_one(text, dialect="duckdb")
        if not isinstance(select, exp.Select) or _words(_sql(select)) != _words(text):
            return text  # the parser would say something otherwise
        return _from_panes(select, windows, streams) or text
    except (SqlglotError, RecursionError):
        return text  # it reads less than DuckDB, and less deeply


def _from_panes(select: exp.Select, windows: Windows, streams: Collection[str]) -> str | None:
    """The same put together from panes; None where that cannot be."""
    frame = _frame(select, streams)
    group, where = select.args.get("group"), select.args.get("where")
    others = {*select.args} - CLAUSES
    if frame is None or group is None or any(select.args[name] for name in others):
        return None
    number = exp.column(WINDOW_NUMBER, table=frame.alias, quoted=True)
    keys = [key for key in group.expressions if key != number]
    if len(keys) == len(group.expressions) or any(map(_names_window, (*keys, where))):
        return None
    parts = _Parts(number, keys)
    said = [parts.told(item) for item in select.expressions]
    rest = [parts.told(select.args[name]) for name in ("having", "order") if select.args.get(name)]
    if any(_needs_rows(node, frame.alias) for node in (*said, *rest)):
        return None
    names = {_sql(key): f"_key_{place}" for place, key in enumerate(keys)}
    kept = {_sql(number): "_pane", **names, **parts.kept}
    of_panes = frame.transform(_by_pane)
    by_pane = (
        f"SELECT {', '.join(f'{sql} AS {quoted(name)}' for sql, name in kept.items())}"
        f" FROM {_sql(of_panes)}{'' if where is None else f' {_sql(where)}'}"
        f" GROUP BY {', '.join([_sql(number), *names])}"
    )
    steps = ", ".join(f"{n * windows.slide}" for n in range(windows.most))
    hops = (
        f'SELECT *, "_pane" - ("_pane" + {windows.lift(windows.slide)}) % {windows.slide}'
        f' - unnest([{steps}]) AS "_window" FROM ({by_pane})'
    )
    low, high = (f"(SELECT {bound} FROM {quoted(BOUNDS)})" for bound in ("low", "high"))
    groups = [_sql(_part(name)) for name in ("_window", *names.values())]
    return (
        f'SELECT {", ".join(map(_sql, said))} FROM ({hops}) AS "_parts"'
        f' WHERE "_window" + {windows.size} > "_pane" AND "_window" BETWEEN {low} AND {high}'
        f" GROUP BY {', '.join(groups)}{''.join(f' {_sql(clause)}' for clause in rest)}"
    )


@dataclass
class _Parts:
    """The groups of one SELECT, by pane: what they are grouped by, and what is kept of each."""

    number: exp.Expr
    keys: list[exp.Expr]
    kept: dict[str, str] = field(default_factory=dict)

    def told(self, node: exp.Expr) -> exp.Expr:
        """What is said of a group, said of its parts."""
        return node.transform(self._told)

    def _told(self, node: exp.Expr) -> exp.Expr:
        if node == self.number:
            return _part("_window")
        # What has no column in it is the same for parts; and TRUE may not be a name everywhere.
        if node in self.keys and node.find(exp.Column):
            return _part(f"_key_{self.keys.index(node)}")
        if not isinstance(node, exp.AggFunc) or node.find(exp.Distinct) or _names_window(node):
            return node
        if isinstance(node, exp.Count):
            return exp.cast(exp.Sum(this=self._kept(node)), "BIGINT", dialect="duckdb")
        if isinstance(node, exp.Avg):
            total, count = (self._kept(of(this=node.this.copy())) for of in (exp.Sum, exp.Count))
            return exp.paren(exp.Div(this=exp.Sum(this=total), expression=exp.Sum(this=count)))
        return type(node)(this=self._kept(node)) if isinstance(node, ALIKE) else node

    def _kept(self, node: exp.Expr) -> exp.Column:
        """What is kept of a pane, under a name; the same is kept once."""
        return _part(self.kept.setdefault(_sql(node), f"_part_{len(self.kept)}"))


def _frame(select: exp.Select, streams: Collection[str]) -> exp.Subquery | None:
    """The rows of one stream in their windows, if that is what is selected from."""
    start = select.args.get("from_")
    found = start.this if start is not None else None
    if not isinstance(found, exp.Subquery) or not isinstance(found.this, exp.Select):
        return None
    inner = found.this.args.get("from_")
    columns = [column.alias_or_name for column in found.this.expressions]
    of_stream = inner is not None and inner.this.name in streams
    return found if of_stream and columns[-1:] == [WINDOW_NUMBER] else None


def _by_pane(node: exp.Expr) -> exp.Expr:
    return exp.to_table(quoted(panes_of(node.name))) if isinstance(node, exp.Table) else node


def _names_window(node: exp.Expr | None) -> bool:
    """Whether it looks at the window that a row stands in: a pane has several."""
    windows = (WINDOW_NUMBER, WINDOW_START, WINDOW_END)
    return node is not None and any(c.name in windows for c in node.find_all(exp.Column))


def _needs_rows(node: exp.Expr, alias: str) -> bool:
    """Whether something is left that is said of rows, and not of parts."""
    return (
        node.find(exp.Filter, exp.Window, exp.Query, exp.Distinct) is not None
        or any(column.table == alias for column in node.find_all(exp.Column))
        or any(not isinstance(one.this, exp.Column) for one in node.find_all(exp.AggFunc))
    )


def _part(name: str) -> exp.Column:
    return exp.column(name, table="_parts", quoted=True)


def _words(text: str) -> list[tuple[TokenType, str]]:
    """A text as its words: a type may be spelled in several ways, and functions in either case."""
    found = sqlglot.tokenize(text.replace(" NULLS LAST", ""), dialect="duckdb")  # so it is anyway
    return [
        (word.token_type, word.text.lower() if word.token_type in NAMED else "") for word in found
    ]


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", normalize_functions=False)
