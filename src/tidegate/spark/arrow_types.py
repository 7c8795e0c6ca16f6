"""Types on the way from a log to Spark: what Spark has no word for is widened, or refused.

Spark takes an Arrow batch only when its schema is exactly the one it expects. So the schema of a
log is translated once, and every batch is cast to what comes back from Spark.

>>> spark_schema("orders", pa.schema([("id", pa.uint16()), ("at", pa.timestamp("ns", "UTC"))]))
StructType([StructField('id', IntegerType(), True), StructField('at', TimestampType(), True)])
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from tidegate import errors

_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}


def spark_schema(stream: str, schema: pa.Schema) -> StructType:
    """The schema of a log, as Spark's."""
    return StructType([_field(stream, field) for field in schema])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema that Spark expects of batches."""
    return to_arrow_schema(schema, timezone="UTC")


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the types that Spark expects; nanoseconds are rounded down to microseconds."""
    if batch.schema.equals(schema):
        return batch
    arrays = [_cast(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _field(stream: str, field: pa.Field) -> StructField:
    kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
    try:
        return StructField(field.name, from_arrow_type(_WIDER.get(kind, kind)), field.nullable)
    except PySparkTypeError:
        raise errors.column_not_for_spark(stream, field.name, str(field.type)) from None


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    options = pc.CastOptions(target_type=kind, allow_time_truncate=True)
    return pc.cast(column, options=options)
