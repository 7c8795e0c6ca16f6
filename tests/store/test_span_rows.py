"""The chunks that can hold a time: the answer is that of looking at all, the work is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, text, update
from tests.store.filling import TIMED, fill

from tidegate.eventtime.instants import LIMIT
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.facts import Spans
from tidegate.store import Store
from tidegate.store.catalog import span_rows, spans
from tidegate.store.catalog.chunks import Piece, publish
from tidegate.store.catalog.schema import chunks

Times = tuple[int, int]
Chunk = tuple[str, int, int, int, int]
"""Segment, offsets [start, end), smallest and largest time."""

ROWS = 10
NEW = 70
SEGMENTS = ("0.e0", "1.e0")


def overlapping(
    store: Store, a: Known, b: int, start: dict[str, int], below: dict[str, int], of: str = "s"
) -> Spans:
    return store.database.read(lambda on: spans.overlapping(on, of, a, b, start, below))


def told(found: Spans) -> list[Chunk]:
    columns = (found.start, found.end, found.min_time, found.max_time)
    rows = zip(found.partition, *columns, strict=True)
    return [(found.names[p], *map(int, rest)) for p, *rest in rows]


def catalogued(store: Store, stream: str, segment: str, times: list[Times], rows: int) -> None:
    """Chunks of a segment in the catalog, without any files."""
    stream_id = store.describe(stream).id
    made = [Piece(segment, "p", rows, 100, low, high, 0) for low, high in times]
    store.database.write(lambda on: publish(on, stream_id, made, store.clock(), staged=True))


def with_history(
    store: Store, old: int, stream: str = "s"
) -> tuple[dict[str, int], dict[str, int]]:
    """Old chunks and 70 new ones, of which two are late; return the cuts around the new ones."""
    store.create_stream(stream, TIMED, event_column="at", segments=2)
    half = (old + NEW) // 2
    for at, segment in enumerate(SEGMENTS):
        begins = [1000 + 10 * (2 * n + at) for n in range(half)]
        begins[-1] = 1000 + 10 * at  # one that comes very late
        lengths = [500 if n % 100 == 7 else 12 for n in range(half)]
        times = [(low, low + length) for low, length in zip(begins, lengths, strict=True)]
        catalogued(store, stream, segment, times, ROWS)
    # As the servers do by themselves after a while.
    store.database.write(lambda on: on.execute(text("ANALYZE")).close())
    end = half * ROWS
    return dict.fromkeys(SEGMENTS, end - NEW // 2 * ROWS), dict.fromkeys(SEGMENTS, end)


# ---- what is counted ----


@contextmanager
def rows_fetched(store: Store) -> Iterator[list[int]]:
    """Count the rows that leave the database, in the one number of the list."""
    count = [0]

    def counted(row: Any) -> Any:
        count[0] += 1
        return row

    def attach(connection: Any, *_: Any) -> None:
        if store.database.is_sqlite:
            connection.row_factory = lambda _, row: counted(row)
        else:
            connection.row_factory = lambda _: lambda values: counted(tuple(values))

    event.listen(store.database.engine, "checkout", attach)
    yield count
    event.remove(store.database.engine, "checkout", attach)


def work_of(store: Store, ask: Callable[[Connection], object]) -> int:
    """What an answer costs: steps of SQLite's machine, or tuples of PostgreSQL's scans."""
    if store.database.is_sqlite:
        return store.database.read(lambda on: _steps(on, ask))
    return store.database.read(lambda on: _tuples(on, ask))


def _steps(on: Connection, ask: Callable[[Connection], object]) -> int:
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    driver: Any = on.connection.driver_connection
    driver.set_progress_handler(step, 1)
    ask(on)
    driver.set_progress_handler(None, 1)
    return steps


def _tuples(on: Connection, ask: Callable[[Connection], object]) -> int:
    passed = text(
        """
        SELECT sum(pg_stat_get_xact_tuples_returned(oid)) FROM pg_class
        WHERE oid = 'chunks'::regclass
           OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'chunks'::regclass)
        """
    )
    # What a transaction counted less than a second ago is still among it.
    before = on.execute(passed).scalar_one()
    ask(on)
    return int(on.execute(passed).scalar_one() - before)


# ---- the work ----


def test_what_is_new_is_found_without_fetching_the_history(store: Store) -> None:
    old = 2_000
    before, now = with_history(store, old)
    watermark = 1000 + 10 * old
    asked: dict[tuple[Known, int], int] = {
        (UNKNOWN, LIMIT): NEW,
        (UNKNOWN, watermark): 2,  # the late ones
        (UNKNOWN, 0): 0,
        (1000, watermark + 10_000): NEW,
    }
    for (a, b), expected in asked.items():
        with rows_fetched(store) as fetched:
            assert len(overlapping(store, a, b, before, now)) == expected
        assert expected < fetched[0] <= 3 * NEW


def test_a_slice_is_found_without_fetching_what_lies_around_it(store: Store) -> None:
    _, now = with_history(store, 2_000)
    begin = dict.fromkeys(SEGMENTS, 0)
    for length in (100, 3_000):
        with rows_fetched(store) as fetched:
            found = len(overlapping(store, 9_000, 9_000 + length, begin, now))
        assert length / 10 <= found <= length / 10 + 20
        assert found < fetched[0] <= 2 * NEW + found + 20


def test_the_work_does_not_grow_with_the_history(store: Store) -> None:
    def works(stream: str, old: int) -> list[int]:
        before, now = with_history(store, old, stream)
        begin = dict.fromkeys(SEGMENTS, 0)
        asked: list[tuple[Known, int, dict[str, int]]] = [
            (UNKNOWN, LIMIT, before),
            (UNKNOWN, 1000 + 10 * old, before),
            (9_000, 9_100, begin),
            (9_000, 12_000, begin),
        ]

        def work(a: Known, b: int, start: dict[str, int]) -> int:
            return work_of(store, lambda on: spans.overlapping(on, stream, a, b, start, now))

        return [work(*one) for one in asked]

    for short, long in zip(works("s", 2_000), works("t", 20_000), strict=True):
        assert 0 < long < 1.5 * short


# ---- the answer ----


def naive(all_of: list[Chunk], a: Known, b: int, start: Any, below: Any) -> list[Chunk]:
    """The spans between two cuts that can hold a time in [a, b), one after the other."""
    found = []
    for segment, begin, end, low, high in all_of:
        first, last = max(begin, start[segment]), min(end, below[segment])
        held = low <= high and low < b and (a is UNKNOWN or high >= a)
        if first < last and held:
            found.append((segment, first, last, low, high))
    return found


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_the_answer_is_that_of_looking_at_every_chunk(data: st.DataObject, store: Store) -> None:
    """However few are fetched at once, and however far is counted."""
    stream = f"s{len(store.list_streams())}"
    count = data.draw(st.integers(1, 3), label="segments")
    names = [f"{n}.e0" for n in range(count)]
    store.create_stream(stream, TIMED, event_column="at", segments=count)
    lengths = st.sampled_from([0, 1, 2, 7, 8, 60, 500])
    times = st.builds(lambda low, length: (low, low + length), st.integers(-50, 300), lengths)
    all_of: list[Chunk] = []
    for name in names:
        rows = data.draw(st.integers(1, 3), label="rows")
        held = data.draw(st.lists(times, max_size=15), label=name)
        catalogued(store, stream, name, held, rows)
        all_of += [(name, n * rows, (n + 1) * rows, *pair) for n, pair in enumerate(held)]
    ends = {name: max((c[2] for c in all_of if c[0] == name), default=0) for name in names}
    bare = data.draw(st.booleans(), label="one without times")
    if all_of and bare:
        at = data.draw(st.integers(0, len(all_of) - 1), label="at")
        _without_times(store, stream, all_of[at])
        all_of[at] = (*all_of[at][:3], 1, 0)

    edges = sorted({time + by for c in all_of for time in c[3:] for by in (0, 1)} | {0})
    instants = st.sampled_from(edges) | st.integers(-60, 900)
    cuts = st.fixed_dictionaries({name: st.integers(0, ends[name]) for name in names})
    for _ in range(8):
        a: Known = data.draw(st.just(UNKNOWN) | instants, label="a")
        b = data.draw(instants, label="b")
        one, two = data.draw(cuts, label="one"), data.draw(cuts, label="two")
        start = {name: min(one[name], two[name]) for name in names}
        below = {name: max(one[name], two[name]) for name in names}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(span_rows, "_FEW", data.draw(st.sampled_from([0, 1, 64]), label="few"))
            patch.setattr(span_rows, "_COUNTED", data.draw(st.integers(1, 4), label="counted"))
            patch.setattr(span_rows, "_AT_ONCE", data.draw(st.integers(1, 3), label="at once"))
            found = overlapping(store, a, b, start, below, stream)
        assert told(found) == naive(all_of, a, b, start, below)


def _without_times(store: Store, stream: str, chunk: Chunk) -> None:
    here = (
        (chunks.c.stream_id == store.describe(stream).id)
        & (chunks.c.segment == int(chunk[0].split(".")[0]))
        & (chunks.c.start_offset == chunk[1])
    )
    bare = update(chunks).where(here).values(min_time=None, max_time=None, width_class=0)
    assert store.database.write(lambda on: on.execute(bare).rowcount) == 1


def test_the_first_chunk_behind_truncated_rows_is_not_among_them(store: Store) -> None:
    store.create_stream("s", TIMED, event_column="at")
    fill(store, "s", "0.e0", [100, 120, 110])
    fill(store, "s", "0.e0", [130, 150])
    store.truncate("s", before={"0.e0": 3})
    assert told(overlapping(store, 125, 200, {"0.e0": 0}, {"0.e0": 2})) == []
    assert told(overlapping(store, 125, 200, {"0.e0": 0}, {"0.e0": 4})) == [
        ("0.e0", 3, 4, 130, 150)
    ]
