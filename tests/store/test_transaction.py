"""Transactions: rows that appear together, over all segments, or never."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from tests.store.test_writer import (
    code_of,
    intents_left,
    orders,
    plain,
    row_of,
    rows_with_time,
    table,
)
from tests.store.visible import all_of, visible

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.store import Store, Transaction, Writer
from tidegate.store.catalog.schema import transaction_chunks
from tidegate.store.steps import listening
from tidegate.testing import ManualClock


def test_rows_appear_at_the_commit_over_all_segments(store: Store) -> None:
    orders(store)
    with plain(store, flush_rows=10) as writer:
        transaction = writer.begin()
        for n in range(0, 40, 8):
            transaction.append(table(n, n + 8))
        assert transaction.status == "open"
        assert all_of(store, "orders", "n") == []
        mark = transaction.commit(time=40)
        assert transaction.status == "committed"
        found = visible(store, "orders")
        assert all(found.values())
        assert sorted(all_of(store, "orders", "n")) == list(range(40))
        for part in found.values():
            for key in range(7):
                numbers = [row["n"] for row in part if row["id"] == key]
                assert numbers == sorted(numbers)
        ends = {s.name: s.end for s in store.segments("orders")}
        assert (mark.time, dict(mark.position)) == (40, ends)
    assert intents_left(store) == 0


def test_an_aborted_transaction_leaves_nothing(store: Store) -> None:
    orders(store)
    with plain(store, flush_rows=5) as writer:
        transaction = writer.begin()
        transaction.append(table(0, 10))
        transaction.abort()
        transaction.abort()
        assert transaction.status == "aborted"
        assert code_of(transaction.commit) == "transaction-ended"
        failing = writer.begin()
        with pytest.raises(RuntimeError), failing:
            _append_and_fail(failing)
        assert failing.status == "aborted"
        with writer.begin() as good:
            good.append(table(0, 3))
        assert code_of(good.abort) == "transaction-ended"
    assert len(all_of(store, "orders", "n")) == 3
    assert intents_left(store) == 0
    assert len(list(store.files.list())) == len([s for s in store.segments("orders") if s.end])


def _append_and_fail(to: Transaction | Writer) -> None:
    to.append(table(0, 10))
    raise RuntimeError


def test_a_commit_whose_answer_was_lost_may_be_repeated(store: Store) -> None:
    orders(store)

    def lose(step: str) -> None:
        seen.append(step)
        if step == "catalog: after commit" and seen.count(step) == 3:
            raise ConnectionError("the answer is lost")  # after announcing and recording

    for name in ("w", None):
        writer = plain(store, name)
        transaction = writer.begin()
        transaction.append(table(0, 10))
        seen: list[str] = []
        with listening(lose), pytest.raises(ConnectionError):
            transaction.commit(None if name is None else 10)
        assert transaction.status == "committed"
        mark = transaction.commit()
        assert mark == transaction.commit()
        assert mark.time == (10 if name else UNKNOWN)
        writer.close()
    assert sorted(all_of(store, "orders", "n")) == sorted([*range(10)] * 2)


def test_a_transaction_times_out_for_whoever_meets_it(store: Store, clock: ManualClock) -> None:
    orders(store)
    writer = plain(store, flush_rows=5)
    late = [writer.begin(timedelta(seconds=10)) for _ in range(3)]
    late[0].append(table(0, 10))
    writer.note_time(50)
    assert row_of(store).notes.mark.time is UNKNOWN
    clock.advance(timedelta(seconds=10))
    assert late[0].status == "timed out"
    with pytest.raises(TidegateError) as caught:
        late[0].commit()
    assert caught.value.fields["status"] == "timed out"
    assert code_of(lambda: late[1].append(table(0, 10))) == "transaction-ended"
    assert row_of(store).notes.mark.time is UNKNOWN
    assert store.expire_transactions() == 1
    # Nobody is waited for any more: the note counts.
    assert row_of(store).notes.mark.time == 50
    assert store.expire_transactions() == 0
    assert all_of(store, "orders", "n") == []


def test_a_note_meets_what_has_timed_out(store: Store, clock: ManualClock) -> None:
    orders(store)
    writer = plain(store)
    writer.begin(timedelta(seconds=10))
    clock.advance(timedelta(seconds=10))
    writer.note_time(50)
    assert row_of(store).notes.mark.time == 50


def test_a_new_open_aborts_what_a_crashed_writer_left(
    store: Store, open_store: Callable[..., Store]
) -> None:
    orders(store)
    crashed = plain(store, flush_rows=5, notes_time=True)
    left = crashed.begin(id="left")
    left.append(table(0, 10))
    crashed.note_time(70)
    again = plain(open_store(), notes_time=True)
    assert again.transaction("left").status == "aborted"
    assert row_of(store).notes.mark.time == 70
    assert code_of(left.commit) == "writer-fenced"
    assert code_of(lambda: again.transaction("other").status) == "unknown-transaction"
    assert code_of(lambda: again.begin(id="left")) == "transaction-begun-twice"
    assert all_of(store, "orders", "n") == []
    assert list(store.files.list()) == []


def test_notes_wait_for_transactions_begun_before_them(store: Store) -> None:
    orders(store)
    writer = plain(store, notes_time=True)
    first, second = writer.begin(), writer.begin()
    first.append(table(0, 3))
    second.append(table(3, 6))
    writer.note_time(100)
    assert row_of(store).notes.mark.time is UNKNOWN
    assert second.commit(time=50).time is UNKNOWN
    mark = first.commit()
    assert mark.time == 100
    assert sum(mark.position.values()) == 6
    assert code_of(lambda: writer.note_time(99)) == "time-went-back"
    third = writer.begin()
    assert third.commit(time=90).time == 100


def test_a_commit_with_a_time_flushes_what_was_appended_beside_it(store: Store) -> None:
    orders(store)
    writer = plain(store, notes_time=True)
    transaction = writer.begin()
    transaction.append(table(0, 3))
    writer.append(table(3, 6))
    mark = transaction.commit(time=100)
    assert (mark.time, sum(mark.position.values()), writer.durable) == (100, 6, 3)
    writer.close()
    assert sorted(all_of(store, "orders", "n")) == list(range(6))


def test_transactions_that_do_not_overlap_commit_in_order(store: Store) -> None:
    orders(store, segments=1)
    with plain(store) as writer:
        for n in range(5):
            writer.append(table(10 * n, 10 * n + 5))
            with writer.begin() as transaction:
                transaction.append(table(10 * n + 5, 10 * n + 10))
    assert all_of(store, "orders", "n") == list(range(50))


def test_rows_of_a_transaction_follow_a_scale(store: Store) -> None:
    orders(store)
    with plain(store, flush_rows=5) as writer:
        transaction = writer.begin()
        transaction.append(table(0, 40, keys=11))
        store.scale("orders", ["0.e0"], [("0", "1/4"), ("1/4", "1/2")])
        writer.append(table(1000, 1040, keys=11))
        transaction.append(table(40, 80, keys=11))
        store.scale("orders", ["2.e1"], [("0", "1/8"), ("1/8", "1/4")])
        transaction.commit()
    found = visible(store, "orders")
    assert found["0.e0"] == []
    in_order = [row["n"] for part in found.values() for row in part if row["n"] < 1000]
    for key in range(11):
        assert [n for n in in_order if n % 11 == key] == list(range(key, 80, 11))
    assert (
        store.database.read(
            lambda on: on.execute(select(func.count()).select_from(transaction_chunks)).scalar_one()
        )
        == 0
    )


def test_bad_rows_of_a_transaction_appear_with_its_commit(store: Store) -> None:
    orders(store)
    with plain(store, bad_rows="route", flush_rows=2) as writer:
        gone = writer.begin()
        gone.append([*rows_with_time(0, 3), {"id": None}])
        gone.abort()
        kept = writer.begin()
        kept.append([*rows_with_time(0, 3), {"id": None}])
        kept.append([*rows_with_time(3, 6), {"id": "x"}])
        kept.commit()
        kept.commit()
        assert dict(writer.counts.bad) == {"missing": 1, "wrong type": 1}
    assert sorted(all_of(store, "orders", "n")) == list(range(6))
    assert all_of(store, "orders.errors", "reason") == ["missing", "wrong type"]


def test_a_writer_without_an_id_has_transactions_without_notes(store: Store) -> None:
    orders(store)
    with plain(store, None) as writer:
        transaction = writer.begin()
        transaction.append(table(0, 3))
        assert code_of(lambda: transaction.commit(time=5)) == "writer-without-id"
        assert transaction.commit().time is UNKNOWN
    assert len(all_of(store, "orders", "n")) == 3
