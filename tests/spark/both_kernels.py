"""One query on both kernels, and whether the results are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.kernel_frames import SCHEMA, WINDOW

from tidegate.spark.duckdb_rules.registry import Outside
from tidegate.spark.duckdb_text import translate
from tidegate.spark.shape import Windows
from tidegate.spark.sql_text import Statement

STREAMS = ["a", "b", "c"]

ROUGH = "r_"
"""Columns whose names begin so are floating sums: equal to a relative 1e-9."""


@dataclass(frozen=True)
class Failed:
    """A kernel that refused to answer; Spark says whether before or while running."""

    reason: str


class Both:
    """The same rows in Spark and in DuckDB."""

    def __init__(self, spark: SparkSession, tables: Mapping[str, pa.Table]) -> None:
        self.spark = spark
        self.frames: dict[str, DataFrame] = {}
        for name, table in tables.items():
            # An empty Arrow table has no schema that Spark would read.
            made = spark.createDataFrame(table if len(table) else frame_like(table))
            # One small partition: what a query costs here is its number of tasks.
            self.frames[name] = (made if len(table) else made.limit(0)).coalesce(1).cache()
        self.duckdb = duckdb_with(tables)

    @staticmethod
    def parsed(text: str) -> Statement:
        return Statement.parse(text, STREAMS)

    def by_spark(self, text: str) -> pa.Table | Failed:
        statement = self.parsed(text)
        named = statement.arguments
        given: dict[str, Any] = {named[name]: self.frames[name] for name in statement.streams}
        try:
            return self.spark.sql(statement.for_spark(), **given).toArrow()
        except PySparkException as refused:
            return Failed(str(refused).splitlines()[0])

    def by_duckdb(self, text: str) -> pa.Table | Failed:
        return asked(self.duckdb, text)

    def difference(self, text: str) -> str:
        """What the two say differently of a query; nothing if they agree."""
        ours, theirs = self.by_duckdb(text), self.by_spark(text)
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            both = isinstance(ours, Failed) and isinstance(theirs, Failed)
            return "" if both else f"duckdb: {shown(ours)}\nspark: {shown(theirs)}"
        return table_difference(ours, theirs)


def duckdb_with(
    tables: Mapping[str, pa.Table], few: Sequence[str] = ()
) -> duckdb.DuckDBPyConnection:
    """A connection with these tables; the texts of the columns in `few` as enumerations."""
    made = duckdb.connect(config={"threads": 1})
    for name, table in tables.items():
        number = table.column("_window_start").cast(pa.int64())
        made.register(f"_{name}", table.append_column("_window_number", number))
        kinds = []
        for column in few if len(table) else ():
            texts = sorted({text for text in table.column(column).to_pylist() if text is not None})
            names = ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
            kinds.append(f"{column}::ENUM({names}) AS {column}")
        replaced = f"REPLACE ({', '.join(kinds)})" if kinds else ""
        made.execute(f"CREATE VIEW {name} AS SELECT * {replaced} FROM _{name}")
    return made


def translated(text: str) -> str | Outside:
    size = WINDOW // timedelta(microseconds=1)
    return translate(Both.parsed(text), dict.fromkeys(STREAMS, SCHEMA), Windows(size, size))


def asked(on: duckdb.DuckDBPyConnection, text: str) -> pa.Table | Failed:
    """What DuckDB answers to a query that is written for Spark."""
    words = translated(text)
    assert isinstance(words, str), f"{words} in {text}"
    return answered(on, words)


def answered(on: duckdb.DuckDBPyConnection, words: str) -> pa.Table | Failed:
    """What DuckDB answers in its own words."""
    try:
        return on.sql(words).to_arrow_table()
    except (duckdb.InvalidInputException, duckdb.OutOfRangeException) as refused:
        return Failed(str(refused))
    except duckdb.ConversionException as refused:
        return Failed(str(refused))


def frame_like(table: pa.Table) -> pa.Table:
    return pa.table({field.name: pa.nulls(1, field.type) for field in table.schema})


def shown(result: pa.Table | Failed) -> str:
    return result.reason if isinstance(result, Failed) else f"{len(result)} rows"


def table_difference(ours: pa.Table, theirs: pa.Table) -> str:
    types = [plain(kind) for kind in ours.schema.types], [plain(k) for k in theirs.schema.types]
    if types[0] != types[1]:
        return f"types {types[0]} against {types[1]}"
    if len(ours) != len(theirs):
        return f"{len(ours)} rows against {len(theirs)}"
    names = theirs.schema.names
    cast = pa.table(
        [c.cast(f.type) for c, f in zip(ours.columns, theirs.schema, strict=True)], names
    )
    rough = [name.startswith(ROUGH) for name in names]
    for mine, other in zip(in_order(cast, rough), in_order(theirs, rough), strict=True):
        for name, one, two, close in zip(names, mine, other, rough, strict=True):
            if not (alike(one, two) or (close and nearly(one, two))):
                return f"{name}: {one!r} against {two!r}"
    return ""


def plain(kind: pa.DataType) -> str:
    """A type without what Arrow has several of: zones, and lengths of offsets."""
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}]"
    return "string" if pa.types.is_large_string(kind) else str(kind)


def in_order(table: pa.Table, rough: list[bool]) -> list[tuple[Any, ...]]:
    """Rows by their exact columns first: a rounding must not change which rows are compared."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    places = sorted(range(table.num_columns), key=lambda place: (rough[place], place))
    return sorted(rows, key=lambda row: [rank(row[place]) for place in places])


def rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value)


def alike(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return bool(one == two) and (one is None) == (two is None)


def nearly(one: Any, two: Any) -> bool:
    if not (isinstance(one, float) and isinstance(two, float)):
        return False
    return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
