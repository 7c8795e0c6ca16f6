"""Bounds inside a chunk: wherever a read begins and ends, it gives the rows between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.rows import create, table

from tidegate.store import Store
from tidegate.store.reading import read

ROWS = 131_500
"""In one chunk of row groups of 2,630: batches of 65,536 begin and end inside of them."""


def test_a_read_may_begin_and_end_anywhere_in_a_chunk(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        create(store, "orders")
        with store.writer("orders", flush_rows=ROWS, flush_age=None) as writer:
            writer.append(table(range(ROWS)))

        bounds = st.one_of(
            st.integers(0, ROWS),
            st.builds(
                lambda batch, by: batch * 65_536 + by,
                st.sampled_from([1, 2]),
                st.integers(-3_000, 400),
            ),
        )

        @settings(max_examples=60, deadline=None)
        @given(bounds, bounds)
        def law(one: int, two: int) -> None:
            start, end = sorted((one, two))
            batches = read(store, "orders", "0.e0", start, end, ["n"])
            found = pa.Table.from_batches(batches, schema=pa.schema([("n", pa.int64())]))
            assert np.array_equal(found.column("n").to_numpy(), np.arange(start, min(end, ROWS)))

        law()
