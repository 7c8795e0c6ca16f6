"""The commit of staged rows: one transaction, and a batch of a query counts once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.store.rows import create, table
from tests.store.test_writer import code_of, intents_left
from tests.store.visible import all_of

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.store_log import StoreLog
from tidegate.store import Store
from tidegate.store.catalog.writer_batches import Batch
from tidegate.store.staged_commit import commit_staged
from tidegate.store.staging import Staged, stage
from tidegate.store.steps import listening
from tidegate.testing import ManualClock


def staged(store: Store, numbers: Sequence[int], **settings: Any) -> list[Staged]:
    return [stage(store, "orders", table(numbers), "job", **settings)]


def noted(store: Store) -> dict[str, Any]:
    """What every known writer has noted."""
    found = StoreLog(store, "orders").snapshot({}).writers
    return {writer.name: writer.noted for writer in found}


def commit(store: Store, rows: list[Staged], number: int, query: str = "q", **more: Any) -> bool:
    return commit_staged(store, "orders", rows, writer_id="etl", batch=Batch(query, number), **more)


def test_a_batch_counts_once_however_often_it_is_committed(store: Store) -> None:
    create(store, "orders", segments=2)
    assert commit(store, staged(store, range(10)), 0)
    for _ in range(2):
        assert not commit(store, staged(store, range(10)), 0)
    assert commit(store, staged(store, range(10, 20)), 1)
    assert sorted(all_of(store, "orders", "n")) == list(range(20))
    assert intents_left(store) == 0
    assert len(list(store.files.list())) == 4, "the files of replays are gone"


def test_a_query_may_begin_at_any_batch_and_leave_some_out(store: Store) -> None:
    create(store, "orders")
    assert commit(store, staged(store, range(5)), 7)
    assert commit(store, staged(store, range(5, 8)), 9)
    assert all_of(store, "orders", "n") == list(range(8))


@pytest.mark.parametrize(("query", "number"), [("q", 2), ("other", 3), ("other", 4)])
def test_another_history_is_fenced_and_writes_nothing(
    query: str, number: int, store: Store
) -> None:
    create(store, "orders")
    commit(store, staged(store, range(5)), 3)
    rows = staged(store, range(5))
    assert code_of(lambda: commit(store, rows, number, query, note=99)) == "batch-fenced"
    assert all_of(store, "orders", "n") == list(range(5))
    assert noted(store).get("etl", UNKNOWN) is UNKNOWN


def test_a_lost_answer_neither_doubles_rows_nor_fails(store: Store) -> None:
    create(store, "orders", segments=2)
    for writer_id, batch in ((None, None), ("load", None), ("etl", Batch("q", 0))):
        before = len(all_of(store, "orders", "n"))
        rows = staged(store, range(10))
        answers = iter([writer_id is None, True])  # of opening, where there is an id; of the commit

        def lose(step: str, answers: Iterator[bool] = answers) -> None:
            if step == "catalog: after commit" and next(answers, False):
                for _ in answers:
                    """Only once."""
                raise OperationalError("lost", None, ConnectionError("lost"))

        with listening(lose):
            assert commit_staged(store, "orders", rows, writer_id=writer_id, batch=batch)
        assert next(answers, None) is None
        assert len(all_of(store, "orders", "n")) == before + 10


def test_rows_and_their_note_come_together_and_the_highest_stands(store: Store) -> None:
    create(store, "orders")
    commit(store, staged(store, range(5)), 0, note=4)
    assert noted(store) == {"etl": 4}
    commit(store, staged(store, range(5)), 1, note=2)
    assert noted(store) == {"etl": 4}
    commit(store, [], 2, note=9)
    assert noted(store) == {"etl": 9}
    commit(store, staged(store, range(9, 12)), 2, note=11)
    assert noted(store) == {"etl": 9}, "a replay notes nothing"
    assert StoreLog(store, "orders").snapshot({}).marks[-1].lower <= 9


def test_a_writer_that_says_goodbye_is_not_waited_for(store: Store, clock: ManualClock) -> None:
    create(store, "orders")
    commit(store, staged(store, range(5)), 0, note=3)
    rows = staged(store, range(5, 8))
    commit_staged(store, "orders", rows, writer_id="load", note=8, goodbye=True)
    commit(store, staged(store, range(8, 30)), 1, note=30)
    seen = []
    for _ in range(4):
        clock.advance(timedelta(seconds=2))  # far less than the stream's mark_timeout
        store.see_to_marks("orders")
        seen.append(StoreLog(store, "orders").snapshot({}).marks[-1].lower)
    assert seen[-1] == 30
    assert set(noted(store)) == {"etl"}


def test_a_scale_before_the_commit_moves_the_rows(store: Store) -> None:
    create(store, "orders", segments=2)
    rows = staged(store, range(20))
    store.merge("orders", "0.e0", "1.e0")
    assert commit(store, rows, 0)
    assert all_of(store, "orders", "n") == list(range(20))


def test_bad_rows_count_as_taken_and_are_routed_once(store: Store) -> None:
    create(store, "orders")
    rows = [{"key": 1, "n": 1}, *table(range(3)).to_pylist()]
    for _ in range(2):
        again = [stage(store, "orders", rows, "job", bad_rows="route", writer="etl")]
        commit(store, again, 0)
    assert all_of(store, "orders", "n") == list(range(3))
    assert all_of(store, "orders.errors", "reason") == ["missing"]
