"""Reading: offsets, times, columns, and files that are not what they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import update
from tests.store.filling import PLAIN, TIMED, chunks_of, fill

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.store import Store
from tidegate.store.catalog.schema import chunks, segments
from tidegate.store.compaction import compact
from tidegate.store.reading import SYSTEM_COLUMNS, read, read_between
from tidegate.testing import ManualClock

START = 1_800_000_000_000_000


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Store]:
    clock = ManualClock(START)
    with Store.open(tmp_path / "shop", clock=clock.now) as opened:
        opened.create_stream("s", TIMED, event_column="at")
        yield opened


def ids(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column("id").to_pylist()]


def test_the_rows_of_a_range_come_in_offset_order(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    for times in ([1, 2, 3], [4], [5, 6, 7, 8]):
        fill(store, "s", "0.e0", times)
    assert ids(read(store, "s", "0.e0", 0, 8)) == list(range(8))
    assert ids(read(store, "s", "0.e0", 2, 6)) == [2, 3, 4, 5]
    assert ids(read(store, "s", "0.e0", 3, 3)) == []
    assert ids(read(store, "s", "0.e0", 7, 99)) == [7]
    (batch,) = read(store, "s", "0.e0", 4, 8)
    assert batch.schema == TIMED


def test_times_filter_rows_and_system_columns_come_on_request(
    store: Store, clock: ManualClock
) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [10, 30, 20])
    clock.advance(timedelta(seconds=1))
    fill(store, "s", "0.e0", [25, 15])
    found = list(read(store, "s", "0.e0", 0, 5, ["id"], (15, 30), tuple(SYSTEM_COLUMNS)))
    table = pa.Table.from_batches(found)
    assert table.column_names == ["id", "_event_time", "_partition", "_offset", "_timestamp"]
    assert table["_offset"].to_pylist() == [2, 3, 4] == table["id"].to_pylist()
    assert table["_event_time"].cast(pa.int64()).to_pylist() == [20, 25, 15]
    assert table["_partition"].to_pylist() == ["0.e0"] * 3
    stamps = table["_timestamp"].cast(pa.int64()).to_pylist()
    assert stamps == [START, START + 1_000_000, START + 1_000_000]
    assert ids(read(store, "s", "0.e0", 0, 5, times=(UNKNOWN, 16))) == [0, 4]
    only = list(read(store, "s", "0.e0", 1, 3, [], None, ("_offset",)))
    assert [batch.to_pydict() for batch in only] == [{"_offset": [1, 2]}]


def test_without_an_event_column_times_are_those_of_the_commits(
    store: Store, clock: ManualClock
) -> None:
    store.create_stream("s", PLAIN)
    for _ in range(3):
        fill(store, "s", "0.e0", [0, 0])
        clock.advance(timedelta(seconds=1))
    second = (START + 1_000_000, START + 2_000_000)
    assert ids(read(store, "s", "0.e0", 0, 6, times=second)) == [2, 3]
    assert compact(store, "s") == (3, [])
    assert ids(read(store, "s", "0.e0", 0, 6, times=second)) == [2, 3]
    (batch,) = read(store, "s", "0.e0", 3, 5, system_columns=("_timestamp", "_event_time"))
    for name in ("_timestamp", "_event_time"):
        instants = batch.column(name).cast(pa.int64()).to_pylist()
        assert instants == [START + 1_000_000, START + 2_000_000]


def test_a_column_that_was_added_is_null_in_older_rows(local: Store) -> None:
    fill(local, "s", "0.e0", [1, 2])
    local.alter_stream("s", add_columns=[pa.field("note", pa.string())])
    (batch,) = read(local, "s", "0.e0", 0, 2)
    assert batch.column("note").to_pylist() == [None, None]
    (alone,) = read(local, "s", "0.e0", 1, 2, ["note"])
    assert alone.to_pydict() == {"note": [None]}
    with pytest.raises(TidegateError) as caught:
        read(local, "s", "0.e0", 0, 2, ["notes"])
    assert caught.value.code == "unknown-column"


def test_the_first_rows_of_a_file_can_be_left_out(local: Store) -> None:
    fill(local, "s", "0.e0", [1, 2, 3, 4], first_id=100)
    skipped = [
        update(chunks).values(skip=1, end_offset=3),
        update(segments).values(next_offset=3),
    ]
    for change in skipped:
        local.database.write(lambda on, change=change: on.execute(change).rowcount)  # type: ignore[misc]
    assert ids(read(local, "s", "0.e0", 0, 3)) == [101, 102, 103]
    assert ids(read(local, "s", "0.e0", 1, 2)) == [102]


def test_a_compaction_in_the_middle_of_a_read_changes_nothing(local: Store) -> None:
    for n in range(4):
        fill(local, "s", "0.e0", [n, n + 10])
    reading = read(local, "s", "0.e0", 1, 7)
    first = next(reading).column("id").to_pylist()
    old = [chunk.path for chunk in chunks_of(local, "s", "0.e0")]
    compact(local, "s")
    for path in old:
        local.files.delete(path)  # as if the grace had passed
    assert first + ids(reading) == [1, 2, 3, 4, 5, 6]


def test_cuts_are_read_in_lineage_order(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at", segments=2)
    fill(store, "s", "0.e0", [1, 2], first_id=0)
    fill(store, "s", "1.e0", [1, 2], first_id=10)
    store.scale("s", ["0.e0"], [(0, "1/4"), ("1/4", "1/2")])
    fill(store, "s", "2.e1", [3], first_id=20)
    fill(store, "s", "3.e1", [3], first_id=30)
    assert ids(read_between(store, "s")) == [0, 1, 10, 11, 20, 30]
    start, end = {"0.e0": 1, "1.e0": 0}, {"2.e1": 1, "3.e1": 0, "1.e0": 1}
    assert ids(read_between(store, "s", start, end)) == [1, 10, 20]
    store.truncate("s", before={"2.e1": 0, "3.e1": 0, "1.e0": 1})
    assert ids(read_between(store, "s")) == [11, 20, 30]
    with pytest.raises(TidegateError) as caught:
        ids(read_between(store, "s", start, end))
    assert caught.value.code == "rows-truncated"
    assert caught.value.fields["cut"] == {"2.e1": 0, "3.e1": 0, "1.e0": 1}


@pytest.mark.parametrize("damage", ["missing", "cut short", "other rows", "no parquet"])
def test_a_damaged_chunk_is_told_with_its_place_and_other_segments_go_on(
    tmp_path: Path, damage: str
) -> None:
    with Store.open(tmp_path / "shop") as store:
        store.create_stream("s", TIMED, event_column="at", segments=2)
        fill(store, "s", "0.e0", [1, 2])
        fill(store, "s", "0.e0", [3, 4, 5])
        fill(store, "s", "1.e0", [6])
        broken = chunks_of(store, "s", "0.e0")[1].path
        content = store.files.open(broken).read()
        if damage == "missing":
            store.files.delete(broken)
        elif damage == "other rows":
            store.files.write(
                broken, store.files.open(chunks_of(store, "s", "1.e0")[0].path).read()
            )
        else:
            store.files.write(broken, content[:-40] if damage == "cut short" else b"hello" * 20)
        reading = read(store, "s", "0.e0", 0, 5)
        assert next(reading).column("id").to_pylist() == [0, 1]
        with pytest.raises(TidegateError) as caught:
            next(reading)
        assert caught.value.code == "chunk-unreadable"
        assert not caught.value.retryable
        assert caught.value.fields == {
            "stream": "s",
            "segment": "0.e0",
            "start": 2,
            "end": 5,
            "path": broken,
        }
        assert ids(read(store, "s", "1.e0", 0, 1)) == [0]


class Counted:
    """A file that counts the bytes that are read from it."""

    def __init__(self, file: Any, counter: list[int]) -> None:
        self._file = file
        self._counter = counter
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._file.read(size) if size >= 0 else self._file.read()
        self._counter.append(len(found))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("joined", [False, True])
def test_one_per_cent_of_the_time_touches_five_per_cent_of_the_bytes(
    local: Store, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    """A million microseconds a row, shuffled within half a per cent of the whole."""
    dice = np.random.default_rng(3)
    rows, span = 400_000, 400_000_000
    times = np.sort(dice.integers(0, span, rows))
    order = np.argsort(times + dice.integers(0, span // 200, rows), kind="stable")
    step = 10_000 if joined else 100_000
    for part in np.split(times[order], rows // step):
        fill(local, "s", "0.e0", part.tolist())
    if joined:
        while compact(local, "s")[0]:
            pass
        assert len(chunks_of(local, "s", "0.e0")) <= 10
    counter: list[int] = []
    plain = local.files.open
    monkeypatch.setattr(
        local.files, "open", lambda path: pa.PythonFile(Counted(plain(path), counter), mode="r")
    )
    total = sum(chunk.bytes for chunk in chunks_of(local, "s", "0.e0"))
    a = span // 2
    found = ids(read(local, "s", "0.e0", 0, rows, times=(a, a + span // 100)))
    assert len(found) == int(((times >= a) & (times < a + span // 100)).sum())
    assert sum(counter) <= 0.05 * total
