"""Queries drawn from the whole subset: expressions by type, in every place a query has.

The same seed gives the same queries. Only what both kernels must answer alike is drawn: a sum of
doubles stands in a column whose name begins with `r_`, and no order is left to chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable

WINDOW = "_window_end"
LITERALS = ("''", "'é'", "'xy'")
PATTERNS = ("'a%'", "'_'", "'%b%'")
TEXTABLE = ("i", "l", "b", "y", "t", "m")
UNITS = ("YEAR", "WEEK", "DAY", "HOUR", "SECOND")


class QueryMaker:
    """Draws expressions over the columns of a frame; `q` is the qualifier they are written with."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.q = ""

    def one(self, *choices: str) -> str:
        return self.draw.choice(choices)

    def pick(self, *makers: Callable[[], str]) -> str:
        return self.draw.choice(makers)()

    def column(self, *names: str) -> str:
        return self.q + self.one(*names)

    # ---- expressions by type ----

    def whole(self, depth: int = 2) -> str:
        """An int or a bigint, small enough that a product of two of them is a bigint."""
        if depth == 0:
            return self.pick(
                lambda: self.column("i", "k", "l", "id"), lambda: self.one("0", "1", "-3", "7L")
            )
        w, s, t, d = self.whole, self.text, self.time, depth - 1
        return self.pick(
            lambda: self.whole(0),
            lambda: f"({w(0)} {self.one('+', '-')} {w(0)})",
            lambda: f"({self.column('i', 'k')} * {self.one('2', '-5', '1L')})",
            lambda: f"({w(d)} div {self.one('2', '-3', '7L')})",
            lambda: f"({w(d)} % {self.one('2', '-3', '7L')})",
            lambda: f"abs({self.column('i', 'l')})",
            lambda: f"length({s(d)})",
            lambda: f"instr({s(d)}, 'a')",
            lambda: f"{self.one('year', 'month', 'day', 'hour', 'dayofweek', 'weekofyear')}({t()})",
            lambda: f"unix_{self.one('micros', 'millis', 'seconds')}({t()})",
            lambda: f"datediff({self.day()}, {self.day()})",
            lambda: f"CAST({self.column('x')} AS {self.one('INT', 'BIGINT')})",
            lambda: f"CAST({self.truth(d)} AS INT)",
            lambda: f"floor({self.column('x', 'i')})",
            lambda: self.choice(w, d),
        )

    def floating(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(
                lambda: self.column("d", "x", "f"), lambda: self.one("0.5D", "-2e0", "1.5")
            )
        d = depth - 1
        return self.pick(
            lambda: f"({self.column('d', 'x')} {self.one('+', '-', '*')} {self.floating(0)})",
            lambda: f"({self.column('f')} + {self.floating(0)})",
            lambda: f"({self.whole(0)} / {self.one('2', '-3', '0.5D')})",
            lambda: f"({self.column('d')} % {self.one('2', '1.5D')})",
            lambda: f"sqrt({self.column('d', 'i')})",
            lambda: f"round({self.column('d', 'x')})",
            lambda: f"CAST({self.whole(d)} AS DOUBLE)",
            lambda: f"-{self.column('d', 'f')}",
            lambda: self.choice(lambda _: self.column("d", "x"), d),
        )

    def exact(self, depth: int = 1) -> str:
        """A decimal."""
        return self.pick(
            lambda: self.column("m"),
            lambda: (
                f"({self.column('m')} {self.one('+', '-', '*')} {self.one('1', '2.5', '-0.05')})"
            ),
            lambda: f"({self.column('m')} + {self.column('m', 'i', 'l')})",
            lambda: f"round({self.column('m')}, {self.one('0', '1')})",
            lambda: f"CAST({self.column('i', 'k')} AS DECIMAL(12, 2))",
            lambda: f"abs({self.column('m')})",
            lambda: self.choice(lambda _: self.column("m"), depth),
        )

    def place(self) -> str:
        return self.one("0", "1", "2", "-1", "-3")

    def text(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(lambda: self.column("s"), lambda: self.one("''", "'a'", "'é日'"))
        d = depth - 1
        return self.pick(
            lambda: self.text(0),
            lambda: f"({self.text(d)} || {self.text(d)})",
            lambda: f"concat_ws('-', {self.text(d)}, {self.text(d)})",
            lambda: f"substring({self.text(d)}, {self.place()}, {self.one('1', '2', '9')})",
            lambda: f"substring({self.text(d)}, {self.place()})",
            lambda: f"{self.one('left', 'right')}({self.text(d)}, {self.place()})",
            lambda: f"{self.one('trim', 'ltrim', 'rtrim')}({self.text(d)})",
            lambda: f"replace({self.text(d)}, 'a', {self.one(*LITERALS)})",
            lambda: f"CAST({self.column(*TEXTABLE)} AS STRING)",
            lambda: self.choice(self.text, depth - 1),
        )

    def time(self) -> str:
        return self.pick(
            lambda: self.column("t", "_event_time", WINDOW),
            lambda: f"date_trunc('{self.one(*UNITS)}', {self.column('t')})",
            lambda: f"({self.column('t')} + INTERVAL {self.one('5 SECONDS', '-7 HOURS')})",
            lambda: f"CAST({self.column('y')} AS TIMESTAMP)",
            lambda: f"timestamp_seconds({self.column('i')})",
        )

    def day(self) -> str:
        return self.pick(
            lambda: self.column("y"),
            lambda: "DATE '2024-02-29'",
            lambda: f"to_date({self.column('t')})",
            lambda: f"date_add({self.column('y')}, {self.one('1', '-2', self.q + 'k')})",
            lambda: f"trunc({self.column('y')}, '{self.one('YEAR', 'MM', 'WEEK')}')",
            lambda: f"last_day({self.column('y')})",
        )

    def truth(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(lambda: self.column("b"), lambda: f"{self.column('k')} = 1")
        d = depth - 1
        compare = self.one("=", "<>", "<", "<=", ">", ">=", "<=>")
        return self.pick(
            lambda: self.truth(0),
            lambda: f"({self.whole(d)} {compare} {self.whole(d)})",
            lambda: f"({self.floating(d)} {compare} {self.floating(0)})",
            lambda: f"({self.text(d)} {compare} {self.text(0)})",
            lambda: f"({self.exact()} {compare} {self.pick(self.exact, lambda: self.whole(0))})",
            lambda: f"({self.time()} {compare} {self.pick(self.time, self.day)})",
            lambda: f"({self.truth(d)} {self.one('AND', 'OR')} {self.truth(d)})",
            lambda: f"(NOT {self.truth(d)})",
            lambda: f"({self.any_value(d)} IS {self.one('', 'NOT ')}NULL)",
            lambda: f"({self.text(d)} LIKE {self.one(*PATTERNS)})",
            lambda: f"({self.whole(0)} {self.one('', 'NOT ')}IN (1, 2, {self.one('NULL', '7')}))",
            lambda: f"({self.whole(d)} BETWEEN {self.whole(0)} AND {self.whole(0)})",
            lambda: f"isnan({self.column('d', 'f')})",
            lambda: f"contains({self.text(d)}, {self.text(0)})",
        )

    def choice(self, of: Callable[[int], str], depth: int) -> str:
        return self.pick(
            lambda: f"CASE WHEN {self.truth(depth)} THEN {of(depth)} ELSE {of(depth)} END",
            lambda: f"IF({self.truth(depth)}, {of(depth)}, NULL)",
            lambda: f"coalesce({of(depth)}, {of(0)})",
            lambda: f"nullif({of(depth)}, {of(0)})",
            lambda: f"{self.one('greatest', 'least')}({of(depth)}, {of(0)})",
        )

    def any_value(self, depth: int = 2) -> str:
        return self.pick(
            lambda: self.whole(depth),
            lambda: self.floating(depth),
            self.exact,
            lambda: self.text(depth),
            self.time,
            self.day,
            lambda: self.truth(depth),
        )

    # ---- aggregates ----

    def aggregate(self, name: str) -> str:
        """One item of a select list; `name` becomes a rough one where sums are floating."""
        where = f" FILTER (WHERE {self.truth(1)})" if self.draw.random() < 0.3 else ""
        if self.draw.random() < 0.3:
            function = self.one("SUM", "AVG", "STDDEV", "VAR_POP", "STDDEV_POP", "VARIANCE")
            given = self.column("x", "f", "d") if function == "SUM" else self.column("x", "i", "d")
            return f"{function}({given}){where} AS r_{name}"
        exact = self.pick(
            lambda: "COUNT(*)",
            lambda: f"COUNT({self.any_value(1)})",
            lambda: f"COUNT(DISTINCT {self.any_value(1)})",
            lambda: f"SUM({self.pick(lambda: self.whole(1), lambda: self.column('m'))})",
            lambda: f"{self.one('MIN', 'MAX')}({self.any_value(1)})",
            lambda: f"PERCENTILE({self.column('i', 'x', 'd')}, {self.one('0.5', '0.27', '1')})",
            lambda: f"MEDIAN({self.column('i', 'x', 'd')})",
            lambda: f"COUNT_IF({self.truth(1)})",
            lambda: f"{self.one('BOOL_AND', 'BOOL_OR')}({self.truth(1)})",
        )
        return f"{exact}{where} AS x_{name}"

    # ---- queries ----

    def query(self) -> str:
        self.q = ""
        return self.pick(
            self.rows, self.groups, self.groups, self.over, self.joined, self.union, self.nested
        )

    def rows(self) -> str:
        items = ", ".join(f"{self.any_value()} AS x_{n}" for n in range(4))
        return f"SELECT {WINDOW}, id, {items} FROM a WHERE {self.truth()}"

    def groups(self) -> str:
        keys = [WINDOW, self.pick(lambda: self.any_value(1), lambda: self.column("k", "d", "s"))]
        if keys[1].lstrip("-").isdigit():
            keys[1] = "k"  # a bare number would be a place in the select list
        items = ", ".join(self.aggregate(str(n)) for n in range(4))
        having = f" HAVING COUNT(*) {self.one('>', '<')} 2" if self.draw.random() < 0.3 else ""
        return (
            f"SELECT {keys[0]}, {keys[1]} AS g, {items} FROM {self.one('a', 'a', 'b', 'c')}"
            f" WHERE {self.truth(1)} GROUP BY {keys[0]}, {keys[1]}{having}"
        )

    def over(self) -> str:
        by = self.column("i", "d", "s", "t", "m", "f")
        order = f"{by} {self.one('', 'ASC ', 'DESC ')}{self.one('', 'NULLS FIRST', 'NULLS LAST')}"
        peers = f"OVER (PARTITION BY {WINDOW}, {self.column('k', 'b')} ORDER BY {order})"
        frame = self.one("2 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 1 FOLLOWING")
        rows = f"OVER (PARTITION BY {WINDOW} ORDER BY {order}, id ROWS BETWEEN {frame})"
        before = "OVER (PARTITION BY k ORDER BY id)"
        return (
            f"SELECT id, {self.one('RANK', 'DENSE_RANK')}() {peers} AS x_1,"
            f" {self.one('SUM', 'COUNT', 'MIN')}({self.whole(1)}) {rows} AS x_2,"
            f" {self.one('LAG', 'LEAD')}({self.any_value(1)}) {before} AS x_3,"
            f" {self.one('AVG', 'SUM')}(x) {rows} AS r_4 FROM a"
            f" QUALIFY ROW_NUMBER() OVER (PARTITION BY {WINDOW} ORDER BY {order}, id) <= 9"
        )

    def joined(self) -> str:
        kind = self.one(
            "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"
        )
        key = self.one("k", "i", "d", "s", "f", "y", "m", "b")
        on = f"a.{WINDOW} = b.{WINDOW} AND a.{key} = b.{key}"
        half = kind.endswith(("SEMI JOIN", "ANTI JOIN"))
        self.q = "a."
        left = f"{self.any_value(1)} AS x_1, {self.any_value(1)} AS x_2"
        self.q = "b."
        right = "" if half else f", b.id AS x_id, {self.any_value(1)} AS x_3"
        return f"SELECT a.id, {left}{right} FROM a {kind} b ON {on}"

    def union(self) -> str:
        make = self.draw.choice([self.whole, self.text, self.floating])
        sides = [f"SELECT {WINDOW}, {make(2)} AS v FROM {name}" for name in ("a", "b")]
        return f" UNION {self.one('ALL', '')} ".join(sides)

    def nested(self) -> str:
        inner = f"SELECT {WINDOW}, {self.any_value()} AS g, {self.whole(1)} AS n FROM a"
        items = "COUNT(*) AS x_1, SUM(n) AS x_2, COUNT(DISTINCT g) AS x_3, MAX(g) AS x_4"
        if self.draw.random() < 0.5:
            return f"SELECT {WINDOW}, {items} FROM ({inner}) GROUP BY {WINDOW}"
        return f"WITH q AS ({inner}) SELECT q.{WINDOW}, q.g, {items} FROM q GROUP BY 1, 2"
