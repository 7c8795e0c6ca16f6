"""The text of a query, parsed once: which streams it reads, and how each kernel gets it.

A query is one SELECT in Spark's SQL over names of streams. Nothing in it is rewritten but those
names, and they are replaced in the text itself at the places the parsed tree gives: what Spark
reads is what the user wrote. Names are found as Spark finds them, without regard to case, and a
common table expression hides a stream of the same name from where it is defined onwards.

>>> statement = Statement.parse("SELECT o.item, '{}' AS b FROM orders o", ["orders", "payments"])
>>> statement.streams, sorted(statement.columns_used("orders") or ())
(('orders',), ['item', 'o'])
>>> statement.for_spark()
"SELECT o.item, '{{}}' AS b FROM {orders} o"
>>> Statement.parse("SELECT count(*) FROM orders", ["orders"]).for_spark()
'SELECT count(*) FROM {orders} AS `orders`'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from tidegate import errors

TAKEN: Final = frozenset({"self", "sqlQuery", "args"})
"""Names of arguments that `SparkSession.sql` keeps for itself."""

_STREAM: Final = "tidegate_stream"
_CTE: Final = "tidegate_cte"


@dataclass(frozen=True, eq=False)
class Statement:
    """One parsed query. `tree` belongs to it: look, and change a copy."""

    text: str
    tree: exp.Query
    streams: tuple[str, ...]
    """The streams it reads, in the order of the text."""

    @classmethod
    def parse(cls, text: str, streams: Sequence[str]) -> Statement:
        """Read a query over some of `streams`; an error shows the place in the text."""
        tree = _parsed(text)
        read: dict[int, str] = {}
        for table in tree.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or table.find_ancestor(exp.Hint):
                continue  # a table function, or a hint that speaks of an alias
            if (cte := _visible_cte(table)) is not None:
                table.meta[_CTE] = cte
                continue
            name = ".".join(part.name for part in table.parts)
            if (stream := _known(name, streams)) is None:
                line, column = _place(text, _start(table))
                raise errors.unknown_stream_in_query(name, streams, line=line, column=column)
            table.meta[_STREAM] = stream
            read[_start(table)] = stream
        in_order = dict.fromkeys(read[start] for start in sorted(read))
        return cls(text, tree, tuple(in_order))

    @staticmethod
    def stream_of(table: exp.Table) -> str | None:
        """The stream that a table of the tree stands for, if it stands for one."""
        return table.meta.get(_STREAM)

    @staticmethod
    def cte_of(table: exp.Table) -> exp.CTE | None:
        """The common table expression that a table of the tree stands for, if any."""
        return table.meta.get(_CTE)

    @property
    def arguments(self) -> dict[str, str]:
        """What each stream is called among the arguments of `for_spark`: its name if it can be."""
        free = {name for name in self.streams if name.isidentifier() and name not in TAKEN}
        return {
            name: name if name in free else _unused(f"stream_{place}", free)
            for place, name in enumerate(self.streams)
        }

    def for_spark(self) -> str:
        """The text for `spark.sql(text, **frames)`, the frames named as in `arguments`."""
        arguments, pieces, done = self.arguments, [], 0
        for table in sorted(self._stream_tables(), key=_start):
            start, end = _start(table), table.parts[-1].meta["end"] + 1
            stream = table.meta[_STREAM]
            pieces += [_braces_doubled(self.text[done:start]), f"{{{arguments[stream]}}}"]
            # An alias follows a sample, whose end the tree does not know: that one stays bare.
            if not table.args.get("alias") and not table.args.get("sample"):
                alias = table.name.replace("`", "``")
                pieces.append(f" AS `{_braces_doubled(alias)}`")
            done = end
        return "".join([*pieces, _braces_doubled(self.text[done:])])

    def columns_used(self, stream: str) -> frozenset[str] | None:
        """The names, in lower case, that a column must have to be touched; None: any may be.

        It errs on the side of reading more: a name without a qualifier counts for every stream,
        and a qualifier counts as a name too, for it may be a column with fields.
        """
        tables = [table for table in self._stream_tables() if table.meta[_STREAM] == stream]
        if any(_takes_all(table) for table in tables):
            return None
        ours = {table.alias_or_name.lower() for table in tables}
        others = {
            source.alias_or_name.lower()
            for source in self.tree.find_all(exp.Table, exp.Subquery)
            if not any(source is table for table in tables)
        }
        names: set[str] = set()
        for column in self.tree.find_all(exp.Column):
            qualifier = column.table.lower()
            if not qualifier or qualifier not in others - ours:
                names.add(column.name.lower())
            names |= {part.name.lower() for part in column.parts[:-1]}
        for join in self.tree.find_all(exp.Join):
            names |= {using.name.lower() for using in join.args.get("using") or ()}
        return frozenset(names)

    def fragment(self, node: exp.Expr, most: int = 60) -> str:
        """A node in Spark's SQL, cut short, for an error text."""
        said = node.sql(dialect="spark")
        return said if len(said) <= most else f"{said[: most - 3]}..."

    def _stream_tables(self) -> Iterator[exp.Table]:
        return (table for table in self.tree.find_all(exp.Table) if _STREAM in table.meta)


