"""The truth about the demo's orders, and how far results are from it.

It is computed by DuckDB over all files at once, with no time but that of the rows. A window is
right when every item in it has the count and the sum that it should have.

>>> truth = Results({(0, "tea"): (2, 300), (0, "soap"): (1, 80), (60, "tea"): (1, 150)})
>>> given = Results({(0, "tea"): (2, 300), (0, "soap"): (1, 80)})
>>> truth.rows, given.windows_right(truth)
(4, 1)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

from tidegate.cli.demo_rows import WINDOW
from tidegate.eventtime.instants import Instant, micros


class Results(dict[tuple[Instant, str], tuple[int, int]]):
    """Count and sum by the start of the window and the item."""

    @property
    def rows(self) -> int:
        """How many orders are counted in them."""
        return sum(count for count, _ in self.values())

    def windows(self) -> set[Instant]:
        """The windows, by their start."""
        return {start for start, _ in self}

    def windows_right(self, truth: Results) -> int:
        """How many windows of the truth are here as they should be."""
        wrong = {start for (start, _), _ in truth.items() ^ self.items()}
        return len(truth.windows() - wrong)

    def before(self, until: Instant) -> Results:
        """Those of windows that begin before a time."""
        return Results({key: value for key, value in self.items() if key[0] < until})


def results_of(tables: Iterable[pa.Table]) -> Results:
    """Results from tables with `window_start`, `item`, `n` and `cents`."""
    found = Results()
    for table in tables:
        starts = table["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
        values = zip(table["n"].to_pylist(), table["cents"].to_pylist(), strict=True)
        for start, item, value in zip(starts, table["item"].to_pylist(), values, strict=True):
            # A group that was given out twice is wrong by as much as it was given out too often.
            count, cents = found.get((start, item), (0, 0))
            found[start, item] = (count + value[0], cents + value[1])
    return found


def truth_of(files: Path, until: Instant) -> Results:
    """What all files together give, for windows before a time."""
    size = micros(WINDOW)
    with duckdb.connect() as on:
        rows = on.execute(
            'SELECT epoch_us("at") // ? * ?, item, count(*), sum(cents)::BIGINT'
            ' FROM read_parquet(?) WHERE epoch_us("at") < ? GROUP BY ALL',
            [size, size, str(files / "*.parquet"), until],
        ).fetchall()
    return Results({(start, item): (count, cents) for start, item, count, cents in rows})
