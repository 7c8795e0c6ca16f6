"""A rule per kind of node: how it is written for DuckDB, and what the reference says of it.

What has no rule is outside the subset, and so is what a rule does not know: an argument it has not
named, a type it has not been tested with. Both kernels then give the same answer by taking the
same one, Spark.

>>> from tidegate.spark.duckdb_rules.types import INTEGER
>>> Typed('"o"."x"', INTEGER).sql
'"o"."x"'
>>> Outside("function EXP").reason
'function EXP'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from sqlglot import exp

from tidegate.spark.duckdb_rules.types import SparkType


class Typed(NamedTuple):
    """A piece of DuckDB's SQL with its type in Spark; `number` is the text of a bare number."""

    sql: str
    type: SparkType
    number: str | None = None


@dataclass(frozen=True)
class Outside:
    """Why a query is not in the tested subset."""

    reason: str


class NotCoveredError(Exception):
    """Raised while translating; the reason ends in an `Outside`."""


class Translator(Protocol):
    """What a rule may ask of whoever applies it."""

    def typed(self, node: exp.Expr) -> Typed:
        """An expression in the place where the rule stands."""
        ...


class Aggregate(NamedTuple):
    """Where an aggregate stands: what is counted in (`given`), and its OVER if it has one."""

    translator: Translator
    condition: str
    over: str

    def given(self, node: exp.Expr) -> Typed:
        """An argument, null in the rows that FILTER leaves out."""
        value = self.translator.typed(node)
        if not self.condition:
            return value
        # Not FILTER: there DuckDB computes the argument first, and may fail on a row left out.
        return Typed(f"CASE WHEN {self.condition} THEN {value.sql} END", value.type)


RowRule = Callable[[Translator, "exp.Expr"], Typed]
GroupRule = Callable[[Aggregate, "exp.Expr"], Typed]


@dataclass(frozen=True)
class Rule:
    """One line of the subset: what is written, on what it works, and how."""

    section: str
    says: str
    note: str
    arguments: frozenset[str]
    row: RowRule | None = None
    group: GroupRule | None = None


RULES: Final[dict[type[exp.Expr] | str, Rule]] = {}
"""By the class of a node, or by the name of a function that the parser does not know."""

HARMLESS: Final = frozenset({"this", "expression", "expressions", "big_int", "safe"})


def row_rule(
    section: str, says: str, *nodes: type[exp.Expr] | str, note: str = "", more: str = ""
) -> Callable[[RowRule], RowRule]:
    """Register how a function of a row is written; `more` names further arguments it knows."""

    def register(function: RowRule) -> RowRule:
        rule = Rule(section, says, note, HARMLESS | set(more.split()), row=function)
        RULES.update(dict.fromkeys(nodes, rule))
        return function

    return register


def group_rule(
    says: str, *nodes: type[exp.Expr] | str, note: str = "", more: str = ""
) -> Callable[[GroupRule], GroupRule]:
    """Register how an aggregate is written."""

    def register(function: GroupRule) -> GroupRule:
        rule = Rule("Aggregates", says, note, HARMLESS | set(more.split()), group=function)
        RULES.update(dict.fromkeys(nodes, rule))
        return function

    return register


def rule_of(node: exp.Expr) -> Rule:
    """The rule for a node; a reason if there is none, or if it has an argument nobody knows."""
    named = isinstance(node, exp.Anonymous)
    rule = RULES.get(node.name.lower() if named else type(node))
    if rule is None:
        raise NotCoveredError(described(node))
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in rule.arguments:
            raise NotCoveredError(f"{described(node)} with {name.rstrip('_')}")
    return rule


def described(node: exp.Expr) -> str:
    """What a node is, in the words of the text."""
    if isinstance(node, exp.Anonymous):
        return f"function {node.name.upper()}"
    if isinstance(node, exp.Func):
        return f"function {node.sql(dialect='spark').partition('(')[0].upper()}"
    return type(node).__name__.upper()


def quoted(name: str) -> str:
    """A name for DuckDB."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def text_literal(text: str) -> str:
    """A string for DuckDB."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
