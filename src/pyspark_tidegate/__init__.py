"""`format("tidegate")` in every session: Spark looks for sources in packages named `pyspark_...`.

It does so once, in a process of its own, when it is first asked for a source written in Python. So
nothing of Tidegate is imported here before somebody uses the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tidegate.spark.source import TidegateSource


class DefaultSource(DataSource):
    """The source of `tidegate.spark.source`, which is opened when it is asked for something."""

    opened: TidegateSource | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "tidegate"

    def schema(self) -> StructType:
        """The columns of a read."""
        return self._opened().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        return self._opened().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read."""
        return self._opened().streamReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write."""
        return self._opened().writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A streaming write."""
        return self._opened().streamWriter(schema, overwrite)

    def _opened(self) -> TidegateSource:
        # One for all questions: the end of a read is taken with its schema.
        if self.opened is None:
            from tidegate.spark.source import TidegateSource

            self.opened = TidegateSource(self.options)
        return self.opened
