"""Whether a query may be divided by key range: every group has all its rows in one range.

That is so when it reads one stream, and whatever looks at several rows at once (GROUP BY, OVER,
DISTINCT) does so by all columns of the stream's routing key.

>>> statement = Statement.parse("SELECT item, count(*) FROM orders GROUP BY item", ["orders"])
>>> divides_by_key(statement, {"orders": ("item",)}), divides_by_key(statement, {"orders": ("id",)})
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from tidegate.spark.query_parts import aggregates
from tidegate.spark.sql_text import Statement


def divides_by_key(statement: Statement, routing_keys: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether no group of the query spans two key ranges; in doubt it is not so."""
    tree = statement.tree
    # In a subquery the name of the key may stand for something else.
    if any(len(list(tree.find_all(kind))) != 1 for kind in (exp.Table, exp.Select)):
        return False
    if len(statement.streams) != 1:
        return False
    key = {column.lower() for column in routing_keys.get(statement.streams[0], ())}
    if not key:
        return False
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        if group is not None:
            if (
                group.args.get("grouping_sets")
                or group.args.get("rollup")
                or group.args.get("cube")
            ):
                return False
            if not key <= _names(group.expressions):
                return False
        elif any(aggregates(part) for part in select.expressions):
            return False
        if select.args.get("distinct") and not key <= _names(select.expressions):
            return False
    return all(
        key <= _names(window.args.get("partition_by") or ()) for window in tree.find_all(exp.Window)
    )


def _names(parts: Iterable[exp.Expression]) -> set[str]:
    """The plain columns among them."""
    return {part.name.lower() for part in parts if isinstance(part, exp.Column)}
