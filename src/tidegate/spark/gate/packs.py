"""Packs: many rows as one, on the way from Python into Spark's operators.

Spark takes what a Python source reads row by row: each is copied twice, counted, and held against
the watermark column, before any operator sees it. A pack is a row whose columns are arrays, so all
that is paid once per pack, and Spark's generated code takes the rows out of it. For windows by key
that is half of all work.

Spark counts packs where it tells how many rows a source gave (`numInputRows`); what we tell are
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

PACK: Final = 1024
"""Rows of a pack: some tens of kilobytes, which stay in the cache while they are taken out."""

_PLACE: Final = "_place_in_pack"


def pack_type(rows: StructType) -> StructType:
    """The type of packs of such rows."""
    return StructType([StructField(row.name, ArrayType(row.dataType)) for row in rows])


def row_type(packs: StructType) -> StructType:
    """The inverse of `pack_type`."""
    return StructType(
        [
            StructField(pack.name, pack.dataType.elementType)
            for pack in packs
            if isinstance(pack.dataType, ArrayType)
        ]
    )


def packed(batch: pa.RecordBatch, schema: pa.Schema, size: int = PACK) -> pa.RecordBatch:
    """The rows of a batch as packs; nothing is copied.

    >>> rows = pa.RecordBatch.from_pydict({"n": [1, 2, 3, None, 5]})
    >>> packed(rows, pa.schema([("n", pa.list_(pa.int64()))]), size=2).to_pydict()
    {'n': [[1, 2], [3, None], [5]]}
    """
    ends = np.append(np.arange(0, batch.num_rows, size), batch.num_rows).astype(np.int32)
    offsets = pa.array(ends)
    arrays = [
        pa.ListArray.from_arrays(offsets, column, type=kind)
        for column, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def unpacked(packs: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows of packs."""
    first, *others = columns
    rows = packs.select(
        *(f"`{name}`" for name in others), F.posexplode(f"`{first}`").alias(_PLACE, first)
    )
    return rows.select(
        f"`{first}`", *(F.get(f"`{name}`", F.col(_PLACE)).alias(name) for name in others)
    )
