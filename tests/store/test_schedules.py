"""Random schedules of everything at once, against a model that only keeps lists.

Whatever writers, transactions, scales, crashes, compactions, truncations and controllers do: every
row before a mark's lower number, from a writer in that mark, lies before its cut; every committed
row keeps its place, is read once by a reader group, in order per key, and is planned once.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.noting import marks_of

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.log import facts_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning.plan import plan
from tidegate.planning.policy import Policy, Release, Strategy
from tidegate.planning.query import Query
from tidegate.planning.state import PlannerState
from tidegate.store import Store
from tidegate.store.catalog import streams
from tidegate.store.compaction import compact
from tidegate.store.controller import MarkController
from tidegate.store.mark_cycle import EMBEDDED_INTERVAL
from tidegate.store.reader import Reader
from tidegate.store.reading import read_between
from tidegate.store.transaction import Transaction
from tidegate.store.writer import Writer
from tidegate.testing import ManualClock

KEYS = 4
TIMEOUT = timedelta(seconds=5)
SCHEMA = pa.schema([("key", pa.int64()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


@dataclass
class Row:
    writer: str
    time: int
    in_transaction: bool


class World:
    """A store, two writers, two controllers, two readers; and lists of what should be there."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(1_800_000_000_000_000)
        self.store = Store.open(folder, clock=self.clock.now)
        self.store.create_stream(
            "s",
            SCHEMA,
            event_column="at",
            routing_key=("key",),
            segments=2,
            max_future=None,
            mark_timeout=TIMEOUT,
        )
        self.rows: dict[int, Row] = {}
        self.committed: set[int] = set()
        self.places: dict[int, tuple[str, int]] = {}
        self.noted = {"w0": 0, "w1": 0}
        self.buffered: dict[str, list[int]] = {"w0": [], "w1": []}
        self.writers = {name: self.opened(name) for name in self.noted}
        self.open: dict[str, tuple[Transaction, int, list[int]]] = {}
        self.controllers = [MarkController(self.store, "c", lease=TIMEOUT) for _ in range(2)]
        self.group = self.store.reader_group("g", ["s"], expiry=timedelta(hours=1))
        self.readers: dict[int, Reader] = {}
        self.read: list[int] = []
        self.seen: dict[int, list[int]] = {0: [], 1: []}

    def opened(self, name: str) -> Writer:
        return self.store.writer("s", name, notes_time=True, flush_age=None)

    def make(self, writer: str, floor: int, times: list[int], inside: bool) -> pa.Table:
        """New rows, none before `floor`."""
        first = len(self.rows)
        numbers = list(range(first, first + len(times)))
        at = [floor + time for time in times]
        self.rows |= {n: Row(writer, t, inside) for n, t in zip(numbers, at, strict=True)}
        stamps = pa.array(at, pa.int64()).cast(SCHEMA.field("at").type)
        return pa.table([pa.array([n % KEYS for n in numbers]), numbers, stamps], schema=SCHEMA)

    def durable(self, writer: str) -> None:
        self.committed.update(self.buffered[writer])
        self.buffered[writer] = []

    # ---- what may happen ----

    def append(self, who: int, times: list[int]) -> None:
        name = f"w{who}"
        before = len(self.rows)
        self.writers[name].append(self.make(name, self.noted[name], times, False))
        self.buffered[name] += range(before, len(self.rows))

    def note(self, who: int, times: list[int]) -> None:
        name = f"w{who}"
        self.noted[name] += sum(times)
        self.clock.advance(EMBEDDED_INTERVAL)  # So that it runs a cycle, if no controller does.
        self.writers[name].note_time(self.noted[name])
        self.durable(name)

    def flush(self, who: int, _: list[int]) -> None:
        self.writers[f"w{who}"].flush()
        self.durable(f"w{who}")

    def transact(self, who: int, times: list[int]) -> None:
        """Begin a transaction, or append to the one that is open."""
        name = f"w{who}"
        if name not in self.open:
            begun = self.writers[name].begin(timedelta(hours=1))
            self.durable(name)
            self.open[name] = (begun, self.noted[name], [])
        transaction, floor, inside = self.open[name]
        before = len(self.rows)
        transaction.append(self.make(name, floor, times, True))
        inside += range(before, len(self.rows))

    def end(self, who: int, times: list[int]) -> None:
        """Commit, with a time or without, or abort."""
        name = f"w{who}"
        if name not in self.open:
            return
        transaction, _, inside = self.open.pop(name)
        if len(times) == 1:
            transaction.abort()
            return
        if len(times) == 2:
            # What is buffered was appended before the promise, and may come after it.
            self.flush(who, times)
            self.noted[name] += sum(times)
            transaction.commit(self.noted[name])
        else:
            transaction.commit()
        self.committed.update(inside)

    def crash(self, who: int, _: list[int]) -> None:
        name = f"w{who}"
        self.writers[name].abandon()
        self.buffered[name] = []
        self.open.pop(name, None)
        self.writers[name] = self.opened(name)

    def close(self, who: int, _: list[int]) -> None:
        name = f"w{who}"
        self.writers[name].close()
        self.durable(name)
        self.open.pop(name, None)
        self.writers[name] = self.opened(name)

    def scale(self, who: int, times: list[int]) -> None:
        open_ones = [r.segment for r in self.store.segments("s") if r.segment.is_open]
        open_ones.sort(key=lambda segment: segment.low)
        if who and len(open_ones) > 1:
            one, two = open_ones[0], open_ones[1]
            third = (two.high - one.low) / 3 if len(times) == 1 else None
            ranges = [(one.low, two.high)]
            if third is not None:
                ranges = [(one.low, one.low + third), (one.low + third, two.high)]
            self.store.scale("s", [one.name, two.name], ranges)
        elif len(open_ones) < 5:
            one = open_ones[-1]
            middle = (one.low + one.high) / 2
            self.store.scale("s", [one.name], [(one.low, middle), (middle, one.high)])

    def cycle(self, who: int, times: list[int]) -> None:
        """Let one controller run, perhaps after the other was silent for too long."""
        self.clock.advance(timedelta(seconds=sum(times)))
        self.controllers[who].run_marks()

    def compact(self, _: int, __: list[int]) -> None:
        compact(self.store, "s")

    def truncate(self, _: int, __: list[int]) -> None:
        self.look()
        self.store.truncate("s", before=self.group.checkpoint()["s"])

    def consume(self, who: int, times: list[int]) -> None:
        """Read some rows; commit them, or be replaced by another reader of that name."""
        reader = self.readers.get(who) or self.group.join(f"r{who}")
        self.readers[who] = reader
        rows = reader.read(4)
        self.seen[who] += [] if rows is None else rows.column("n").to_pylist()
        if len(times) == 1:
            self.readers.pop(who)
        else:
            reader.commit()
            self.read += self.seen[who]
        self.seen[who] = []

    # ---- what must hold ----

    def look(self) -> None:
        """Every row that can be read is a committed one, in the place where it always was."""
        system = ("_partition", "_offset")
        for batch in read_between(self.store, "s", system_columns=system):
            for row in batch.to_pylist():
                place = (row["_partition"], row["_offset"])
                assert self.places.setdefault(row["n"], place) == place
                assert row["n"] in self.committed
        assert self.places.keys() == self.committed
        assert len(set(self.places.values())) == len(self.places)

    def check(self) -> None:
        self.look()
        self.check_marks()
        self.check_group()
        for release in Release:
            self.check_plans(release)

    def check_marks(self) -> None:
        found = self.store.describe("s").id
        lineage = self.store.database.read(lambda on: streams.lineage(on, found))
        made = marks_of(self.store, "s")
        for mark, after in pairwise(made):
            assert mark.lower <= after.lower
            assert mark.upper <= after.upper
            assert mark.cut.less_equal(after.cut, lineage)
        for mark in made:
            assert mark.cut.is_whole(lineage)
            passed = lineage.ancestors_of(mark.cut)
            for n, (segment, offset) in self.places.items():
                if self.rows[n].writer in mark.writers and self.rows[n].time < mark.lower:
                    assert segment in passed or offset < mark.cut.get(segment, 0)

    def check_group(self) -> None:
        last = self.group.join("last")
        for name in ("r0", "r1"):
            self.group.join(name).leave()
        while (rows := last.read(5)) is not None:
            self.read += rows.column("n").to_pylist()
            last.commit()
        assert Counter(self.read) == Counter(self.committed)
        latest: dict[tuple[str, int], int] = {}
        for n in self.read:
            if not self.rows[n].in_transaction:
                assert latest.get((self.rows[n].writer, n % KEYS), -1) < n
                latest[self.rows[n].writer, n % KEYS] = n

    def check_plans(self, release: Release) -> None:
        """Plan over what is left: every row is released once, or lost once."""
        starts = {r.name: r.start for r in self.store.segments("s")}
        left = {n for n, (segment, at) in self.places.items() if at >= starts[segment]}
        log, found = StoreLog(self.store, "s"), Counter[int]()
        by_marks = release is Release.TIME
        policy = Policy(
            release=release, watermark=Strategy.MARKS if by_marks else Strategy.EVENTS, max_rows=7
        )
        query = Query.windows(["s"], timedelta(microseconds=5))
        state = PlannerState.fresh("q", ["s"])
        for _ in range(200):
            state, batch = plan(state, facts_of({"s": log}, state), query, policy, self.clock.now())
            if not batch.moved:
                break
            arrived = batch.streams["s"]
            for segment, (start, end) in arrived.ranges().items() if by_marks else ():
                for part in log.read(segment, start, end, ["n", "_event_time"]):
                    # Of a writer that no mark waited for: given up once, instead of released.
                    lost = arrived.judge(part.column(1).cast(pa.int64()).to_numpy()).lost
                    found.update(part.column(0).filter(pa.array(lost)).to_pylist())
            if batch.slice is not None:
                for task in batch.slice.tasks:
                    spans, times = task.reads["s"], (task.interval.a, task.interval.b)
                    for place, start, end in zip(
                        spans.partition, spans.start, spans.end, strict=True
                    ):
                        segment = spans.names[place]
                        for part in log.read(segment, int(start), int(end), ["n"], times):
                            found.update(part.column(0).to_pylist())
            elif release is Release.ARRIVAL:
                for segment, (start, end) in batch.streams["s"].ranges().items():
                    for part in log.read(segment, start, end, ["n"]):
                        found.update(part.column(0).to_pylist())
        closed = state.released
        assert found == Counter(
            n
            for n in left
            if not by_marks or (closed is not UNKNOWN and self.rows[n].time < closed)
        )


ACTS = (
    *("append", "append", "append", "note", "note", "flush", "transact", "transact", "end", "end"),
    *("crash", "close", "scale", "cycle", "cycle", "compact", "truncate", "consume", "consume"),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(ACTS),
        st.integers(0, 1),
        st.lists(st.integers(0, 9), min_size=1, max_size=3),
    ),
    min_size=10,
    max_size=40,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, to be copied: migrating one costs more than a schedule."""
    folder = tmp_path_factory.mktemp("template")
    Store.open(folder).close()
    return folder


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_no_schedule_loses_doubles_or_moves_a_row_or_breaks_a_mark(
    template: Path, steps: list[tuple[str, int, list[int]]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        shutil.copytree(template, folder)
        world = World(folder)
        try:
            for act, who, times in steps:
                getattr(world, act)(who, times)
            for who in (0, 1):
                world.flush(who, [])
            world.check()
        finally:
            for writer in world.writers.values():
                writer.abandon()
            world.store.close()
