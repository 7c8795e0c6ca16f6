"""The types that both kernels know, and how Spark brings two of them together.

Spark's types decide: an expression is translated only when its type in Spark is known, and what
DuckDB would do with another type is never left to DuckDB. The rules are those of Spark's ANSI mode.

>>> print(common(INTEGER, BIGINT), common(INTEGER, FLOAT), common(STRING, INTEGER))
bigint double None
>>> common(decimal(18, 2), INTEGER).duckdb
'DECIMAL(18,2)'
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

MOST_DIGITS: Final = 38


class SparkType(NamedTuple):
    """A type by Spark's name for it; precision and scale are a decimal's."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        shown = f"{self.name}({self.precision},{self.scale})"
        return shown if self.name == "decimal" else self.name

    def __format__(self, form: str) -> str:
        article = "" if form != "a" else "an " if self.name == "int" else "a "
        return f"{article}{self!s}"

    @property
    def duckdb(self) -> str:
        """What DuckDB calls it."""
        if self.name == "decimal":
            return f"DECIMAL({self.precision},{self.scale})"
        return DUCKDB[self.name]


BOOLEAN: Final = SparkType("boolean")
INTEGER: Final = SparkType("int")
BIGINT: Final = SparkType("bigint")
FLOAT: Final = SparkType("float")
DOUBLE: Final = SparkType("double")
STRING: Final = SparkType("string")
DATE: Final = SparkType("date")
TIMESTAMP: Final = SparkType("timestamp")
NULL: Final = SparkType("void")

DUCKDB: Final = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    # Instants in UTC, without a zone: DuckDB's functions on the other kind follow a setting.
    "timestamp": "TIMESTAMP",
    "void": "INTEGER",
}

WHOLE: Final = frozenset({INTEGER, BIGINT})
FLOATING: Final = frozenset({FLOAT, DOUBLE})
TIMES: Final = frozenset({DATE, TIMESTAMP})


def decimal(precision: int, scale: int) -> SparkType:
    """A decimal type."""
    return SparkType("decimal", precision, scale)


def is_decimal(kind: SparkType) -> bool:
    """Whether it is a decimal of any size."""
    return kind.name == "decimal"


def is_numeric(kind: SparkType) -> bool:
    """Whether one can calculate with it."""
    return kind in WHOLE or kind in FLOATING or is_decimal(kind)


def from_arrow(kind: pa.DataType) -> SparkType | None:
    """The type that Spark gives an Arrow column, if it is one of the subset."""
    plain = {
        pa.bool_(): BOOLEAN,
        pa.int32(): INTEGER,
        pa.int64(): BIGINT,
        pa.float32(): FLOAT,
        pa.float64(): DOUBLE,
        pa.string(): STRING,
        pa.large_string(): STRING,
        pa.date32(): DATE,
    }
    if kind in plain:
        return plain[kind]
    if pa.types.is_decimal128(kind):
        return decimal(kind.precision, kind.scale) if kind.scale >= 0 else None
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit == "us":
        return TIMESTAMP
    return None


def as_decimal(kind: SparkType) -> SparkType | None:
    """The decimal that holds every value of a whole type."""
    if kind == INTEGER:
        return decimal(10, 0)
    if kind == BIGINT:
        return decimal(20, 0)
    return kind if is_decimal(kind) else None


def common(one: SparkType, other: SparkType) -> SparkType | None:
    """The type in which Spark compares two, or gives out either; None: not in the subset."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if {one, other} <= TIMES:
        return TIMESTAMP
    if not is_numeric(one) or not is_numeric(other):
        return None
    if one in FLOATING or other in FLOATING:
        return DOUBLE  # also of float and int: a float would lose digits of the int
    if one in WHOLE and other in WHOLE:
        return BIGINT
    left, right = as_decimal(one), as_decimal(other)
    if left is None or right is None:
        return None
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return decimal(precision, scale) if precision <= MOST_DIGITS else None
