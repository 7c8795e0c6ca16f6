"""Grouping by the number of a window, in DuckDB.

A window has a start and an end, and a query that groups by windows names one of them or both. To
group by two timestamps costs twice as much as to group by one number, so where a SELECT reads one
stream and nothing else the bounds are grouped by `_window_number`, the start in microseconds, and
told from it behind GROUP BY.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidegate.spark.duckdb_rules.registry import Typed, quoted
from tidegate.spark.shape import WINDOW_END, WINDOW_NUMBER, WINDOW_START, Windows
from tidegate.spark.sql_text import Statement


@dataclass(frozen=True)
class WindowKeys:
    """The windows of one SELECT: their number, and how far each bound lies behind it."""

    number: str
    bounds: dict[str, int]

    @staticmethod
    def of(statement: Statement, select: exp.Select, windows: Windows | None) -> WindowKeys | None:
        """None where the streams have no windows, or the SELECT reads more than one relation."""
        table = select.args["from_"].this
        one = isinstance(table, exp.Table) and statement.stream_of(table) is not None
        if windows is None or not one or select.args.get("joins"):
            return None
        alias = quoted(table.alias_or_name)
        return WindowKeys(
            f"{alias}.{quoted(WINDOW_NUMBER)}",
            {f"{alias}.{quoted(WINDOW_START)}": 0, f"{alias}.{quoted(WINDOW_END)}": windows.size},
        )

    def grouped(self, keys: dict[str, Typed]) -> tuple[list[str], dict[str, Typed]]:
        """What is grouped by, and the keys as they are told behind it."""
        written = [self.number if key.sql in self.bounds else key.sql for key in keys.values()]
        told = {
            name: Typed(f"make_timestamp({self.number} + {self.bounds[key.sql]})", key.type)
            if key.sql in self.bounds
            else key
            for name, key in keys.items()
        }
        return list(dict.fromkeys(written)), told
