"""Full interval joins beside a naive truth that keeps for every row whether it has met anybody."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.jobs.truth import Row
from tests.spark.jobs.world import S, World, begun, failing_at

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.logs.log import Log, facts_of, questions_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import PlannerState, Policy, Query, plan
from tidegate.planning.replay import replay
from tidegate.spark.duckdb_kernel import DuckTask
from tidegate.spark.duckdb_text import translate
from tidegate.spark.joins import JoinText
from tidegate.spark.reads import Reader
from tidegate.spark.rows import Reads
from tidegate.spark.running import RunningJob
from tidegate.spark.shape import Full
from tidegate.spark.sinks import StreamSink
from tidegate.spark.slices import SlicesJob, interval_join
from tidegate.spark.sql_text import Statement

STREAMS = ("orders", "payments")
BEFORE, AFTER = 6 * S, 3 * S
QUERY = "SELECT o.v, p.v AS w, o.k, p.k AS pk FROM orders o FULL JOIN payments p ON o.k = p.k"


@dataclass(eq=False)
class Seen:
    """A row, what was closed when it came, and whether it has met anybody."""

    row: Row
    since: int | None
    met: bool = False
    given: bool = False


@dataclass
class Pairs:
    """A full join as it ought to be; payments from BEFORE earlier to AFTER later than an order."""

    allowed: int = 0
    start: int | None = None
    orders: list[Seen] = field(default_factory=list)
    payments: list[Seen] = field(default_factory=list)
    highest: dict[tuple[str, str], int] = field(default_factory=dict)
    a: int | None = None
    given: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    read: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.a = self.start

    def see(self, rows: list[Row], b: int | None = None) -> None:
        """One batch: rows come, and what is complete is given out, or only what is before `b`."""
        self.read += rows
        closed = None if self.a is None else self.a - self.allowed
        for row in rows:
            place = (row.stream, row.partition)
            self.highest[place] = max(self.highest.get(place, row.t), row.t)
            used = row.t + 1 if row.stream == "orders" else row.t + BEFORE + 1
            early = self.start is not None and used <= self.start
            if closed is not None and used <= closed:
                self.lost[row.stream] += not early
            else:
                side = self.orders if row.stream == "orders" else self.payments
                side.append(Seen(row, closed))
        b = min(self.highest.values()) - AFTER if b is None else b
        if self.a is None or b > self.a:
            self._release(b)

    def _release(self, b: int) -> None:
        for order in self.orders:
            if order.row.t < b and (self.a is None or order.row.t >= self.a):
                near = [p for p in self.payments if _meet(order.row, p.row)]
                for payment in near:
                    payment.met = True
                    self.given[_pair(order.row, payment.row)] += 1
                if not near:
                    self.given[_pair(order.row, None)] += 1
        for payment in self.payments:
            if payment.row.t + BEFORE < b and not payment.given:
                payment.given = True
                whole = self.start is None or payment.row.t - AFTER >= self.start
                if whole and not payment.met:
                    self.given[_pair(None, payment.row)] += 1
        self.a = b

    def view(self) -> Counter[tuple[Any, ...]]:
        """What holds after the last correction: nothing that was closed has met a later row."""
        found: Counter[tuple[Any, ...]] = Counter()
        assert self.a is not None
        met: set[int] = set()
        for order in (o.row for o in self.orders if o.row.t < self.a):
            near = [
                p
                for p in self.payments
                if _meet(order, p.row) and (p.since is None or order.t >= p.since)
            ]
            met |= {id(p) for p in near}
            found.update(_pair(order, p.row) for p in near)
            found[_pair(order, None)] += not near
        for payment in self.payments:
            if payment.row.t + BEFORE < self.a and id(payment) not in met:
                found[_pair(None, payment.row)] += 1
        return +found


def _meet(order: Row, payment: Row) -> bool:
    return order.k == payment.k and order.t - BEFORE <= payment.t <= order.t + AFTER


def _pair(order: Row | None, payment: Row | None) -> tuple[Any, ...]:
    one = (order.v, order.k) if order else (None, None)
    other = (payment.v, payment.k) if payment else (None, None)
    return (*one, *other)


def _job(world: World, name: str, **settings: Any) -> SlicesJob:
    given: dict[str, Any] = {
        "before": timedelta(microseconds=BEFORE),
        "after": timedelta(microseconds=AFTER),
        "query": QUERY,
        "idle_after": "never",
        **settings,
    }
    return interval_join(
        world.spark, *STREAMS, sink=StreamSink(name), name=name, store=world.store, **given
    )


def _appended(world: World, random_: random.Random, top: int) -> None:
    """Rows of both streams around a time, many of them late, some at the very bounds."""
    numbers = iter(range(1000 * top, 1000 * top + 1000))
    for stream in STREAMS:
        for place in (0, 1) if stream == "orders" else (0,):
            keys = [world.key(place, stream, nth=n) for n in (0, 1)]
            rows = [
                (random_.choice(keys), next(numbers), top + random_.randint(-22, 10))
                for _ in range(random_.randint(6, 9))
            ]
            rows.append((keys[0], next(numbers), top + random_.randint(8, 14)))
            world.append(rows, stream)


def _made(world: World, name: str) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for r in world.read(name):
        pair = (r["v"], r["k"], r["w"], r["pk"])
        found[pair] += 1 if r.get("_op", "insert") == "insert" else -1
    assert min(found.values()) >= 0
    return +found


def _streams(world: World) -> None:
    world.stream("orders", segments=2)
    world.stream("payments")


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 100), marks=pytest.mark.faults)], ids=["few", "many"]
)
def test_pieces_of_many_histories_are_the_truth(tmp_path: Path, seeds: range) -> None:
    """The plan, what it reads and the text of the query, without a cluster around them."""
    told = Counter[str]()
    for seed in seeds:
        world = World(None, tmp_path / str(seed))  # type: ignore[arg-type]
        _streams(world)
        told += _history(world, random.Random(seed))
        world.close()
    # There were lost orders beside payments that are alone, and payments whose orders were past.
    assert min(told[name] for name in ("lost", "alone", "beside lost", "past", "latecomers")) > 3


def _history(world: World, random_: random.Random) -> Counter[str]:
    truth = Pairs(start=random_.choice([None, None, 20 * S]))
    joined = JoinText.of(
        Statement.parse(QUERY, STREAMS),
        *STREAMS,
        before=timedelta(microseconds=BEFORE),
        after=timedelta(microseconds=AFTER),
    )
    query = Query.full_join(*STREAMS, before=joined.before, after=joined.after)
    logs: dict[str, Log] = {name: StoreLog(world.store, name) for name in STREAMS}
    settings = {} if truth.start is None else {"start": truth.start}
    limit = random_.choice([None, 5, 40])
    policy = Policy.from_options(
        {"release": "time", "idle_after": "never", "max_rows": limit, **settings}
    )
    reader = Reader(logs, query, {name: ["k", "v"] for name in STREAMS})
    shape = Full(BEFORE, AFTER)
    time = pa.timestamp("us", tz="UTC")
    more = [pa.field(name, time) for name in shape.columns]
    text = translate(
        joined.statement, {n: pa.schema([*s, *more]) for n, s in reader.schemas().items()}
    )
    assert isinstance(text, str), text
    result = pa.schema(
        [
            ("v", pa.int64()),
            ("w", pa.int64()),
            ("k", pa.string()),
            ("pk", pa.string()),
            ("at", time),
        ]
    )
    state, found, told = (
        PlannerState.fresh("q", STREAMS),
        Counter[tuple[Any, ...]](),
        Counter[str](),
    )
    for step in range(6):
        _appended(world, random_, 12 * step)
        before = state
        state, _ = plan(before, facts_of(logs, before), query, policy, 0, cores=3)
        truth.see(
            world.rows(*STREAMS, seen=truth.read),
            None if state.released is UNKNOWN else state.released,
        )
        told["latecomers"] += sum(len(s.latecomers) for s in state.streams.values())
        if step % 2:
            world.store.maintain("orders")
        again = PlannerState.from_json(state.to_json())
        assert again.same_as(state)
        batch = replay(before, again, questions_of(logs), query, policy, cores=3)
        pieces = reader.pieces(batch, again)
        _read_alike([piece.reads for piece in pieces])
        for piece in pieces:
            task = DuckTask(piece.interval, again.origin, piece.reads, shape, text, result)
            for rows in task.run():
                found.update((r["v"], r["k"], r["w"], r["pk"]) for r in rows.to_pylist())
        assert found == truth.given, (step, found - truth.given, truth.given - found)
        assert plan(state, facts_of(logs, state), query, policy, 0)[1].moved in (False, bool(limit))
    lost = [row for row in truth.read if row.stream == "orders"]
    lost = [row for row in lost if row not in {order.row for order in truth.orders}]
    told["lost"] += len(lost)
    for payment in truth.payments:
        alone = payment.given and not payment.met
        told["alone"] += alone
        told["beside lost"] += alone and any(_meet(row, payment.row) for row in lost)
        told["past"] += alone and any(_meet(order.row, payment.row) for order in truth.orders)
    return told


def _read_alike(pieces: Sequence[Reads]) -> None:
    """A row that several pieces read came at the same time in all of them: Spark joins them."""
    found: dict[tuple[str, str, int], int | None] = {}
    for reads in pieces:
        for name, kinds in reads.items():
            for rows in kinds:
                for partition, start, end in rows.ranges:
                    for offset in range(start, end):
                        assert found.setdefault((name, partition, offset), rows.at) == rows.at


def test_both_kernels_give_every_row_once_matched_or_alone_also_when_batches_run_again(
    world: World,
) -> None:
    _streams(world)
    random_ = random.Random(5)
    truth = Pairs()
    jobs: dict[str, SlicesJob] = {
        kernel: _job(world, kernel, kernel=kernel, cores=3) for kernel in ("spark", "duckdb")
    }
    running: dict[str, RunningJob] = {}
    fails = {1: ("spark", "batch: before commit"), 2: ("duckdb", "batch: committed")}
    for step in range(4):
        # Nobody reads while rows come: the truth sees a step's rows at once, and a job that planned
        # between two appends would judge the second ones by another A.
        for one in running.values():
            one.stop()
        running.clear()
        _appended(world, random_, 12 * step)
        if step in fails:
            name, at = fails[step]
            with failing_at(at):
                begun(jobs[name])
        for name, job in jobs.items():
            if name not in running:
                running[name] = begun(job)
            running[name].process_all()
        truth.see(world.rows(*STREAMS, seen=truth.read))
    for one in running.values():
        one.stop()
    assert truth.lost["orders"] > 3
    alone = [pair for pair in truth.given if None in pair]
    assert {pair[0] is None for pair in alone} == {True, False}
    for name, job in jobs.items():
        assert _made(world, name) == truth.given
        figures = job.progress.figures()
        assert figures["lost"] == truth.lost.total()
        assert job.explain().startswith(f"kernel: {name}")


@pytest.mark.faults
def test_after_the_last_correction_a_full_join_is_the_truth(world: World) -> None:
    _streams(world)
    random_ = random.Random(6)
    truth = Pairs(allowed=5 * S)
    job = _job(world, "corrected", late="update", allowed_lateness="5s")
    for step in range(5):
        _appended(world, random_, 12 * step)
        begun(job).stop()
        truth.see(world.rows(*STREAMS, seen=truth.read))
    assert truth.lost.total() > 0
    assert {row["_op"] for row in world.read("corrected")} == {"insert", "delete"}
    assert _made(world, "corrected") == truth.view()


def test_nobody_is_said_to_be_alone_before_the_start(world: World) -> None:
    _streams(world)
    random_ = random.Random(7)
    truth = Pairs(start=20 * S)
    job = _job(world, "started", start=20 * S)
    for step in range(1, 4):
        _appended(world, random_, 12 * step)
        begun(job).stop()
        truth.see(world.rows(*STREAMS, seen=truth.read))
    assert truth.given
    assert _made(world, "started") == truth.given


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"late": "next"}, "next-needs-tumbling"),
        ({"watermark": "processing"}, "join-not-by-interval"),
        ({"query": "SELECT o.*, p.v FROM orders o FULL JOIN payments p ON o.k = p.k"}, None),
    ],
)
def test_what_a_full_join_cannot_know_is_refused(
    world: World, settings: dict[str, Any], code: str | None
) -> None:
    _streams(world)
    with pytest.raises(TidegateError) as refused:
        _job(world, "refused", **settings)
    assert refused.value.code == (code or "join-not-by-interval")
