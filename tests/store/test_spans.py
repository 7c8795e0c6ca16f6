"""What a planner asks of a stream: facts at one moment, spans by time, cuts by time."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import insert
from tests.store.filling import PLAIN, TIMED, fill

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.marks.cut import Cut
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.writer_mark import WriterMark
from tidegate.planning.facts import Spans, StreamFacts
from tidegate.store import Store
from tidegate.store.catalog import span_rows, spans
from tidegate.store.catalog.schema import marks, writers
from tidegate.testing import ManualClock, MemoryLog


def snapshot(store: Store, after: Mapping[str, int]) -> StreamFacts:
    return store.database.read(lambda on: spans.snapshot(on, "s", after))


def overlapping(
    store: Store, a: Known, b: int, start: Mapping[str, int], below: Mapping[str, int]
) -> Spans:
    return store.database.read(lambda on: spans.overlapping(on, "s", a, b, start, below))


def told(found: Spans) -> list[tuple[str, int, int, int, int]]:
    columns = (found.start, found.end, found.min_time, found.max_time)
    rows = zip(found.partition, *columns, strict=True)
    return [(found.names[p], *map(int, rest)) for p, *rest in rows]


def scaled(store: Store) -> None:
    """Two segments; the first is split after its rows."""
    store.create_stream("s", TIMED, event_column="at", segments=2)
    fill(store, "s", "0.e0", [100, 120, 110])
    fill(store, "s", "0.e0", [130, 105])
    fill(store, "s", "1.e0", [90, 95])
    store.scale("s", ["0.e0"], [(0, "1/4"), ("1/4", "1/2")])
    fill(store, "s", "2.e1", [125, 140])
    fill(store, "s", "3.e1", [150])


def test_a_snapshot_tells_partitions_spans_and_arrivals(store: Store, clock: ManualClock) -> None:
    scaled(store)
    clock.advance(timedelta(seconds=9))
    fill(store, "s", "1.e0", [99])
    facts = snapshot(store, {})
    there = facts.partitions
    assert there.names == ("0.e0", "1.e0", "2.e1", "3.e1")
    assert there.latest.tolist() == [5, 3, 2, 1]
    assert there.sealed.tolist() == [True, False, False, False]
    assert there.successors == {"0.e0": ("2.e1", "3.e1")}
    assert there.low.tolist() == [0.0, 0.5, 0.0, 0.25]
    assert there.high.tolist() == [0.5, 1.0, 0.25, 0.5]
    assert (there.arrived_at - there.arrived_at.min()).tolist() == [0, 9_000_000, 0, 0]
    assert told(facts.spans) == [
        ("0.e0", 0, 3, 100, 120),
        ("0.e0", 3, 5, 105, 130),
        ("1.e0", 0, 2, 90, 95),
        ("1.e0", 2, 3, 99, 99),
        ("2.e1", 0, 2, 125, 140),
        ("3.e1", 0, 1, 150, 150),
    ]
    # 110 lies 10 behind 120; 105 lies 25 behind the 130 before it.
    assert facts.spans.disorder.tolist() == [10, 25, 0, 0, 0, 0]
    assert facts.spans.rows.tolist() == [3, 2, 2, 1, 2, 1]


def test_a_snapshot_after_a_cut_has_only_what_lies_behind_it(store: Store) -> None:
    scaled(store)
    inside = snapshot(store, {"0.e0": 1, "1.e0": 2})
    assert inside.partitions.names == ("0.e0", "1.e0", "2.e1", "3.e1")
    assert told(inside.spans)[:2] == [("0.e0", 1, 3, 100, 120), ("0.e0", 3, 5, 105, 130)]
    assert inside.spans.bytes[0] < snapshot(store, {}).spans.bytes[0]
    passed = snapshot(store, {"2.e1": 1, "3.e1": 1, "1.e0": 0})
    assert passed.partitions.names == ("1.e0", "2.e1", "3.e1")
    assert told(passed.spans) == [("1.e0", 0, 2, 90, 95), ("2.e1", 1, 2, 125, 140)]


def test_without_an_event_column_the_time_is_the_commit(store: Store, clock: ManualClock) -> None:
    store.create_stream("s", PLAIN)
    begin = clock.now()
    fill(store, "s", "0.e0", [0, 0])
    clock.advance(timedelta(seconds=1))
    fill(store, "s", "0.e0", [0])
    later = begin + 1_000_000
    assert told(snapshot(store, {}).spans) == [
        ("0.e0", 0, 2, begin, begin),
        ("0.e0", 2, 3, later, later),
    ]
    assert store.cut_at("s", begin + 1) == Cut({"0.e0": 2})


def test_the_past_is_asked_for_as_in_the_log_in_memory(store: Store) -> None:
    """The same rows in both; every question has the same answer."""
    dice = random.Random(5)
    log = MemoryLog()
    log.add_stream("s", ["0.e0", "1.e0"])
    store.create_stream("s", TIMED, event_column="at", segments=2)

    def append(segment: str, count: int) -> None:
        for _ in range(count):
            at = dice.randrange(1000)
            times = [at + dice.randrange(dice.choice([1, 5, 300])) for _ in range(3)]
            fill(store, "s", segment, times)
            log.append("s", segment, times)

    append("0.e0", 8)
    append("1.e0", 8)
    store.scale("s", ["1.e0"], [("1/2", "3/4"), ("3/4", 1)])
    log.scale("s", ["1.e0"], {"2.e1": (0.5, 0.75), "3.e1": (0.75, 1.0)})
    for segment in ("0.e0", "2.e1", "3.e1"):
        append(segment, 4)
    cuts: list[dict[str, int]] = [
        {"0.e0": 0, "1.e0": 0},
        {"0.e0": 4, "1.e0": 10},
        {"0.e0": 20, "2.e1": 0, "3.e1": 5},
        {"0.e0": 36, "2.e1": 12, "3.e1": 12},
    ]
    for few in (0, 64):  # by the shorter way, and by looking through
        for start, below in [(cuts[i], cuts[j]) for i in range(4) for j in range(i, 4)]:
            a: Known = UNKNOWN if dice.random() < 0.5 else dice.randrange(1000)
            b = dice.randrange(1300)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(span_rows, "_FEW", few)
                found = overlapping(store, a, b, start, below)
            expected = log.overlapping("s", a, b, start, below)
            assert sorted(told(found)) == sorted(told(expected))


def test_cut_at_is_whole_and_has_every_later_row_behind_it(store: Store) -> None:
    scaled(store)
    assert store.cut_at("s", 100) == Cut({"0.e0": 0, "1.e0": 2})
    assert store.cut_at("s", 121) == Cut({"0.e0": 3, "1.e0": 2})
    assert store.cut_at("s", 131) == Cut({"2.e1": 0, "3.e1": 0, "1.e0": 2})
    assert store.cut_at("s", 141) == Cut({"2.e1": 2, "3.e1": 0, "1.e0": 2})


def test_time_at_and_the_marks_after_a_cut(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [1, 2, 3, 4])
    stream_id = store.describe("s").id
    rows = [
        {
            "stream_id": stream_id,
            "number": 7 + i,
            "lower": 10 * i,
            "upper": 10 * i + 1,
            "cut": json.dumps({"0.e0": i}),
            "writers": '["w"]',
            "made_at": 0,
        }
        for i in range(1, 4)
    ]
    store.database.write(lambda on: on.execute(insert(marks), rows).rowcount)
    assert [store.time_at("s", {"0.e0": n}) for n in range(5)] == [UNKNOWN, 10, 20, 30, 30]
    assert [mark.lower for mark in snapshot(store, {"0.e0": 2}).marks] == [20, 30]
    assert [mark.lower for mark in snapshot(store, {}).marks] == [10, 20, 30]


def test_the_writers_that_note_time_are_known(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    stream_id = store.describe("s").id
    noted = json.dumps(WriterNotes(WriterMark("b", 77, Cut({"0.e0": 1}))).to_json())
    rows = [
        {
            "stream_id": stream_id,
            "token": 1,
            "opened_at": 0,
            "seen_at": 0,
            "name": name,
            "notes": notes,
            "notes_time": notes_time,
        }
        for name, notes, notes_time in [("a", "", True), ("b", noted, True), ("c", "", False)]
    ]
    store.database.write(lambda on: on.execute(insert(writers), rows).rowcount)
    assert [(w.name, w.noted) for w in snapshot(store, {}).writers] == [("a", UNKNOWN), ("b", 77)]


def test_what_is_truncated_cannot_be_asked_for_by_time(store: Store) -> None:
    scaled(store)
    store.truncate("s", before={"0.e0": 3, "1.e0": 0})
    whole, end = {"0.e0": 0, "1.e0": 0}, {"0.e0": 5, "1.e0": 2}
    with pytest.raises(TidegateError) as caught:
        overlapping(store, 110, 115, whole, end)
    assert caught.value.code == "rows-truncated"
    assert caught.value.fields["cut"] == {"0.e0": 3, "1.e0": 0}
    with pytest.raises(TidegateError) as caught:
        store.cut_at("s", 120)
    assert caught.value.code == "rows-truncated"
    # Nothing before 100 was there, nothing after 120 is gone, and nothing behind offset 3 is.
    assert len(overlapping(store, UNKNOWN, 100, whole, end)) == 1
    assert len(overlapping(store, 121, 200, whole, end)) == 1
    assert len(overlapping(store, 105, 115, {"0.e0": 3, "1.e0": 0}, end)) == 1
    assert store.cut_at("s", 121) == Cut({"0.e0": 3, "1.e0": 2})
    assert np.array_equal(snapshot(store, {}).partitions.start, [3, 0, 0, 0])
