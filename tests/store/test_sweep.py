"""The sweep: orphans go, live files never do."""

from __future__ import annotations

from sqlalchemy import insert
from tests.store.filling import TIMED, chunks_of, fill

from tidegate.store import Store
from tidegate.store.catalog import intents
from tidegate.store.catalog.schema import transaction_chunks, transactions
from tidegate.store.compaction import compact
from tidegate.store.sweep import GRACE, Sweep, sweep
from tidegate.testing import ManualClock


def test_only_files_that_nobody_knows_are_deleted(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [1])
    stream_id = store.describe("s").id
    for path in ("s/0.e0/orphan", "s/0.e0/upload", "s/0.e0/open", "s/0.e0/aborted"):
        store.files.write(path, b"x")
    store.database.write(lambda on: intents.announce(on, ["s/0.e0/upload"], store.clock()))
    for name in ("open", "aborted"):
        begun = {"id": name, "stream_id": stream_id, "status": name}
        staged = {"transaction_id": name, "segment": 0, "rows": 1, "bytes": 1, "disorder": 0}
        questions = [
            insert(transactions).values(**begun, begun_at=0, expires_at=0, result=""),
            insert(transaction_chunks).values(**staged, path=f"s/0.e0/{name}"),
        ]
        for question in questions:
            store.database.write(lambda on, question=question: on.execute(question).rowcount)  # type: ignore[misc]
    assert sweep(store) == Sweep(expired=0, replaced=0, orphans=2)
    (chunk,) = chunks_of(store, "s", "0.e0")
    assert set(store.files.list()) == {chunk.path, "s/0.e0/upload", "s/0.e0/open"}


def test_an_announcement_that_nobody_withdraws_expires(store: Store, clock: ManualClock) -> None:
    store.files.write("s/0.e0/upload", b"x")
    store.database.write(lambda on: intents.announce(on, ["s/0.e0/upload"], store.clock()))
    clock.advance(intents.LIFE)
    assert sweep(store) == Sweep(expired=1, replaced=0, orphans=1)


def test_replaced_files_live_for_the_grace_period(store: Store, clock: ManualClock) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [1])
    fill(store, "s", "0.e0", [2])
    compact(store, "s")
    assert sweep(store) == Sweep(0, 0, 0)
    clock.advance(GRACE)
    assert sweep(store, "s") == Sweep(0, 2, 0)
    (chunk,) = chunks_of(store, "s", "0.e0")
    assert list(store.files.list()) == [chunk.path]


def test_the_files_of_a_deleted_stream_go_and_others_stay(store: Store) -> None:
    for name in ("s", "s.errors"):
        store.create_stream(name, TIMED, event_column="at")
        fill(store, name, "0.e0", [1])
    store.delete_stream("s")
    assert sweep(store).orphans == 1
    assert [path.split("/")[0] for path in store.files.list()] == ["s.errors"]
