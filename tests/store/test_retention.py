"""Retention: what goes, what is remembered of it, and who holds it back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.store.filling import TIMED, chunks_of, fill

from tidegate.errors import TidegateError
from tidegate.marks.cut import Cut
from tidegate.store import Retention, Store
from tidegate.store.compaction import compact
from tidegate.store.maintenance import HOLD_LIFE
from tidegate.store.reading import read
from tidegate.store.retention import Truncation
from tidegate.store.sweep import GRACE
from tidegate.testing import ManualClock

HOUR = timedelta(hours=1)


def code_of(store: Store, start: int) -> str:
    with pytest.raises(TidegateError) as caught:
        read(store, "s", "0.e0", start, 9)
    return caught.value.code


def test_a_truncated_row_cannot_be_asked_for(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [10, 20, 30])
    fill(store, "s", "0.e0", [25, 40])
    size = chunks_of(store, "s", "0.e0")[0].bytes
    done = store.truncate("s", before={"0.e0": 4})
    assert done == Truncation("s", Cut({"0.e0": 4}), 4, size, ())
    (record,) = store.segments("s")
    assert (record.start, record.end, record.truncated_time) == (4, 5, 40)
    assert record.bytes == sum(chunk.bytes for chunk in chunks_of(store, "s", "0.e0"))
    assert code_of(store, 3) == "rows-truncated"
    assert [b.num_rows for b in read(store, "s", "0.e0", 4, 5)] == [1]
    assert store.truncate("s", before={"0.e0": 2}).rows == 0  # nothing comes back


def test_a_time_gives_up_only_rows_before_it(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    for times in ([10, 20], [15, 30], [5, 50]):
        fill(store, "s", "0.e0", times)
    assert store.truncate("s", time=30).cut == Cut({"0.e0": 2})
    assert store.cut_at("s", 30) == Cut({"0.e0": 2})


def test_segments_are_truncated_in_lineage_order(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at", segments=2)
    fill(store, "s", "0.e0", [100])
    fill(store, "s", "1.e0", [10])
    store.scale("s", ["0.e0", "1.e0"], [(0, 1)])
    fill(store, "s", "2.e1", [20])
    fill(store, "s", "2.e1", [200])
    # By their times the rows of 2.e1 up to 20 could go, but 0.e0 before it stays.
    assert store.truncate("s", time=50).cut == Cut({"0.e0": 0, "1.e0": 1})
    assert store.truncate("s", time=150).cut == Cut({"2.e1": 1})
    assert [record.start for record in store.segments("s")] == [1, 1, 1]


def test_a_running_job_holds_what_it_needs(store: Store, clock: ManualClock) -> None:
    store.create_stream("s", TIMED, event_column="at", retention=Retention(age=HOUR))
    for n in range(3):
        fill(store, "s", "0.e0", [n, n])
    store.hold("s", "job", {"0.e0": 2})
    store.hold("s", "other", {"0.e0": 6})
    clock.advance(2 * HOUR)
    (done,) = store.maintain("s").truncations
    assert (done.cut, done.held_by) == (Cut({"0.e0": 2}), ("job",))
    store.hold("s", "job", {"0.e0": 4})
    # What is left is one chunk by now, and half of it is needed.
    assert store.truncate("s", before={"0.e0": 6}).cut == Cut({"0.e0": 2})
    assert store.release("s", "job")
    assert not store.release("s", "job")
    assert store.truncate("s", before={"0.e0": 5}).cut == Cut({"0.e0": 5})
    with pytest.raises(TidegateError) as caught:
        store.hold("s", "late", {"0.e0": 4})
    assert caught.value.code == "rows-truncated"


def test_a_hold_that_nobody_renews_is_dropped(store: Store, clock: ManualClock) -> None:
    store.create_stream("s", TIMED, event_column="at", retention=Retention(age=HOUR))
    fill(store, "s", "0.e0", [1])
    store.hold("s", "gone", {"0.e0": 0})
    clock.advance(HOLD_LIFE + HOUR)
    done = store.maintain()
    assert done.holds_dropped == (("s", "gone"),)
    assert done.truncations[0].cut == Cut({"0.e0": 1})


def test_age_counts_from_the_commit_and_size_takes_the_oldest(
    store: Store, clock: ManualClock
) -> None:
    store.create_stream("s", TIMED, event_column="at", segments=2)
    for segment in ("0.e0", "1.e0", "0.e0", "1.e0"):
        fill(store, "s", segment, [clock.now() - 10**15])  # history, loaded now
        clock.advance(HOUR)
    assert store.truncate("s", age=5 * HOUR).rows == 0
    assert store.truncate("s", age=3.5 * HOUR).cut == Cut({"0.e0": 1, "1.e0": 0})
    left = sum(record.bytes for record in store.segments("s"))
    assert store.truncate("s", size=left).rows == 0
    assert store.truncate("s", size=left - 1).cut == Cut({"0.e0": 1, "1.e0": 1})
    assert store.truncate("s", size=0).cut == Cut({"0.e0": 2, "1.e0": 2})


def test_truncated_files_live_on_for_a_grace_period(store: Store, clock: ManualClock) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [1])
    store.truncate("s", before={"0.e0": 1})
    assert store.maintain().sweep.replaced == 0
    assert len(list(store.files.list())) == 1
    clock.advance(GRACE)
    assert store.maintain().sweep.replaced == 1
    assert list(store.files.list()) == []


def test_a_truncation_says_how_far_exactly_once(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    for settings in ({}, {"age": HOUR, "size": 3}):
        with pytest.raises(TidegateError) as caught:
            store.truncate("s", **settings)  # type: ignore[arg-type]
        assert caught.value.code == "truncation-unclear"


def test_a_chunk_that_is_held_in_part_stays_whole(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [10, 20])
    fill(store, "s", "0.e0", [100, 110])
    fill(store, "s", "0.e0", [120])
    store.hold("s", "job", store.cut_at("s", 50))
    compact(store, "s")
    for before in (3, 1):  # inside what is held, and before it in the same chunk
        done = store.truncate("s", before={"0.e0": before})
        assert (done.rows, done.cut) == (0, Cut({"0.e0": 0}))
    assert store.cut_at("s", 50) == Cut({"0.e0": 0})
    store.release("s", "job")
    assert store.truncate("s", before={"0.e0": 3}).rows == 3
