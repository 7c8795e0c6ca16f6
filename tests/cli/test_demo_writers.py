"""The demo's writers and its judge, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.demo_rows import DISORDER, SITES, STREAM, Workload
from tidegate.cli.demo_truth import Results, results_of, truth_of
from tidegate.cli.demo_writers import PIECES, Delivery
from tidegate.eventtime.instants import micros
from tidegate.logs.store_log import StoreLog
from tidegate.store.reading import read, read_between
from tidegate.store.store import Store

ORDERS = Workload(rows=10_000)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    folder = tmp_path_factory.mktemp("demo")
    with Store.open(folder / "store") as store:
        delivery = Delivery(store, ORDERS, folder / "files")
        delivery.create()
        assert sum(delivery.backlog()) + sum(delivery.live(0.0)) == 10_000
        delivery.close()
        yield delivery


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def test_the_store_and_the_files_hold_the_same_rows_after_a_crash(delivered: Delivery) -> None:
    stored = pa.Table.from_batches(list(read_between(delivered.store, STREAM)))
    files = sorted(delivered.files.iterdir())
    filed = pa.concat_tables(pq.read_table(file) for file in files)
    assert delivered.crashed <= delivered.taken_over <= delivered.ended
    assert in_order(stored.select(filed.column_names)) == in_order(filed)
    assert len(filed) == 10_000 + len(SITES) - 1  # with the closing ones


def test_every_site_has_a_partition_of_its_own_with_no_more_disorder_than_is_said(
    delivered: Delivery,
) -> None:
    numbers = {site: {number} for site, number in ORDERS.routing().items()}
    for partition, site in ORDERS.partitions().items():
        end = StoreLog(delivered.store, STREAM).snapshot({}).partitions
        latest = int(end.latest[end.names.index(partition)])
        rows = pa.Table.from_batches(list(read(delivered.store, STREAM, partition, 0, latest)))
        assert set(rows["site"].to_pylist()) == numbers[site]
        at = rows["at"].cast(pa.int64()).to_numpy()
        assert int((np.maximum.accumulate(at) - at).max()) < micros(DISORDER)


def test_files_come_in_the_order_of_delivery_and_the_backlog_site_after_site(
    delivered: Delivery,
) -> None:
    files = sorted(delivered.files.iterdir())
    times = [file.stat().st_mtime_ns for file in files]
    assert times == sorted(times)
    sites = [file.stem.partition("-")[2] for file in files]
    assert sites[: PIECES * len(SITES)] == [site for site in SITES for _ in range(PIECES)]
    assert "quiet" not in sites[PIECES * len(SITES) :]


def test_the_truth_counts_every_row_but_those_that_only_close(delivered: Delivery) -> None:
    truth = truth_of(delivered.files, ORDERS.until)
    assert truth.rows == 10_000
    assert len(truth.windows()) == ORDERS.windows == 90
    assert truth.windows_right(truth) == 90


def test_a_window_with_a_wrong_group_a_missing_one_or_one_too_many_is_not_right() -> None:
    truth = Results({(n, item): (1, 5) for n in range(4) for item in "ab"})
    given = Results(truth)
    given[0, "a"] = (1, 6)
    del given[1, "b"]
    given[2, "c"] = (1, 5)
    assert given.windows_right(truth) == 1


def test_a_group_that_is_given_out_twice_is_counted_twice() -> None:
    at = pa.array([60_000_000_000], pa.timestamp("ns", "UTC"))
    rows = pa.table({"window_start": at, "item": ["a"], "n": [2], "cents": [7]})
    assert results_of([rows, rows]) == {(60_000_000, "a"): (4, 14)}
