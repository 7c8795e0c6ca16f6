"""The world of the schedules: a store, writers, controllers, readers and jobs, and what may happen.

Every act takes who acts, which of his transactions, and some small numbers. Whatever the order, the
model beside it knows what must be there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.noting import marks_of
from tests.store.schedule_jobs import Job
from tests.store.schedule_model import Model, Range, Row

from tidegate.errors import TidegateError
from tidegate.planning.policy import Release
from tidegate.store import Store
from tidegate.store.compaction import compact
from tidegate.store.controller import MarkController
from tidegate.store.mark_cycle import EMBEDDED_INTERVAL
from tidegate.store.reader import Reader
from tidegate.store.reading import read_between
from tidegate.store.transaction import Transaction
from tidegate.store.writer import Writer
from tidegate.testing import ManualClock

KEYS = 8
TIMEOUT = timedelta(seconds=5)
SHORT, LONG = timedelta(seconds=12), timedelta(hours=1)
SCHEMA = pa.schema([("key", pa.int64()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
NAMES = ("w0", "w1", "w2")

Numbers = list[int]


@dataclass
class Open:
    """An open transaction: what is in it, its smallest time, and when its time is over."""

    it: Transaction
    floor: int
    expires_at: int
    rows: Numbers = field(default_factory=list)


class World:
    """Everything at once."""

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
        self.model = Model()
        self.noted = dict.fromkeys(NAMES, 0)
        self.sequence: dict[str, Numbers] = {name: [] for name in NAMES}
        self.open: dict[str, list[Open]] = {name: [] for name in NAMES}
        self.fenced: list[Writer] = []
        self.writers = {name: self.opened(name) for name in NAMES}
        self.controllers = [MarkController(self.store, "c", lease=TIMEOUT) for _ in range(2)]
        self.group = self.store.reader_group("g", ["s"], expiry=LONG)
        self.readers: dict[int, Reader] = {}
        self.read: Numbers = []
        self.jobs = [
            Job(
                f"{release.value}, {tolerance}",
                self.store,
                self.clock,
                self.model,
                release,
                tolerance,
            )
            for release in Release
            for tolerance in (None, 3)
        ]

    def opened(self, name: str) -> Writer:
        # The third one promises nothing, until it does.
        return self.store.writer("s", name, notes_time=name != "w2", flush_age=None, flush_rows=6)

    def make(self, writer: str, floor: int, times: Numbers, transaction: str | None) -> pa.Table:
        """New rows, none before `floor`."""
        first = len(self.model.rows)
        made = [
            Row(n, n * 7 % KEYS, writer, floor + time, transaction)
            for n, time in enumerate(times, first)
        ]
        self.model.rows |= {row.n: row for row in made}
        return table(made)

    def durable(self, writer: str) -> None:
        """What the writer says is durable is acknowledged."""
        safe = self.sequence[writer][: self.writers[writer].durable]
        self.model.acknowledged.update(safe)

    def look(self) -> None:
        """Let the model see all that can be read, where it lies, and the segments."""
        records = self.store.segments("s")
        for record in records:
            s = record.segment
            self.model.segments[s.name] = Range(s.low, s.high, s.id.epoch)
        starts = {record.name: record.start for record in records}
        gone = [
            (n, *place)
            for n, place in self.model.places.items()
            if place[1] < starts[place[0]]  # truncated; the readers before it have had it
        ]
        columns = ("_partition", "_offset")
        self.model.saw(
            [
                *gone,
                *(
                    (row["n"], row["_partition"], row["_offset"])
                    for batch in read_between(self.store, "s", system_columns=columns)
                    for row in batch.to_pylist()
                ),
            ]
        )

    # ---- writers ----

    def append(self, name: str, _: int, times: Numbers) -> None:
        first = len(self.model.rows)
        rows = self.make(name, self.noted[name], times, None)
        self.sequence[name] += range(first, len(self.model.rows))
        self.writers[name].append(rows)
        self.durable(name)

    def note(self, name: str, _: int, times: Numbers) -> None:
        self.noted[name] += sum(times)
        self.clock.advance(EMBEDDED_INTERVAL)  # so that it runs a cycle, if no controller does
        self.writers[name].note_time(self.noted[name])
        self.durable(name)
        assert self.model.acknowledged.issuperset(self.sequence[name])

    def all_note(self, _: str, which: int, times: Numbers) -> None:
        """All of those who promise do, and a controller runs."""
        for name in NAMES[:2]:
            self.note(name, which, times)
        self.cycle("", which, [0])

    def flush(self, name: str, _: int, __: Numbers) -> None:
        assert self.writers[name].flush() == len(self.sequence[name])
        self.durable(name)

    def crash(self, name: str, which: int, times: Numbers) -> None:
        """A writer is gone, or thought to be; another comes and repeats what may be missing."""
        if which:
            self.writers[name].abandon()
        else:
            self.fenced.append(self.writers[name])
        self.open[name] = []
        self.writers[name] = self.opened(name)
        again = max(self.writers[name].durable - sum(times), 0)
        rows = [self.model.rows[n] for n in self.sequence[name][again:]]
        if rows and len(times) > 1:
            self.writers[name].append(table(rows), first_row=again)
        else:
            del self.sequence[name][self.writers[name].durable :]
        self.durable(name)

    def zombie(self, _: str, __: int, ___: Numbers) -> None:
        """One that was taken over tries to go on."""
        for writer in self.fenced:
            with pytest.raises(TidegateError) as refused:
                writer.note_time(1 << 40)
            assert refused.value.code == "writer-fenced"
            writer.abandon()
        self.fenced = []

    def close(self, name: str, _: int, __: Numbers) -> None:
        self.writers[name].close()
        self.durable(name)
        self.open[name] = []
        self.writers[name] = self.opened(name)

    def anonymous(self, _: str, __: int, times: Numbers) -> None:
        """Somebody without a name appends: no mark waits for that."""
        first = len(self.model.rows)
        with self.store.writer("s", flush_age=None) as writer:
            writer.append(self.make("", 0, times, None))
        self.model.acknowledged.update(range(first, len(self.model.rows)))

    # ---- transactions ----

    def begin(self, name: str, which: int, times: Numbers) -> None:
        """One more of them; what was appended before is flushed."""
        if len(self.open[name]) < 3:
            lasts = SHORT if which else LONG
            begun = self.writers[name].begin(lasts)
            self.durable(name)
            ends = self.clock.now() + int(lasts.total_seconds()) * 1_000_000
            self.open[name].append(Open(begun, self.noted[name], ends))
            self.fill(name, -1, times)

    def fill(self, name: str, which: int, times: Numbers) -> None:
        """Append to one that is open."""
        if self.open[name]:
            one = self.open[name][which % len(self.open[name])]
            first = len(self.model.rows)
            rows = self.make(name, one.floor, times, one.it.id)
            one.rows += range(first, len(self.model.rows))
            self.done(name, one, lambda: one.it.append(rows))

    def done(self, name: str, one: Open, act: Callable[[], object]) -> bool:
        """Do something with a transaction; False if its time is over, and only then."""
        try:
            act()
        except TidegateError as refused:
            if refused.code != "transaction-ended" or self.clock.now() < one.expires_at:
                raise
            self.open[name].remove(one)
            return False
        return True

    def end(self, name: str, which: int, times: Numbers) -> None:
        """Commit, with a time, with one that is too low, or without; or abort."""
        if not self.open[name]:
            return
        one = self.open[name][which % len(self.open[name])]
        too_late = self.clock.now() >= one.expires_at
        if len(times) == 1 and times[0] < 3:
            one.it.abort()
            self.open[name].remove(one)
            return
        promise = None
        if len(times) == 2:
            promise = max(self.noted[name] + sum(times) - 3, 0)
        if self.done(name, one, lambda: one.it.commit(promise)):
            assert not too_late
            self.open[name].remove(one)
            self.model.acknowledged.update(one.rows)
            if promise is not None:
                self.noted[name] = max(self.noted[name], promise)
            self.durable(name)
            one.it.commit(promise)  # as after a lost answer

    def expire(self, _: str, __: int, ___: Numbers) -> None:
        self.store.expire_transactions()

    # ---- the stream ----

    def scale(self, name: str, which: int, times: Numbers) -> None:
        open_ones = [r.segment for r in self.store.segments("s") if r.segment.is_open]
        open_ones.sort(key=lambda segment: segment.low)
        if name != "w0" and len(open_ones) > 1:
            one, two = open_ones[0], open_ones[1]
            third = (two.high - one.low) / 3 if len(times) == 1 else None
            ranges = [(one.low, two.high)]
            if third is not None:
                ranges = [(one.low, one.low + third), (one.low + third, two.high)]
            self.store.scale("s", [one.name, two.name], ranges)
        elif len(open_ones) < 5:
            one = open_ones[which % len(open_ones)]
            middle = (one.low + one.high) / 2
            self.store.scale("s", [one.name], [(one.low, middle), (middle, one.high)])

    def cycle(self, _: str, which: int, times: Numbers) -> None:
        """Let one controller run, perhaps after the other was silent for too long."""
        self.clock.advance(timedelta(seconds=sum(times)))
        self.controllers[which % 2].run_marks()

    def hand_over(self, _: str, which: int, times: Numbers) -> None:
        """A controller gives up its leases, or dies with them; a new one takes its place."""
        if len(times) > 1:
            self.controllers[which % 2].retire()
        self.controllers[which % 2] = MarkController(self.store, "c", lease=TIMEOUT)
        self.controllers[which % 2].run_marks()

    def compact(self, _: str, __: int, ___: Numbers) -> None:
        compact(self.store, "s")
        for job in self.jobs:
            job.replay()

    def truncate(self, _: str, which: int, times: Numbers) -> None:
        """By a cut, or by a time, perhaps when all have caught up; holds keep the rest."""
        if which:
            self.all_note("", which, [9, 9])
            self.consume("", which, [9, 9])
        self.look()
        for job in self.jobs if which else ():
            job.catch_up()
        reached = self.group.checkpoint()["s"]
        self.store.hold("s", "readers", reached)
        if len(times) > 1:
            self.store.truncate("s", before=reached)
        else:
            self.store.truncate("s", time=max(self.noted.values()))
        for job in self.jobs:
            job.replay()

    # ---- readers and jobs ----

    def consume(self, _: str, which: int, times: Numbers) -> None:
        """Read some rows; commit them, or be replaced by another reader of that name."""
        reader = self.readers.get(which) or self.group.join(f"r{which}")
        self.readers[which] = reader
        rows = reader.read(1 + sum(times))
        seen = [] if rows is None else rows.column("n").to_pylist()
        if len(times) == 1:
            self.readers.pop(which)
        else:
            reader.commit()
            self.read += seen

    def plan(self, name: str, which: int, times: Numbers) -> None:
        """One job goes on, perhaps after a restart."""
        self.look()
        job = self.jobs[(which + NAMES.index(name)) % len(self.jobs)]
        if len(times) == 1:
            job.restart()
        job.step()

    # ---- the end ----

    def finish(self) -> None:
        """All make a last promise: a mark says so, and whoever reads has read everything."""
        for name in NAMES:
            for one in list(self.open[name]):
                self.end(name, self.open[name].index(one), [9])
        self.zombie("", 0, [])
        last = max([*self.noted.values(), *(row.time for row in self.model.rows.values())]) + 10
        self.clock.advance(2 * TIMEOUT)
        for time in (last - 1, last):  # with the first all of them become known again
            for name in NAMES:
                self.noted[name] = time
                self.note(name, 0, [0])
            self.controllers[0].run_marks()
        self.look()
        made = marks_of(self.store, "s")
        assert made[-1].lower == last
        assert made[-1].writers == set(NAMES)
        for mark in made:
            self.model.check_mark(mark)
        for mark, after in pairwise(made):
            assert mark.lower <= after.lower
            assert mark.upper <= after.upper
            assert self.model.all_before(mark.cut) <= self.model.all_before(after.cut)
        self.check_group()
        for job in self.jobs:
            self.check_job(job, last)

    def check_group(self) -> None:
        last = self.group.join("last")
        for name in ("r0", "r1", "r2"):
            self.group.join(name).leave()
        while (rows := last.read(5)) is not None:
            self.read += rows.column("n").to_pylist()
            last.commit()
        assert Counter(self.read) == Counter(self.model.acknowledged)
        self.model.check_order(self.read)

    def check_job(self, job: Job, last: int) -> None:
        job.catch_up()
        assert job.model.arrived == self.model.acknowledged
        if job.model.tolerance is None:
            assert job.model.watermark == last - 1
            accounted = job.model.released + job.model.lost
            assert accounted == Counter(self.model.acknowledged)


def table(rows: list[Row]) -> pa.Table:
    """Rows as they are appended."""
    stamps = pa.array([row.time for row in rows], pa.int64()).cast(SCHEMA.field("at").type)
    keys, numbers = pa.array([row.key for row in rows]), pa.array([row.n for row in rows])
    return pa.table([keys, numbers, stamps], schema=SCHEMA)
