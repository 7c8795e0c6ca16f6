"""Writing: the speed of writers beside plain `pyarrow.parquet` on the same rows.

Plain writing is one thread that writes one file per flush and makes it durable. A writer does that
too, and routes the rows, judges them, keeps their statistics and commits; over eight segments it
writes eight files per flush. On a shared machine both swing by a factor of two within a minute, so
plain and ours are measured in turn, each of ours is compared with the plain writing just before and
after it, and the median over the rounds is told. The first round warms up.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

from bench.report import Row
from tidegate.store import Store

FLUSHES = 16
ROUNDS = 7


@dataclass(frozen=True)
class Case:
    """So many writers, each in a thread, that share the flushes."""

    writers: int
    segments: int
    notes: bool

    @property
    def name(self) -> str:
        """What is measured, in words."""
        many = "s" * (self.writers > 1), "s" * (self.segments > 1)
        return (
            f"{self.writers} writer{many[0]} over {self.segments} segment{many[1]}"
            f"{', noting time after each flush' * self.notes}"
        )


CASES = tuple(
    Case(writers, segments, notes)
    for writers, segments in ((1, 1), (8, 1), (8, 8))
    for notes in (False, True)
)


def measured(folder: Path, table: pa.Table) -> Iterator[Row]:
    """Rows per second, plain and of each case, for flushes of this table."""
    count = FLUSHES * table.num_rows
    plain: list[float] = []
    ours: dict[Case, list[float]] = {case: [] for case in CASES}
    shares: dict[Case, list[float]] = {case: [] for case in CASES}
    for turn in range(ROUNDS + 1):
        before = _plain(folder / "plain", table)
        for case in CASES:
            took = _written(folder / "store", table, case)
            after = _plain(folder / "plain", table)
            if turn:
                plain.append(count / after)
                ours[case].append(count / took)
                shares[case].append((before + after) / 2 / took)
            before = after
    size = f"{table.num_rows:,} rows per flush"
    yield Row(f"plain pyarrow.parquet, durable, {size}", median(plain), "rows/s")
    for case in CASES:
        yield Row(case.name, median(ours[case]), "rows/s")
        share = median(shares[case])
        yield Row("  of plain writing", share, "times", target=0.5, at_least=True)


def _plain(folder: Path, table: pa.Table) -> float:
    folder.mkdir()
    began = perf_counter()
    for number in range(FLUSHES):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    took = perf_counter() - began
    shutil.rmtree(folder)
    return took


def _written(folder: Path, table: pa.Table, case: Case) -> float:
    with Store.open(folder) as store:
        store.create_stream(
            "orders",
            table.schema,
            event_column="at",
            routing_key=("customer",),
            segments=case.segments,
        )

        def one(number: int) -> None:
            with store.writer(
                "orders", f"w{number}", notes_time=case.notes, flush_rows=table.num_rows
            ) as writer:
                for turn in range(number, FLUSHES, case.writers):
                    writer.append(table)  # a flush: it is full
                    if case.notes:
                        writer.note_time(turn)

        began = perf_counter()
        with ThreadPoolExecutor(case.writers) as pool:
            list(pool.map(one, range(case.writers)))
        took = perf_counter() - began
        durable = sum(record.end - record.start for record in store.segments("orders"))
        assert durable == FLUSHES * table.num_rows
    shutil.rmtree(folder)
    return took
