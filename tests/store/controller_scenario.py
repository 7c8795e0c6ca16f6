"""A controller's life that can be killed at every step, and what must hold afterwards.

Two streams, two writers that note and a silent one; marks, a scale, retention, compaction and sweep
are due while the controller runs. The parent lets a second controller take over, and compares with
what was appended.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import select
from tests.store.filling import chunks_of
from tests.store.noting import marks_of

from tidegate.marks.lineage import Lineage
from tidegate.marks.mark import Mark
from tidegate.store import Store
from tidegate.store.catalog import intents, marks, streams
from tidegate.store.catalog.schema import replaced, transaction_chunks
from tidegate.store.compaction import compact
from tidegate.store.config import Retention, Scaling
from tidegate.store.controller import LEASE, MarkController
from tidegate.store.reading import read_between
from tidegate.store.steps import listening
from tidegate.store.sweep import GRACE
from tidegate.testing import ManualClock

START = 1_800_000_000_000_000
STREAMS = ("aged", "kept")
WRITERS = ("east", "west")
ROWS = 12
KEYS = 11
SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("n", pa.int64()),
        ("by", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
AGE = timedelta(minutes=90)
PAUSE = timedelta(seconds=31)
"""Between two cycles: more than a silent writer is waited for."""
LIVE = "aged/0.e0/upload.parquet"
"""An upload that is under way all the time."""
LAST = 4
"""The phase of the parent; phase 0 is old, 1 was there before the controller, 2 and 3 beside it."""


@dataclass(frozen=True)
class Row:
    """A row as it was appended."""

    n: int
    by: str
    time: int


def rows_of(phase: int) -> list[Row]:
    """What both writers append in a phase: from 1000 times its number on, some past the next."""
    return [
        Row(1000 * phase + 100 * w + n, name, 1000 * phase + (n * 677) % 1500)
        for w, name in enumerate(WRITERS)
        for n in range(ROWS)
    ]


def append(store: Store, phase: int) -> None:
    """Append a phase to both streams in small chunks, and note where the next one begins."""
    for stream in STREAMS:
        for name in WRITERS:
            mine = [row for row in rows_of(phase) if row.by == name]
            writer = store.writer(stream, name, notes_time=True, flush_age=None, flush_rows=4)
            for first in range(0, ROWS, 4):
                writer.append(_table(mine[first : first + 4]))
            writer.note_time(1000 * (phase + 1))
            writer.abandon()


def _table(rows: Iterable[Row]) -> pa.Table:
    columns = [(row.n % KEYS, row.n, row.by, row.time) for row in rows]
    key, n, by, time = zip(*columns, strict=True)
    at = pa.array(time, pa.int64()).cast(SCHEMA.field("at").type)
    return pa.table([pa.array(key), pa.array(n), pa.array(by), at], schema=SCHEMA)


def prepare(url: str, data: Path) -> None:
    """A store in which everything is due that a controller does."""
    clock = ManualClock(START)
    with Store.open(url, data=data, clock=clock.now, embedded_marks=False) as store:
        of_both: dict[str, Any] = {"event_column": "at", "routing_key": ("key",), "segments": 2}
        store.create_stream(
            "aged",
            SCHEMA,
            **of_both,
            max_future=None,
            retention=Retention(age=AGE),
            scaling=Scaling(target_rows=0.01),
        )
        store.create_stream("kept", SCHEMA, **of_both, max_future=None)
        append(store, 0)
        compact(store, "kept")
        store.files.write("aged/0.e0/orphan.parquet", b"x")
        store.files.write(LIVE, b"x")
        life = timedelta(days=1)
        store.database.write(lambda on: intents.announce(on, [LIVE], START, life))
        open_one = store.writer("kept", flush_rows=1).begin(timeout=life)
        open_one.append(_table([Row(-1, "nobody", 0)]))
        clock.advance(timedelta(hours=2))
        append(store, 1)
        for stream in STREAMS:
            store.writer(stream, "silent", notes_time=True).abandon()


def live(url: str, data: str, told: str, kill_at: int) -> None:
    """The child: three cycles with rows between them; killed before the n-th step of a cycle."""
    passed = 0

    def step(_: str) -> None:
        nonlocal passed
        passed += 1
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    clock = ManualClock(START)
    clock.advance(timedelta(hours=2))
    with (
        open(told, "ab", buffering=0) as file,
        Store.open(url, data=data, clock=clock.now, embedded_marks=False) as store,
    ):
        controller = MarkController(store, "first", scale_interval=PAUSE, maintain_interval=PAUSE)
        with listening(step):
            controller.cycle()
        for phase in range(2, LAST):
            append(store, phase)
            file.write(f"phase {phase}\n".encode())
            clock.advance(PAUSE)
            with listening(step):
                made = controller.cycle()
            assert set(made) == set(STREAMS)
        with listening(step):
            controller.retire()
        file.write(f"steps {passed}\n".encode())


def take_over(url: str, data: Path, told: Path) -> None:
    """The parent: what the first controller left is right, and a second one goes on from it."""
    words = [line.split() for line in told.read_text().splitlines()]
    phases = {0, 1, *(int(number) for word, number in words if word == "phase")}
    clock = ManualClock(START)
    clock.advance(timedelta(hours=2) + LAST * PAUSE + LEASE)
    with Store.open(url, data=data, clock=clock.now, embedded_marks=False) as store:
        before = {name: _check_marks(store, name) for name in STREAMS}
        for name in STREAMS:
            _check_rows(store, name, phases, truncated=None)
        second = MarkController(store, "second", scale_interval=PAUSE, maintain_interval=PAUSE)
        second.cycle()
        assert len(second.tokens) == streams.BUCKETS
        append(store, LAST)
        clock.advance(PAUSE)
        made = second.cycle()
        for name in STREAMS:
            assert made[name].lower == 1000 * (LAST + 1)
            assert made[name].writers == frozenset(WRITERS)
            after = _check_marks(store, name)
            assert after[: len(before[name])] == before[name]
            assert after[-1] == made[name]
            _check_rows(store, name, phases | {LAST}, truncated=name == "aged")
        clock.advance(GRACE)
        assert not store.maintain().failures
        for name in STREAMS:
            _check_rows(store, name, phases | {LAST}, truncated=name == "aged")
        _check_files(store)


def _places(store: Store, stream: str) -> dict[int, tuple[str, int]]:
    """Where each row lies, read file by file: every row once, and no gap in a segment."""
    places: dict[int, tuple[str, int]] = {}
    for record in store.segments(stream):
        at: int | None = None
        for chunk in chunks_of(store, stream, record.name):
            assert chunk.start == at or (at is None and chunk.start <= record.start)
            at = chunk.end
            with store.files.open(chunk.path) as source:
                found = pq.read_table(source).slice(chunk.skip).column("n").to_pylist()
            assert len(found) == chunk.rows
            for offset, n in enumerate(found, chunk.start):
                if offset >= record.start:
                    assert n not in places
                    places[n] = (record.name, offset)
        assert at == record.end or (at is None and record.start == record.end)
    return places


def _check_rows(store: Store, stream: str, phases: set[int], truncated: bool | None) -> None:
    """Everything that was appended can be read once; what is old may be truncated, or must be."""
    young = {row.n for phase in phases - {0} for row in rows_of(phase)}
    old = {row.n for row in rows_of(0)}
    found = [
        (row["key"], row["n"], row["by"])
        for batch in read_between(store, stream)
        for row in batch.to_pylist()
    ]
    numbers = Counter(n for _, n, _ in found)
    assert set(numbers.values()) == {1}
    assert set(numbers) == set(_places(store, stream))
    assert set(numbers) - old == young
    if truncated is not None or stream == "kept":
        assert set(numbers) & old == (set() if truncated else old)
    latest: dict[tuple[int, str], int] = {}
    for key, n, by in found:
        assert latest.get((key, by), -1) < n
        latest[key, by] = n


def _check_marks(store: Store, stream: str) -> list[Mark]:
    """Marks claim only what is there, never go back, and are what the cycle remembers."""
    lineage = store.database.read(lambda on: streams.lineage(on, store.describe(stream).id))
    _check_whole(lineage)
    appended = {row.n: row for phase in range(LAST + 1) for row in rows_of(phase)}
    places = _places(store, stream)
    found = marks_of(store, stream)
    for last, mark in zip([None, *found], found, strict=False):
        assert mark.cut.is_whole(lineage)
        if last is not None:
            assert mark.lower >= last.lower
            assert mark.upper >= last.upper
            assert mark.cut.join(last.cut, lineage) == mark.cut
        passed = lineage.ancestors_of(mark.cut)
        for n, (segment, offset) in places.items():
            if appended[n].by in mark.writers and appended[n].time < mark.lower:
                assert segment in passed or offset < mark.cut.get(segment, 0)
    seen = store.database.read(lambda on: marks.schedule(on, stream))
    assert seen is not None
    assert seen.last_number == len(found) - 1
    assert seen.generation.last == (found[-1] if found else None)
    return found


def _check_whole(lineage: Lineage) -> None:
    """The open segments cover all keys once."""
    ranges = sorted((s.low, s.high) for s in lineage.open_in(lineage.epoch))
    bounds = [Fraction(0), *(high for _, high in ranges)]
    assert [low for low, _ in ranges] == bounds[:-1]
    assert bounds[-1] == 1


def _check_files(store: Store) -> None:
    """The files are those of the chunks, of those who work, and of the grace period; no other."""
    known = {
        chunk.path
        for stream in STREAMS
        for record in store.segments(stream)
        for chunk in chunks_of(store, stream, record.name)
    }
    for column in (transaction_chunks.c.path, replaced.c.path):
        paths = store.database.read(lambda on, c=column: set(on.execute(select(c)).scalars()))  # type: ignore[misc]
        assert column.table is replaced or len(paths) == 1
        known |= paths
    assert set(store.files.list()) == known | {LIVE}
