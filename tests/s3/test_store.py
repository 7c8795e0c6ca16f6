"""The store on object storage: what is visible is the same as on a disk, whatever happens."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from typing import Any

import pytest
from tests.s3.conftest import START, Bucket
from tests.s3.killed import append_and_die
from tests.store.filling import chunks_of
from tests.store.rows import create, drain, in_key_order, table
from tests.store.visible import all_of

from tidegate.errors import TidegateError
from tidegate.logs import open_log
from tidegate.logs.store_log import StoreLog
from tidegate.store import Store
from tidegate.store.catalog.intents import LIFE
from tidegate.store.compaction import compact
from tidegate.store.reading import read_between
from tidegate.store.sweep import GRACE, Sweep, sweep
from tidegate.testing import ManualClock

pytestmark = pytest.mark.s3


def rows_of(store: Store) -> list[dict[str, Any]]:
    """Every row with its place and its times, in the order of reading."""
    system = ("_partition", "_offset", "_event_time", "_timestamp")
    found = read_between(store, "orders", system_columns=system)
    return [row for batch in found for row in batch.to_pylist()]


def test_what_is_written_noted_and_committed_is_read_back(
    store: Store, open_store: Callable[..., Store], clock: ManualClock
) -> None:
    create(store, "orders", segments=3)
    with store.writer("orders", "shop", notes_time=True, flush_age=None) as writer:
        for first in range(0, 60, 20):
            writer.append(table(range(first, first + 20)))
            writer.flush()
        writer.note_time(60)
        transaction = writer.begin()
        transaction.append(table(range(60, 80)))
        assert len(rows_of(store)) == 60
        clock.advance(timedelta(seconds=10))  # so that the next mark is due
        transaction.commit(time=80)
        aborted = writer.begin()
        aborted.append(table(range(1000, 1010)))
        aborted.abort()
        other = open_store()
        numbers = [row["n"] for row in rows_of(other)]
        assert sorted(numbers) == list(range(80))
        assert in_key_order(numbers)
        assert {row["_partition"] for row in rows_of(other)} == {"0.e0", "1.e0", "2.e0"}
        times = (20, 40)
        inside = [b.column("n").to_pylist() for b in read_between(other, "orders", times=times)]
        assert sorted(n for part in inside for n in part) == list(range(20, 40))
        reader = other.reader_group("billing", ["orders"]).join("reader-1")
        assert sorted(drain(reader)) == list(range(80))
        assert reader.time_window("orders").lower == 80


def test_compaction_and_the_sweep_change_nothing_that_is_visible(
    store: Store, clock: ManualClock
) -> None:
    create(store, "orders", segments=2)
    create(store, "orders.errors")
    for name in ("orders", "orders.errors"):
        with store.writer(name, "shop", flush_age=None) as writer:
            for first in range(0, 50, 10):
                writer.append(table(range(first, first + 10)))
                writer.flush()
    before = rows_of(store)
    assert len(before) == 50
    assert compact(store, "orders") == (10, [])
    assert rows_of(store) == before
    assert sweep(store) == Sweep(0, 0, 0)
    clock.advance(GRACE)
    assert sweep(store) == Sweep(expired=0, replaced=10, orphans=0)
    assert rows_of(store) == before
    kept = [chunks_of(store, "orders", segment)[0].path for segment in ("0.e0", "1.e0")]
    assert sorted(store.files.list("orders")) == sorted(kept)
    assert sorted(all_of(store, "orders.errors", "n")) == list(range(50))
    store.maintain()
    store.delete_stream("orders.errors")
    clock.advance(GRACE)
    sweep(store)
    assert sorted(store.files.list()) == sorted(kept)
    assert rows_of(store) == before


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("file: before upload", 0),
        ("file: during upload", 0),
        ("file: after upload", 1),
        ("catalog: before commit", 0),
    ],
)
def test_a_writer_killed_in_an_upload_leaves_nothing_visible(
    store: Store, clock: ManualClock, addresses: tuple[str, str], step: str, left: int
) -> None:
    create(store, "orders")
    with store.writer("orders", "shop", flush_age=None) as writer:
        writer.append(table(range(10)))
    before, files = rows_of(store), set(store.files.list())
    child = get_context("spawn").Process(target=append_and_die, args=(*addresses, START, step))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert rows_of(store) == before
    orphans = set(store.files.list()) - files
    assert len(orphans) == left
    # The upload was announced, and may still be under way for all that anybody knows.
    announced = 0 if step.startswith("catalog") else 1
    assert sweep(store) == Sweep(0, 0, 0)
    assert set(store.files.list()) == files | orphans
    clock.advance(LIFE)
    assert sweep(store) == Sweep(expired=announced, replaced=0, orphans=left)
    assert set(store.files.list()) == files
    assert rows_of(store) == before
    with store.writer("orders", "shop", flush_age=None) as writer:
        assert writer.durable == 10
        writer.append(table(range(20)), first_row=0)
    assert [row["n"] for row in rows_of(store)] == list(range(20))


def test_a_log_is_opened_elsewhere_by_its_description(store: Store) -> None:
    create(store, "orders", segments=2)
    with store.writer("orders", "shop", flush_age=None) as writer:
        writer.append(table(range(30)))
    log = StoreLog(store, "orders")
    for other in (open_log(log.describe()), pickle.loads(pickle.dumps(log))):
        assert isinstance(other, StoreLog)
        partitions = other.snapshot({}).partitions
        ends = dict(zip(partitions.names, partitions.latest.tolist(), strict=True))
        assert ends == {record.name: record.end for record in store.segments("orders")}
        parts = [part for name, end in ends.items() for part in other.read(name, 0, end, ["n"])]
        assert sorted(n for part in parts for n in part.column("n").to_pylist()) == list(range(30))
        other.close()


def test_a_missing_object_is_an_error_that_names_the_rows_and_no_secret(
    store: Store, bucket: Bucket
) -> None:
    create(store, "orders")
    with store.writer("orders", "shop", flush_age=None) as writer:
        writer.append(table(range(5)))
    (chunk,) = chunks_of(store, "orders", "0.e0")
    store.files.delete(chunk.path)
    with pytest.raises(TidegateError) as refused:
        rows_of(store)
    assert refused.value.code == "chunk-unreadable"
    assert bucket.secret not in str(refused.value)
    assert chunk.path in str(refused.value)
