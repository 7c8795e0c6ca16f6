"""What a writer has taken and not yet made durable: encoded rows and bad ones, each numbered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidegate.eventtime.instants import Instant
from tidegate.store.bad_rows import errors_table
from tidegate.store.encoding import BadRow, Encoded, Numbers


@dataclass
class Buffer:
    """Rows in the order in which they came; `start` and `end` count all of them, bad ones too."""

    start: int = 0
    end: int = 0
    bytes: int = 0
    since: Instant | None = None
    """When the oldest of them came."""
    tables: list[pa.Table] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    bad: list[tuple[BadRow, Instant]] = field(default_factory=list)

    def __len__(self) -> int:
        return self.end - self.start

    def add(self, encoded: Encoded, now: Instant) -> None:
        """Take rows."""
        if not encoded.rows:
            return
        if len(encoded.table):
            self.tables.append(encoded.table)
            self.numbers.append(encoded.places + self.end)
            self.bytes += encoded.table.nbytes
        self.bad.extend((replace(row, row=self.end + row.row), now) for row in encoded.bad)
        self.since = now if self.since is None else self.since
        self.end += encoded.rows

    def rows(self) -> tuple[pa.Table, Numbers]:
        """The good ones, as one table without inner chunks, with their numbers."""
        if not self.tables:
            return pa.table({}), np.zeros(0, dtype=np.int64)
        # A stream may have got a column since the first of them came.
        whole = pa.concat_tables(self.tables, promote_options="default")
        return whole.combine_chunks(), np.concatenate(self.numbers)

    def bad_rows(self, writer: str | None) -> tuple[pa.Table, Numbers]:
        """The bad ones as rows of the stream of errors, with their numbers."""
        numbers = np.array([row.row for row, _ in self.bad], dtype=np.int64)
        return errors_table(
            [row for row, _ in self.bad], writer, [at for _, at in self.bad]
        ), numbers

    def emptied(self) -> Buffer:
        """The buffer after all of it has become durable."""
        return Buffer(self.end, self.end)
