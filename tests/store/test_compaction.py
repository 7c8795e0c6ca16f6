"""Compaction: fewer chunks, the same rows under the same offsets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.filling import TIMED, chunks_of, fill

from tidegate.store import Store, chunk_file, compaction
from tidegate.store.catalog.chunk_rows import ChunkRow
from tidegate.store.chunk_file import SMALLEST_GROUP
from tidegate.store.compaction import MOST_ROWS, compact, may_join
from tidegate.store.reading import SYSTEM_COLUMNS, read
from tidegate.store.sweep import sweep


def rows_of(store: Store, start: int = 0, end: int = 1 << 40) -> pa.Table:
    return pa.Table.from_batches(
        read(store, "s", "0.e0", start, end, system_columns=tuple(SYSTEM_COLUMNS))
    ).combine_chunks()


def chunk(start: int, rows: int, low: int, high: int) -> ChunkRow:
    return ChunkRow(start, 0, start, start + rows, 0, rows, low, high, high, 0, "p", 0)


def test_neighbours_become_one_and_no_row_changes(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    for times in ([100, 130], [90, 120], [140], [95]):
        fill(store, "s", "0.e0", times)
    before, old = rows_of(store), chunks_of(store, "s", "0.e0")
    assert compact(store, "s") == (4, [])
    (joined,) = chunks_of(store, "s", "0.e0")
    assert rows_of(store) == before
    assert rows_of(store, 1, 4) == before.slice(1, 3)
    assert (joined.start, joined.end, joined.min_time, joined.max_time) == (0, 6, 90, 140)
    assert (joined.running_max, joined.disorder) == (140, 45)
    assert joined.disorder == max(part.disorder for part in old)
    (record,) = store.segments("s")
    assert record.bytes == joined.bytes
    assert all(store.files.exists(part.path) for part in old)  # readers may hold them
    assert compact(store, "s") == (0, [])
    fill(store, "s", "0.e0", [200])
    assert chunks_of(store, "s", "0.e0")[-1].start == 6


def test_a_joined_chunk_does_not_make_readers_read_more() -> None:
    few, many = SMALLEST_GROUP // 2, SMALLEST_GROUP
    assert may_join([chunk(0, few, 0, 10), chunk(few, few, 10**9, 10**9)])  # one row group
    assert may_join([chunk(0, many, 0, 10), chunk(many, many, 10, 20)])
    assert not may_join([chunk(0, many, 0, 10), chunk(many, many, 11, 21)])
    assert may_join([chunk(0, many, 0, 10), chunk(many, 1, 20, 20)])
    assert not may_join([chunk(0, MOST_ROWS, 0, 10), chunk(MOST_ROWS, 1, 5, 5)])
    assert not may_join([chunk(0, 1, 0, 1), chunk(2, 1, 0, 1)])  # no neighbours


def test_what_changed_meanwhile_is_left_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_stream("s", TIMED, event_column="at")
    for n in range(4):
        fill(store, "s", "0.e0", [n, n])
    encode = chunk_file.encode_chunk

    def truncated_meanwhile(table: pa.Table) -> object:
        store.truncate("s", before={"0.e0": 3})
        return encode(table)

    monkeypatch.setattr(compaction, "encode_chunk", truncated_meanwhile)
    assert compact(store, "s") == (0, [])
    assert [(c.start, c.end) for c in chunks_of(store, "s", "0.e0")] == [(2, 4), (4, 6), (6, 8)]
    assert rows_of(store, 3)["id"].to_pylist() == [3, 4, 5, 6, 7]
    assert sweep(store).orphans == 0  # the file nobody has seen is gone already
    monkeypatch.undo()
    # The chunk that is truncated in part stays out of it.
    assert compact(store, "s") == (2, [])
    assert rows_of(store, 3)["id"].to_pylist() == [3, 4, 5, 6, 7]


def test_a_commit_whose_answer_was_lost_is_not_undone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_stream("s", TIMED, event_column="at")
    for n in range(2):
        fill(store, "s", "0.e0", [n])
    write = store.database.write

    def twice(work: object) -> object:
        write(work)  # type: ignore[arg-type]
        return write(work)  # type: ignore[arg-type]

    monkeypatch.setattr(store.database, "write", twice)
    assert compact(store, "s") == (2, [])
    assert rows_of(store)["id"].to_pylist() == [0, 1]


def test_a_damaged_chunk_is_told_and_the_others_are_joined(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.create_stream("s", TIMED, event_column="at", segments=2)
        for segment in ("0.e0", "1.e0"):
            fill(store, "s", segment, [1])
            fill(store, "s", segment, [2])
        store.files.delete(chunks_of(store, "s", "0.e0")[0].path)
        joined, failed = compact(store, "s")
        assert joined == 2
        assert len(failed) == 1
        assert 'segment "0.e0", offsets 0 to 1' in failed[0]
        assert len(chunks_of(store, "s", "1.e0")) == 1