def _parsed(text: str) -> exp.Query:
    try:
        tokens = sqlglot.tokenize(text, dialect="spark")
        # The parser folds pipes into one SELECT and forgets their order.
        if any(token.token_type.name == "PIPE_GT" for token in tokens):
            raise errors.not_one_query("a chain of |>")
        trees = [tree for tree in sqlglot.parse(text, dialect="spark") if tree is not None]
    except ParseError as wrong:
        first = wrong.errors[0]
        line, column, found = first["line"], first["col"], first["highlight"]
        near = f"{first['start_context']}{found}"[-40:].strip()
        raise errors.query_not_parsed(
            first["description"] or str(wrong), near, line=line, column=column
        ) from None
    except TokenError:
        line, column = _place(text, len(text))
        raise errors.query_not_parsed(
            "a quote or a comment is not closed", text[-40:].strip(), line=line, column=column
        ) from None
    if len(trees) != 1:
        raise errors.not_one_query(f"{len(trees)} statements" if trees else "nothing")
    tree = trees[0]
    while isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
        tree = tree.this
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise errors.not_one_query(tree.key.upper())
    return tree


def _visible_cte(table: exp.Table) -> exp.CTE | None:
    """The definition that a name means at this place, if it means one."""
    if table.args.get("db"):
        return None
    wanted = table.name.lower()
    inside: exp.Expr = table
    while (outer := inside.parent) is not None:
        if isinstance(outer, exp.With):
            # Among its own: what stands before it, and itself when the list is recursive.
            before = outer.expressions[: inside.index or 0]
            visible = [*before, inside] if outer.args.get("recursive") else before
        else:
            within = outer.args.get("with_")
            visible = within.expressions if within is not None and within is not inside else []
        for cte in reversed(visible):
            if isinstance(cte, exp.CTE) and cte.alias.lower() == wanted:
                return cte
        inside = outer
    return None


def _known(name: str, streams: Sequence[str]) -> str | None:
    """The stream of that name, or the only one that differs from it by case alone."""
    if name in streams:
        return name
    alike = [stream for stream in streams if stream.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _takes_all(table: exp.Table) -> bool:
    """Whether a star, or a join by all equal names, can reach every column of this table."""
    select = table.find_ancestor(exp.Select)
    if select is None or table.args.get("pivots") or select.args.get("pivots"):
        return True
    if any(join.method == "NATURAL" for join in select.args.get("joins") or ()):
        return True
    return any(
        not isinstance(star.parent, exp.Count)
        and star.find_ancestor(exp.Select) is select
        and not _of_another(star, table)
        for star in select.find_all(exp.Star)
    )


def _of_another(star: exp.Star, table: exp.Table) -> bool:
    """Whether a star is qualified by a name that is not this table's."""
    column = star.parent
    if not isinstance(column, exp.Column) or not column.table:
        return False
    return column.table.lower() != table.alias_or_name.lower()


def _start(table: exp.Table) -> int:
    start: int = table.parts[0].meta["start"]
    return start


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _braces_doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
