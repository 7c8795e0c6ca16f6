"""Columns as people write them on a command line: `name:type`.

>>> parse_columns(["id:int64", "at:timestamp", "price:decimal(10,2)"]).types[2]
Decimal128Type(decimal128(10, 2))
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from tidegate import errors

TYPES: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def parse_columns(texts: Iterable[str]) -> pa.Schema:
    """The schema of these columns; an unknown type is an error that lists those there are."""
    return pa.schema([_field(text) for text in texts])


def _field(text: str) -> pa.Field:
    name, _, kind = text.partition(":")
    found = _DECIMAL.fullmatch(kind)
    if name and found:
        return pa.field(name, pa.decimal128(int(found[1]), int(found[2])))
    if name and kind in TYPES:
        return pa.field(name, TYPES[kind])
    choices = [f"name:{choice}" for choice in (*TYPES, "decimal(10,2)")]
    raise errors.wrong_setting("column", text, choices)
