"""The writer: rows are durable once, time is promised, an id has one owner."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Connection, func, select
from tests.store.conftest import START
from tests.store.visible import all_of, visible

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.store import Store, Writer
from tidegate.store.catalog import intents as uploads
from tidegate.store.catalog import streams, writers
from tidegate.store.catalog.schema import intents
from tidegate.store.catalog.schema import streams as stream_rows
from tidegate.store.catalog.writers import WriterRow
from tidegate.store.steps import listening
from tidegate.store.sweep import Sweep, sweep
from tidegate.testing import ManualClock

ORDERS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def orders(store: Store, **settings: Any) -> None:
    settings.setdefault("segments", 2)
    store.create_stream("orders", ORDERS, event_column="at", routing_key=("id",), **settings)


def rows(start: int, end: int, keys: int = 7) -> list[dict[str, Any]]:
    return [{"id": n % keys, "n": n, "at": n} for n in range(start, end)]


def table(start: int, end: int, keys: int = 7) -> pa.Table:
    n = pa.array(range(start, end), pa.int64())
    key = pa.array([value % keys for value in range(start, end)], pa.int64())
    return pa.table({"id": key, "n": n, "at": n.cast(pa.timestamp("us", tz="UTC"))})


def plain(store: Store, writer_id: str | None = "w", **settings: Any) -> Writer:
    settings.setdefault("flush_age", None)
    return store.writer("orders", writer_id, **settings)


def row_of(store: Store, name: str = "w") -> WriterRow:
    def work(on: Connection) -> WriterRow | None:
        return writers.look(on, streams.get(on, "orders").id, name)

    found = store.database.read(work)
    assert found is not None
    return found


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(TidegateError) as caught:
        act()
    return caught.value.code


def intents_left(store: Store) -> int:
    found: int = store.database.read(
        lambda on: on.execute(select(func.count()).select_from(intents)).scalar_one()
    )
    return found


def test_rows_are_visible_after_a_flush_each_in_its_keys_order(store: Store) -> None:
    orders(store)
    with plain(store) as writer:
        assert writer.append(table(0, 20)) == 20
        assert all_of(store, "orders", "n") == []
        assert writer.flush() == 20
        writer.append(table(20, 30))
    found = visible(store, "orders")
    assert sorted(row["n"] for part in found.values() for row in part) == list(range(30))
    for part in found.values():
        for key in range(7):
            numbers = [row["n"] for row in part if row["id"] == key]
            assert numbers == sorted(numbers)
            assert len(numbers) in (0, len(range(key, 30, 7)))
    assert intents_left(store) == 0


def test_the_catalog_knows_the_times_and_the_disorder(store: Store) -> None:
    orders(store, segments=1)
    with plain(store) as writer:
        for times in ([10, 40, 30], [15, 50], [60]):
            writer.append([{"id": 1, "n": 0, "at": t} for t in _times(times)])
            writer.flush()
    (segment,) = store.segments("orders")
    assert (segment.min_time, segment.max_time, segment.disorder) == (10, 60, 25)
    assert segment.last_commit_at == START


def _times(values: list[int]) -> list[Any]:
    return list(pa.array(values, pa.timestamp("us", tz="UTC")).to_pylist())


def test_a_flush_is_due_by_rows_and_by_bytes(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        orders(store)
        by_rows = plain(store, "rows", flush_rows=10)
        by_rows.append(table(0, 9))
        assert by_rows.durable == 0
        by_rows.append(table(9, 11))
        assert by_rows.durable == 11
        by_bytes = plain(store, "bytes", flush_bytes=1)
        by_bytes.append(table(0, 1))
        assert by_bytes.durable == 1


def test_a_flush_is_due_by_age(tmp_path: Path, clock: ManualClock) -> None:
    with Store.open(tmp_path, clock=clock.now) as store:
        orders(store)
        with plain(store, flush_age=timedelta(hours=1)) as writer:
            writer.append(table(0, 1))
            clock.advance(timedelta(minutes=59))
            writer.tick()
            assert writer.durable == 0
            clock.advance(timedelta(minutes=1))
            writer.tick()
            assert writer.durable == 1


def test_the_writers_own_thread_flushes_what_is_old(tmp_path: Path) -> None:
    flushed = Event()
    with Store.open(tmp_path) as store:
        orders(store)
        with plain(store, flush_age=timedelta(milliseconds=20)) as writer:
            # Before the rows: their flush may be over by the time that one begins to listen.
            with listening(lambda step: flushed.set() if step == "catalog: after commit" else None):
                writer.append(table(0, 3))
                assert flushed.wait(10)
            writer.flush()
            assert writer.durable == 3


def test_what_fails_in_the_background_is_raised_by_the_next_call(store: Store) -> None:
    orders(store)
    first = plain(store, flush_age=timedelta(microseconds=1))
    first.flush_age = None
    first.append(table(0, 1))
    plain(store)
    first.flush_age = timedelta(0)
    first.tick()
    assert code_of(first.flush) == "writer-fenced"
    assert all_of(store, "orders", "n") == []
    first.abandon()


def test_a_restarted_writer_goes_on_from_what_is_durable(store: Store) -> None:
    orders(store)
    first = plain(store)
    first.append(table(0, 10))
    first.flush()
    first.append(table(10, 15))
    first.abandon()
    with plain(store) as second:
        assert second.durable == 10
        assert second.append(table(5, 20), first_row=5) == 10
        assert second.append(rows(5, 20), first_row=5) == 0
        assert code_of(lambda: second.append(table(30, 31), first_row=30)) == "row-numbers-skipped"
    assert sorted(all_of(store, "orders", "n")) == list(range(20))


def test_a_flush_whose_answer_was_lost_is_not_doubled(store: Store) -> None:
    """The commit happens, the answer does not come, and more rows come before the next flush."""
    orders(store)

    def lose(step: str) -> None:
        if step == "catalog: after commit" and writer.appended == 10:
            commits.append(step)
            if len(commits) == 2:  # the first one announces the upload
                raise ConnectionError("the answer is lost")

    for name in ("w", None):
        writer = plain(store, name)
        commits: list[str] = []
        writer.append(table(0, 10))
        with listening(lose), pytest.raises(ConnectionError):
            writer.flush()
        assert writer.durable == 0
        writer.append(table(10, 30))
        writer.flush()
        assert writer.counts.rows == 30
        writer.close()
    assert sorted(all_of(store, "orders", "n")) == sorted([*range(30), *range(30)])
    assert [s.disorder for s in store.segments("orders")] != [0, 0]


def test_a_second_open_fences_the_first(store: Store) -> None:
    orders(store)
    first = plain(store, notes_time=True)
    first.append(table(0, 5))
    transaction = first.begin()
    first.append(table(5, 10))
    second = plain(store)
    acts: list[Callable[[], object]] = [
        first.flush,
        lambda: first.note_time(50),
        first.begin,
        transaction.commit,
        first.close,
    ]
    assert [code_of(act) for act in acts] == ["writer-fenced"] * 5
    assert row_of(store).notes.mark.time is UNKNOWN
    assert second.durable == 5
    assert len(all_of(store, "orders", "n")) == 5


def test_a_note_counts_with_everything_appended_before_it(store: Store) -> None:
    orders(store)
    heard: list[str] = []
    store.on_note.append(heard.append)
    with plain(store, notes_time=True) as writer:
        assert row_of(store).notes_time
        assert row_of(store).notes.mark.time is UNKNOWN
        writer.append(table(0, 10))
        writer.note_time(10)
        mark = row_of(store).notes.mark
        ends = {s.name: s.end for s in store.segments("orders")}
        assert (mark.time, dict(mark.position), mark.alive) == (10, ends, True)
        writer.note_time(10)
        assert code_of(lambda: writer.note_time(9)) == "time-went-back"
        assert heard == ["orders", "orders"]
    assert not row_of(store).notes.mark.alive
    with plain(store) as again:
        assert code_of(lambda: again.note_time(9)) == "time-went-back"


def test_a_note_brings_the_stream_into_the_schedule(store: Store) -> None:
    def scheduled() -> bool:
        return bool(
            store.database.read(lambda on: on.execute(select(stream_rows.c.scheduled)).scalar_one())
        )

    orders(store)
    writer = plain(store)
    writer.append(table(0, 1))
    writer.flush()
    assert not scheduled()
    writer.note_time(5)
    assert scheduled()


def test_a_refused_note_writes_nothing(store: Store) -> None:
    orders(store)
    writer = plain(store)
    writer.note_time(10)
    writer.append(table(0, 5))
    assert code_of(lambda: writer.note_time(9)) == "time-went-back"
    assert all_of(store, "orders", "n") == []
    assert (writer.durable, writer.appended) == (0, 5)


def test_a_writer_without_an_id_appends_but_promises_nothing(store: Store) -> None:
    orders(store)
    with plain(store, None) as writer:
        writer.append(table(0, 3))
        assert code_of(lambda: writer.note_time(1)) == "writer-without-id"
        assert code_of(lambda: writer.auto_note_time(timedelta(seconds=1))) == "writer-without-id"
        assert code_of(lambda: plain(store, None, notes_time=True)) == "writer-without-id"
    assert len(all_of(store, "orders", "n")) == 3


def test_time_is_noted_by_the_clock(tmp_path: Path, clock: ManualClock) -> None:
    with Store.open(tmp_path, clock=clock.now) as store:
        orders(store)
        with plain(store) as writer:
            writer.auto_note_time(timedelta(hours=1))
            assert code_of(lambda: writer.note_time(START)) == "time-noted-by-the-clock"
            writer.append(table(0, 3))
            writer.tick()
            assert (row_of(store).notes.mark.time, writer.durable) == (START, 3)
            clock.advance(timedelta(minutes=59))
            writer.tick()
            assert row_of(store).notes.mark.time == START
            clock.advance(timedelta(minutes=1))
            writer.tick()
            assert row_of(store).notes.mark.time == clock.now()
            clock.advance(timedelta(hours=-1))
            writer.tick()
            writer.auto_note_time(None)
            writer.note_time(clock.now() + 3_600_000_001)


def test_the_writer_of_a_sink_says_goodbye_only_when_asked(store: Store) -> None:
    orders(store)
    plain(store, sink=True).close()
    assert row_of(store).notes.mark.alive
    plain(store, sink=True).close(goodbye=True)
    assert not row_of(store).notes.mark.alive


def test_rows_of_a_sealed_segment_go_to_its_successors_in_order(store: Store) -> None:
    orders(store)
    with plain(store) as writer:
        writer.append(table(0, 40, keys=11))
        writer.flush()
        store.scale("orders", ["0.e0"], [("0", "1/4"), ("1/4", "1/2")])
        writer.append(table(40, 80, keys=11))
        writer.flush()
        store.scale("orders", ["2.e1", "3.e1", "1.e0"], [("0", "1")])
        writer.append(table(80, 100, keys=11))
    found = visible(store, "orders")
    assert all(found.values())
    in_order = [row for name in ("0.e0", "2.e1", "3.e1", "1.e0", "4.e2") for row in found[name]]
    for key in range(11):
        assert [r["n"] for r in in_order if r["id"] == key] == list(range(key, 100, 11))
    assert [r["n"] for r in found["4.e2"]] == list(range(80, 100))


def test_a_column_that_was_added_may_be_written_at_once(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        orders(store, segments=1)
        with plain(store) as writer:
            writer.append(rows_with_time(0, 2))
            store.alter_stream("orders", add_columns=[pa.field("note", pa.string())])
            writer.append([{**rows_with_time(2, 3)[0], "note": "new"}])
        assert all_of(store, "orders", "note") == [None, None, "new"]


def rows_with_time(start: int, end: int) -> list[dict[str, Any]]:
    return list(table(start, end).to_pylist())


def test_bad_rows_are_refused_all_together(store: Store) -> None:
    orders(store)
    with plain(store) as writer:
        with pytest.raises(TidegateError) as caught:
            writer.append([*rows_with_time(0, 3), {"id": None}, {"id": 1, "n": "x"}])
        assert caught.value.code == "rows-refused"
        assert (caught.value.fields["bad"], caught.value.fields["rows"]) == (2, 5)
        assert writer.appended == 0
    assert store.list_streams() == ["orders"]


def test_bad_rows_are_routed_once(store: Store, clock: ManualClock) -> None:
    orders(store)
    given = [*rows_with_time(0, 3), {"id": None}, {"id": 1, "n": "x"}, *rows_with_time(3, 5)]
    with plain(store, bad_rows="route") as writer:
        assert writer.append(given) == 7
        assert writer.flush() == 7
        assert writer.counts.rows == 5
        assert dict(writer.counts.bad) == {"missing": 1, "wrong type": 1}
        assert writer.append(given, first_row=0) == 0
    assert sorted(all_of(store, "orders", "n")) == [0, 1, 2, 3, 4]
    (found,) = visible(store, "orders.errors").values()
    assert [(row["reason"], row["column"], row["value"]) for row in found] == [
        ("missing", "id", None),
        ("wrong type", "n", "x"),
    ]
    assert found[1]["row"] == '{"id": 1, "n": "x"}'
    assert found[1]["writer"] == "w"
    assert found[1]["failed_at"] == _times([clock.now()])[0]


def test_a_stream_without_a_key_takes_every_flush_whole(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.create_stream("orders", ORDERS, segments=4)
        with plain(store) as writer:
            for n in range(12):
                writer.append(table(3 * n, 3 * n + 3))
                writer.flush()
        found = visible(store, "orders")
        assert len([part for part in found.values() if part]) > 1
        for part in found.values():
            assert [r["n"] % 3 for r in part] == [0, 1, 2] * (len(part) // 3)
        # Without event time the time of a row is its commit.
        assert all(s.max_time == s.last_commit_at for s in store.segments("orders") if s.end)


def test_a_closed_writer_takes_nothing_and_a_failing_block_flushes_nothing(store: Store) -> None:
    orders(store)
    writer = plain(store, notes_time=True)
    writer.append(table(0, 3))
    with pytest.raises(RuntimeError), writer:
        raise RuntimeError
    assert code_of(lambda: writer.append(table(0, 1))) == "writer-closed"
    assert all_of(store, "orders", "n") == []
    assert row_of(store).notes.mark.alive


@pytest.mark.parametrize("name", ["", " w", "_anonymous.x", "w" * 201, "a\nb"])
def test_an_id_is_checked(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path) as store:
        orders(store)
        assert code_of(lambda: plain(store, name)) == "writer-id-not-valid"


# ---- uploads that take too long ----


def test_an_upload_that_outlives_its_announcement_is_never_made_visible(
    store: Store, clock: ManualClock
) -> None:
    orders(store)
    swept: list[Sweep] = []

    def slow(step: str) -> None:
        if step == "file: after upload" and not swept:
            clock.advance(uploads.LIFE)
            swept.append(sweep(store))

    writer = plain(store)
    writer.append(table(1, 2))
    with listening(slow):
        assert code_of(writer.flush) == "upload-expired"
    assert swept == [Sweep(expired=1, replaced=0, orphans=1)]
    assert all_of(store, "orders", "n") == []
    assert writer.flush() == 1
    assert all_of(store, "orders", "n") == [1]
    assert intents_left(store) == 0


def test_what_a_transaction_holds_is_kept_from_the_sweep_as_long_as_it_is_open(
    store: Store, clock: ManualClock
) -> None:
    orders(store)
    transaction = plain(store, flush_rows=2).begin(timeout=4 * uploads.LIFE)
    transaction.append(table(0, 2))
    assert intents_left(store) == 0
    clock.advance(3 * uploads.LIFE)
    assert sweep(store) == Sweep(0, 0, 0)
    store.scale("orders", ["0.e0"], [("0", "1/4"), ("1/4", "1/2")])
    transaction.commit()
    clock.advance(3 * uploads.LIFE)
    sweep(store)
    assert sorted(all_of(store, "orders", "n")) == [0, 1]


# ---- many at once ----


def write_some(store: Store, name: str | None, flushes: int) -> int:
    with plain(store, name) as writer:
        for n in range(flushes):
            writer.append(table(10 * n, 10 * n + 10))
            writer.flush()
            if name is not None:
                writer.note_time(10 * n)
        return writer.durable


def write_in_a_process(url: str, data: str, name: str, flushes: int) -> int:
    with Store.open(url, data=data) as store:
        return write_some(store, name, flushes)


def many(store: Store, threads: int, flushes: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        names = [f"w{n}" if n % 2 else None for n in range(threads)]
        done = list(pool.map(lambda name: write_some(store, name, flushes), names))
    assert done == [10 * flushes] * threads


def test_many_threads_write_at_once(store: Store) -> None:
    orders(store)
    many(store, threads=16, flushes=5)
    assert sorted(all_of(store, "orders", "n")) == sorted([*range(50)] * 16)


@pytest.mark.faults
def test_sixty_four_threads_and_eight_processes_write_at_once(
    store: Store, catalog_url: str, tmp_path: Path
) -> None:
    orders(store, segments=4)
    context = get_context("spawn")
    with context.Pool(8) as pool:
        asked = [(catalog_url, str(tmp_path / "data"), f"p{n}", 20) for n in range(8)]
        others = pool.starmap_async(write_in_a_process, asked)
        many(store, threads=64, flushes=10)
        assert others.get() == [200] * 8
    expected = [*range(100)] * 64 + [*range(200)] * 8
    assert sorted(all_of(store, "orders", "n")) == sorted(expected)
