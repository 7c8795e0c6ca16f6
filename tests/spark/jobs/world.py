"""A small world for jobs: a store, streams, rows at explicit times, and what a job made of them.

Rows are (key, value, seconds), seconds counted from 1970; what is read back counts in microseconds.
The job runs in its own processes with the clock of the machine; the store that appends has a clock
that can be moved.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs.truth import Row, Truth, Window

from tidegate.spark.gate.writing import GateJob
from tidegate.spark.running import RunningJob, patiently
from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob, windows
from tidegate.store import Store, Writer
from tidegate.store.mark_cycle import run_due_cycle
from tidegate.store.reading import read_between
from tidegate.store.routing import hash_of, segment_index
from tidegate.store.steps import listening

S = 1_000_000
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
COUNTS = (
    "SELECT _window_start, _window_end, k, count(*) AS n, sum(v) AS total FROM orders"
    " GROUP BY _window_start, _window_end, k"
)
KERNEL: Any = "auto"

Given = tuple[str, int, float]


class World:
    """One store and whoever writes to it."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        catalog: str | None = None,
        data: str | Path | None = None,
    ) -> None:
        self.spark = spark
        self.folder = folder
        self.shift = timedelta(0)
        if catalog is None:
            self.store = Store.open(folder / "store", clock=self.now)
        else:
            self.store = Store.open(catalog, data=data or folder / "data", clock=self.now)
        self._writers: dict[tuple[str, str], Writer] = {}

    def now(self) -> int:
        """The clock of those who append."""
        return time.time_ns() // 1000 + self.shift // timedelta(microseconds=1)

    def close(self) -> None:
        """Give everything back."""
        for writer in self._writers.values():
            writer.abandon()
        self.store.close()

    # ---- streams ----

    def stream(self, name: str = "orders", *, segments: int = 1, **settings: Any) -> None:
        """A stream of keys and values, routed by key."""
        settings = {"event_column": "at", "routing_key": ("k",), **settings}
        self.store.create_stream(name, SCHEMA, segments=segments, **settings)

    def key(self, place: int, stream: str = "orders", nth: int = 0) -> str:
        """A key whose rows lie in the open segment at this place, in the order of keys."""
        open_ = [r.segment for r in self.store.segments(stream) if r.segment.is_open]
        open_.sort(key=lambda segment: segment.low)
        names = (f"k{n}" for n in range(10_000))
        fits = (name for name in names if segment_index(hash_of(name), open_)[0] == place)
        return [next(fits) for _ in range(nth + 1)][-1]

    def append(
        self, rows: Iterable[Given], stream: str = "orders", writer: str = "w", **more: Any
    ) -> None:
        """Append rows in one transaction."""
        made = [{"k": k, "v": v, "at": round(t * S), **more} for k, v, t in rows]
        columns = {name: [row[name] for row in made] for name in made[0]}
        table = pa.table(columns)
        at = table.column("at").cast(pa.timestamp("us", tz="UTC"))
        opened = self._writer(stream, writer)
        opened.append(table.set_column(table.schema.get_field_index("at"), "at", at))
        opened.flush()

    def note(self, seconds: float, stream: str = "orders", writer: str = "w") -> None:
        """Note time as a writer that registers for it, and have the marks made of it."""
        self._writer(stream, writer, notes_time=True).note_time(round(seconds * S))
        make_marks(self.store, stream)

    def registered(self, stream: str = "orders", writer: str = "w") -> None:
        """Open a writer that will note time."""
        self._writer(stream, writer, notes_time=True)

    def _writer(self, stream: str, name: str, **settings: Any) -> Writer:
        key = (stream, name)
        if key not in self._writers:
            settings = {"flush_age": None, "bad_rows": "route", **settings}
            self._writers[key] = self.store.writer(stream, name, **settings)
        return self._writers[key]

    # ---- what there is ----

    def read(self, stream: str, *system: str) -> list[dict[str, Any]]:
        """All rows of a stream, times as microseconds; none when it is not there."""
        if stream not in self.store.list_streams():
            return []
        batches = list(read_between(self.store, stream, system_columns=system))
        return [plain(row) for batch in batches for row in batch.to_pylist()]

    def rows(self, *streams: str, seen: Sequence[Row] = ()) -> list[Row]:
        """The rows of streams as the naive truth wants them, without those that it has seen."""
        left = Counter(seen)
        found = []
        for stream in streams or ("orders",):
            for r in self.read(stream, "_partition", "_event_time"):
                row = Row(r["_partition"], r["_event_time"], r["k"], r["v"], stream)
                left[row] -= 1
                if left[row] < 0:
                    found.append(row)
        return found

    def counts(self, stream: str) -> Counter[tuple[Any, ...]]:
        """What a job with the query COUNTS has given out, each as often as it is there."""
        return Counter(
            (r["window_start"], r["window_end"], r["k"], r["n"], r["total"])
            for r in self.read(stream)
        )

    # ---- jobs ----

    def windows(self, *, size: float, slide: float | None = None, **settings: Any) -> SlicesJob:
        """A job in windows over "orders", with what a test says of it."""
        given: dict[str, Any] = {
            "query": COUNTS,
            "name": "job",
            "store": self.store,
            "kernel": KERNEL,
            "sink": StreamSink("out"),
            **settings,
        }
        given.setdefault("checkpoint", self.folder / "checkpoints" / given["name"])
        hop = None if slide is None else timedelta(seconds=slide)
        streams = given.pop("streams", "orders")
        return windows(self.spark, streams, size=timedelta(seconds=size), slide=hop, **given)

    def lost_and_late(self, job: SlicesJob) -> tuple[dict[Any, int], dict[Any, int]]:
        """The counts per partition that a job keeps: late, lost."""
        told = job.progress.figures().get("partitions", {})
        late: dict[Any, int] = {}
        lost: dict[Any, int] = {}
        for stream, partitions in told.items():
            for partition, counts in partitions.items():
                late[stream, partition], lost[stream, partition] = counts[0], counts[1]
        return _filled(late), _filled(lost)


