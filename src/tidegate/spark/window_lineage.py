"""Which columns of a query still are the window's, through aliases, joins and subqueries.

A frame of a windowed job has `_window_start` and `_window_end`. A column that is one of them,
under whatever name, is a window column; it counts as a key only where it is never null: the
unmatched side of an outer join has lost its window, and COALESCE over both sides has it again.

>>> from sqlglot import parse_one
>>> left, right = Source.stream("a"), Source.stream("b")
>>> scope = Scope([left, right], covers=[frozenset({"a"})])  # a LEFT JOIN b
>>> def key(text: str) -> str | None:
...     return scope.key(parse_one(text, dialect="spark"))
>>> key("a._window_end"), key("b._window_end"), key("coalesce(b._window_end, a._window_end)")
('end', None, 'end')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlglot import exp

WINDOW_START: Final = "_window_start"
WINDOW_END: Final = "_window_end"
EVENT_TIME: Final = "_event_time"

START: Final = "start"
END: Final = "end"

SAME_IN_A_GROUP: Final = exp.Min | exp.Max | exp.First | exp.Last | exp.AnyValue
"""What these make of a window column, where the group lies in one window, is that column."""


class Output(NamedTuple):
    """A column that a relation gives out: its name in lower case, and which border it is."""

    name: str
    kind: str | None = None


@dataclass(frozen=True)
class Shape:
    """What is known of a relation's columns: an `open` one has more, which we do not know."""

    outputs: tuple[Output, ...]
    from_stream: bool
    open: bool = False

    def kinds(self) -> dict[str, str]:
        """The window columns."""
        return {output.name: output.kind for output in self.outputs if output.kind is not None}


STREAM: Final = Shape(
    (Output(WINDOW_START, START), Output(WINDOW_END, END), Output(EVENT_TIME)), True, open=True
)
CONSTANT: Final = Shape((), False, open=True)


@dataclass(frozen=True)
class Source:
    """A relation in a FROM clause, by the name it goes by there."""

    alias: str
    shape: Shape

    @classmethod
    def stream(cls, alias: str) -> Source:
        """A frame of the job."""
        return cls(alias, STREAM)


@dataclass
class Scope:
    """The relations that the names of one SELECT can mean.

    `covers` are sets of sources of which at least one is there in every row; `merged` the columns
    that USING has made one.
    """

    sources: list[Source] = field(default_factory=list)
    covers: list[frozenset[str]] = field(default_factory=list)
    merged: dict[str, frozenset[str]] = field(default_factory=dict)
    outer: Scope | None = None

    def from_stream(self) -> bool:
        """Whether any of them has rows of a stream."""
        return any(source.shape.from_stream for source in self.sources)

    def window_column(self, node: exp.Expr | None) -> tuple[str, frozenset[str]] | None:
        """Which border an expression is, and of which sources; None if of none."""
        if isinstance(node, exp.Paren | exp.Alias | SAME_IN_A_GROUP):
            return self.window_column(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Coalesce):
            parts = [self.window_column(part) for part in (node.this, *node.expressions)]
            found = [part for part in parts if part is not None]
            if len(found) == len(parts) and len({kind for kind, _ in found}) == 1:
                return found[0][0], frozenset().union(*(sources for _, sources in found))
        return None

    def key(self, node: exp.Expr | None) -> str | None:
        """Which border an expression is in every row, never null."""
        found = self.window_column(node)
        if found is None or not any(cover <= found[1] for cover in self.covers):
            return None
        return found[0]

    def star(self, qualifier: str, without: frozenset[str]) -> Iterator[Output]:
        """What `*` or `qualifier.*` stands for."""
        for source in self.sources:
            if qualifier and source.alias != qualifier:
                continue
            there = any(cover <= {source.alias} for cover in self.covers)
            for name, kind in source.shape.outputs:
                merged = not qualifier and self.merged.get(name, frozenset()) & {source.alias}
                if name not in without:
                    yield Output(name, kind if there or merged else None)

    def _column(self, node: exp.Column) -> tuple[str, frozenset[str]] | None:
        name, qualifier = node.name.lower(), node.table.lower()
        having = [
            (source.shape.kinds()[name], source.alias)
            for source in self.sources
            if name in source.shape.kinds() and qualifier in ("", source.alias)
        ]
        if not having:
            return None
        if not qualifier and name in self.merged:
            return having[0][0], self.merged[name]
        # Of several, Spark will say itself that the name is ambiguous.
        return having[0][0], frozenset({having[0][1]})


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that must all hold."""
    if isinstance(node, exp.Where | exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    elif node is not None:
        yield node


def equated(
    left: Scope, right: Scope, conditions: Sequence[exp.Expr], *, hides: bool = False
) -> bool:
    """Whether some condition makes a window column of one scope equal to that of the other.

    With `hides`, a name that means something in the left scope is not looked for in the right one.
    """
    for condition in conditions:
        if not isinstance(condition, exp.EQ):
            continue
        one, other = condition.this, condition.expression
        for near, far in ((one, other), (other, one)):
            here, there = left.window_column(near), right.window_column(far)
            if hides and left.window_column(far) is not None:
                continue
            if here is not None and there is not None and here[0] == there[0]:
                return True
    return False