def make_marks(store: Store, stream: str) -> None:
    """Have the marks made of what has been noted.

    Whoever notes or plans does so too, and holds the lease of it for a moment: it is asked again.
    """
    began = time.monotonic()
    while run_due_cycle(store, stream, interval=timedelta(0)) is None:
        assert time.monotonic() - began < 60, "somebody else holds the lease all the time"
        time.sleep(0.02)


def begun(job: SlicesJob | GateJob) -> RunningJob:
    """Start a job and let it see what is there, on a machine that is busy with other tests too."""

    def start() -> RunningJob:
        running = job.start()
        running.process_all()
        return running

    return patiently(start)


def reach(running: RunningJob, seconds: float) -> None:
    """Wait until a job has given everything out before a time; what it fails with is raised."""
    began = time.monotonic()
    while not running.progress.wait_for(round(seconds * S), timedelta(seconds=1)):
        assert not running.wait(timedelta(seconds=1)), "it has ended before that"
        assert time.monotonic() - began < 300, f"it did not come to {seconds} s"


class Both:
    """A running job and the naive truth, side by side: what comes is told to both."""

    def __init__(self, world: World, job: SlicesJob, truth: Truth) -> None:
        self.world, self.job, self.truth = world, job, truth
        self.streams = tuple(truth.streams)
        self._seen: list[Row] = []
        self.running: RunningJob | None = None

    def go(self, **said: Any) -> None:
        """Let both see what has come."""
        if self.running is None:
            self.running = begun(self.job)
        self.running.process_all()
        self.truth.see(self.new(), **said)

    def new(self) -> list[Row]:
        """What has come since the last time."""
        found = self.world.rows(*self.streams, seen=self._seen)
        self._seen += found
        return found

    def fail(self, step: str, **said: Any) -> None:
        """Let both see what has come, but stop the job in that batch, at a step of it."""
        with failing_at(step):
            self.go()
        self.stop()
        self.truth.see(self.new(), **said)

    def stop(self) -> None:
        """Stop the job; the next `go` starts it again."""
        if self.running is not None:
            self.running.stop()
        self.running = None

    def check(self, out: str = "out") -> None:
        """The same results, the same late and lost rows."""
        assert self.world.counts(out) == self.truth.results(counted)
        self.check_late()

    def check_late(self) -> None:
        """The same counts per partition, and lost rows exactly once where they are routed."""
        late, lost = self.world.lost_and_late(self.job)
        assert late == _filled(self.truth.late)
        assert lost == _filled(self.truth.lost)
        routed = self.truth.late_policy in ("route", "update")
        for stream in self.streams:
            told = Counter(
                (r["late_time"], r["k"], r["v"]) for r in self.world.read(f"{stream}.late")
            )
            lost_rows = [row for row in self.truth.lost_rows if row.stream == stream]
            assert told == Counter((r.t, r.k, r.v) for r in lost_rows if routed)


def counted(window: Window, rows: list[Row]) -> Iterator[tuple[Any, ...]]:
    """The query COUNTS over one window."""
    for k in sorted({row.k for row in rows}):
        mine = [row.v for row in rows if row.k == k]
        yield (*window, k, len(mine), sum(mine))


def latest(rows: Iterable[Mapping[str, Any]], *key: str) -> list[Mapping[str, Any]]:
    """The view that a reader of corrections keeps: the last word about every key."""
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    ordered = sorted(rows, key=lambda row: (row["_revision"], row["_op"] == "insert"))
    for row in ordered:
        last[tuple(row[name] for name in key)] = row
    return [row for row in last.values() if row["_op"] == "insert"]


class Stopped(Exception):
    """A batch was stopped here by a test."""


@contextmanager
def failing_at(step: str, when: Callable[[], object] = lambda: True) -> Iterator[None]:
    """Make the driver fail whenever it reaches a step of a batch, or of a catalog transaction."""

    def fail(reached: str) -> None:
        if reached == step and when():
            raise Stopped(step)

    with listening(fail), pytest.raises(Exception, match="Stopped"):
        yield


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its times as microseconds."""
    return {
        name: _micros(value) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


def _micros(value: datetime) -> int:
    epoch = datetime.fromtimestamp(0, tz=value.tzinfo)
    return (value - epoch) // timedelta(microseconds=1)


def _filled(counts: Mapping[Any, int]) -> dict[Any, int]:
    return {place: count for place, count in counts.items() if count}
