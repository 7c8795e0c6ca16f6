"""Every stateful operator of Spark behind the gate, beside a naive truth over the same rows.

Partitions of very different speed, several batches, rows exactly at W and on the borders of
windows. What Spark drops by itself must be nothing: the source has given up such rows, and routed
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from tests.spark.gate.feed import micros, setting
from tests.spark.gate.plays import (
    FAR,
    MS,
    Play,
    Truth,
    at_the_edge,
    batches_with_rows,
    check_late,
    crowd,
    dropped_by_spark,
    every_place,
    played,
)
from tests.spark.jobs.truth import Row as Seen
from tests.spark.jobs.world import S, World

from tidegate.spark import MemorySink, StreamSink, read_stream, write_stream
from tidegate.spark.running import patiently

TOPS = (60, 100, 290)
"""How far the partitions are, in seconds."""


def tumbling(size: int) -> Callable[[int], int]:
    """The end of the window of a time."""
    return lambda t: t // size * size + size


def read(world: World, stream: str = "orders", query: str = "q", **uses: Any) -> DataFrame:
    """A stream, with limits that make several batches of it."""
    settings: dict[str, Any] = {"tolerance": "3 s", "idle_after": "never", "max_rows": 26, **uses}
    return read_stream(world.spark, stream, store=world.store, query=query, **settings)


def three_acts(world: World, play: Play, size: float = 10) -> list[Callable[[], None]]:
    """Partitions of different speed; then rows around W; then what closes everything."""
    places = len(TOPS)
    return [
        partial(crowd, world, "orders", TOPS),
        lambda: every_place(world, "orders", places, at_the_edge(play.truth.w or 0, size)),
        lambda: every_place(world, "orders", places, [FAR]),
    ]


def counted(rows: list[Seen], window: Callable[[int], tuple[int, int]]) -> Counter[Any]:
    """How many rows of a key fall into a window."""
    return Counter((*window(row.t), row.k) for row in rows)


@pytest.mark.parametrize("mode", ["append", pytest.param("update", marks=pytest.mark.faults)])
def test_tumbling_windows(world: World, mode: Any) -> None:
    world.stream(segments=3)
    play = Play(world, Truth(tumbling(10 * S), exact_ends=True))
    counts = read(world, windows="10 s").groupBy(F.window("at", "10 seconds"), "k").count()
    sink = StreamSink("out") if mode == "append" else MemorySink("updates")
    job = write_stream(counts, sink=sink, query="q", store=world.store, mode=mode)
    with played(play, job, three_acts(world, play)) as running:
        assert len(play.truth.lost) >= 6
        check_late(play, running)
        assert batches_with_rows(running) > 4
    truth = counted(play.all_kept, lambda t: (t // (10 * S) * 10 * S, tumbling(10 * S)(t)))
    if mode == "append":
        told = Counter[Any]()
        for row in world.read("out"):
            told[row["window_start"], row["window_end"], row["k"]] += row["count"]
        assert len(told) == len(world.read("out"))  # each window once
        assert told == {place: n for place, n in truth.items() if place[1] <= play.ws[-1]}
    else:
        assert isinstance(sink, MemorySink)
        last: dict[Any, int] = {}
        for row in sink.table().to_pylist():
            place = (micros(row["_window_start"]), micros(row["_window_end"]), row["k"])
            assert row["count"] > last.get(place, 0)
            last[place] = row["count"]
        assert last == truth
        sink.clear()


def test_sliding_windows_and_plain_sql_and_a_function_of_the_users_own(world: World) -> None:
    world.stream(segments=3)
    size, slide = 10 * S, 5 * S
    play = Play(world, Truth(lambda t: t // slide * slide + size, exact_ends=True))
    read(world, windows=("10 s", "5 s")).createOrReplaceTempView("gated_orders")
    query = world.spark.sql(
        "SELECT window(at, '10 seconds', '5 seconds') AS window, k, count(*) AS n"
        " FROM gated_orders WHERE k IS NOT NULL GROUP BY 1, 2"
    )
    told: list[Row] = []

    def take(rows: DataFrame, batch: int) -> None:
        told.extend(rows.collect())

    def by_hand() -> StreamingQuery:
        writer = query.writeStream.foreachBatch(take).queryName("q")
        made = writer.option("checkpointLocation", str(world.folder / "by hand")).start()
        made.processAllAvailable()
        return made

    started: StreamingQuery | None = None
    dropped = 0
    truth = Counter[Any]()
    for act in three_acts(world, play):
        closed = play.ws[-1] if play.ws else 0
        act()
        if started is None:
            started = patiently(by_hand)
        started.processAllAvailable()
        play.look()
        for row in play.kept[-1]:
            for start in (row.t // slide * slide, row.t // slide * slide - slide):
                # A row that something can use is not lost; where it comes too late it is left out.
                if start + size > closed:
                    truth[start, start + size, row.k] += 1
                else:
                    dropped += 1
    assert started is not None
    started.stop()
    got = Counter((micros(r.window.start), micros(r.window.end), r.k) for r in told)
    assert set(got.values()) == {1}  # each window once
    counts = {(micros(r.window.start), micros(r.window.end), r.k): r.n for r in told}
    assert counts == {place: n for place, n in truth.items() if place[1] <= play.ws[-1]}
    assert dropped > 0
    assert dropped_by_spark(started.recentProgress) == dropped
    routed = Counter((r["k"], r["v"], r["late_time"]) for r in world.read("orders.late"))
    assert routed == Counter((row.k, row.v, row.t) for row in play.truth.lost)


def test_sessions(world: World) -> None:
    world.stream(segments=3)
    gap = 7 * S
    play = Play(world, Truth(lambda t: t + gap, exact_ends=False))
    sessions = read(world, gap="7 s").groupBy(F.session_window("at", "7 seconds"), "k").count()
    job = write_stream(sessions, sink=StreamSink("out"), query="q", store=world.store)
    with played(play, job, three_acts(world, play, size=7)) as running:
        assert play.truth.lost
        check_late(play, running)
    truth: list[tuple[int, int, str, int]] = []
    open_: list[tuple[int, int, str, int]] = []
    for kept, w in zip(play.kept, play.ws, strict=True):
        for row in kept:
            start, end, n = row.t, row.t + gap, 1
            for one in [s for s in open_ if s[2] == row.k and s[0] <= end and start <= s[1]]:
                open_.remove(one)
                start, end, n = min(start, one[0]), max(end, one[1]), n + one[3]
            open_.append((start, end, row.k, n))
        truth += [s for s in open_ if s[1] <= w]
        open_ = [s for s in open_ if s[1] > w]
    told = Counter(
        (r["window_start"], r["window_end"], r["k"], r["count"]) for r in world.read("out")
    )
    assert told == Counter(truth)


def test_deduplication_by_key_and_time(world: World) -> None:
    world.stream(segments=3)
    play = Play(world, Truth(lambda t: t + 1, exact_ends=False))
    rows = read(world, last_use="once", max_rows=60).dropDuplicates(["k", "at"])
    sink = MemorySink("distinct")
    job = write_stream(rows, sink=sink, query="q", store=world.store)
    first, _, last = three_acts(world, play)
    times: list[float] = []

    def edge() -> None:
        times.extend(2 * at_the_edge(play.truth.w or 0, 10))
        every_place(world, "orders", 3, times)

    def again() -> None:
        every_place(world, "orders", 3, times)  # some of them are lost now

    acts = [first, edge, again, last]
    with played(play, job, acts) as running:
        check_late(play, running)
    told = Counter((row["k"], micros(row["at"])) for row in sink.table().to_pylist())
    sink.clear()
    assert told == Counter({(row.k, row.t) for row in play.all_kept})
    assert told.total() < len(play.all_kept)


def test_deduplication_of_keys_that_are_remembered_for_a_while(world: World) -> None:
    world.stream(segments=3)
    within = 5 * S
    play = Play(world, Truth(lambda t: t + 1, exact_ends=False))
    rows = read(world, last_use="once", within="5 s").dropDuplicatesWithinWatermark(["v"])
    sink = MemorySink("remembered")
    job = write_stream(rows, sink=sink, query="q", store=world.store)

    def again() -> None:
        """Ids once more, and each of them twice, all on time: some are remembered, some are not."""
        few = play.kept[0][::6]
        world.append([(row.k, row.v, play.ws[0] / S + 10) for row in few] * 2)

    acts: list[Callable[[], None]] = [
        partial(crowd, world, "orders", TOPS),
        again,
        lambda: every_place(world, "orders", 3, [FAR]),
    ]
    with played(play, job, acts) as running:
        check_late(play, running)
    told = Counter(row["v"] for row in sink.table().to_pylist())
    sink.clear()
    truth = Counter[int]()
    known: dict[int, int] = {}
    for kept, w in zip(play.kept, play.ws, strict=True):
        for row in sorted(kept, key=lambda row: row.t):
            if row.v not in known:
                truth[row.v] += 1
                known[row.v] = row.t + within
        known = {v: expires for v, expires in known.items() if expires > w}
    assert told == truth
    assert set(truth.values()) == {1, 2}


def test_running_totals_lose_nothing(world: World) -> None:
    world.stream(segments=3)
    play = Play(world, Truth(lambda t: None, exact_ends=False))
    totals = read(world).groupBy("k").agg(F.count("*").alias("n"), F.max("at").alias("last"))
    sink = MemorySink("totals")
    job = write_stream(totals, sink=sink, query="q", store=world.store, mode="update")
    with played(play, job, three_acts(world, play)[:2]) as running:
        assert play.truth.late > 5
        check_late(play, running)
    told = {row["k"]: (row["n"], micros(row["last"])) for row in sink.table().to_pylist()}
    sink.clear()
    truth = Counter(row.k for row in play.seen)
    last = {row.k: row.t for row in sorted(play.seen, key=lambda row: row.t)}
    assert told == {k: (n, last[k]) for k, n in truth.items()}


@pytest.mark.parametrize("how", [pytest.param("inner", marks=pytest.mark.faults), "left_outer"])
def test_joins_of_streams(world: World, how: str) -> None:
    for name, segments in (("orders", 3), ("payments", 2)):
        world.stream(name, segments=segments)
    play = Play(world, Truth(lambda t: t + 1, exact_ends=False), streams=("orders", "payments"))
    orders = read(world, last_use="once")
    payments = read(world, "payments", last_use="once", max_rows=60).select(
        F.col("k").alias("paid_k"), F.col("v").alias("paid"), F.col("at").alias("paid_at")
    )
    near = (
        (F.col("k") == F.col("paid_k"))
        & (F.col("paid_at") >= F.col("at"))
        & (F.col("paid_at") <= F.col("at") + F.expr("INTERVAL 10 SECONDS"))
    )
    sink = MemorySink(f"joined {how}")
    joined = orders.join(payments, near, how)
    job = write_stream(
        joined, sink=sink, query="q", store=world.store, event_time="at", time_behind="10 s"
    )
    keys = [world.key(place, nth=n) for place in range(3) for n in range(2)]

    def pay(times: Any) -> None:
        world.append([(key, n, t) for n, t in enumerate(times) for key in keys], "payments")

    def first() -> None:
        crowd(world, "orders", TOPS)
        pay([5, 40, 75, 78])

    def edge() -> None:
        times = at_the_edge(play.truth.w or 0, 10)
        pay([t + 2 for t in times])  # first: the other stream is behind, and holds W
        every_place(world, "orders", 3, times)

    def far() -> None:
        every_place(world, "orders", 3, [FAR])
        pay([FAR])

    with played(play, job, [first, edge, far]) as running:
        assert {row.stream for row in play.truth.lost} == {"orders", "payments"}
        check_late(play, running)
    told = Counter(
        (r["k"], r["v"], micros(r["at"]), r["paid"], r["paid_at"] and micros(r["paid_at"]))
        for r in sink.table().to_pylist()
    )
    sink.clear()
    truth = Counter[Any]()
    for order in (row for row in play.all_kept if row.stream == "orders"):
        met = [
            row
            for row in play.all_kept
            if row.stream == "payments" and row.k == order.k
            if order.t <= row.t <= order.t + 10 * S
        ]
        truth.update((order.k, order.v, order.t, row.v, row.t) for row in met)
        if how == "left_outer" and not met and order.t + 10 * S < play.ws[-1]:
            truth[order.k, order.v, order.t, None, None] += 1
    assert told == truth


def test_windows_of_windows(world: World) -> None:
    world.stream(segments=3)
    play = Play(world, Truth(tumbling(10 * S), exact_ends=True))
    small = read(world, windows="10 s").groupBy(F.window("at", "10 seconds"), "k").count()
    large = small.groupBy(F.window(F.window_time("window"), "30 seconds")).agg(
        F.sum("count").alias("n"), F.count("*").alias("parts")
    )
    job = write_stream(large, sink=StreamSink("out"), query="q", store=world.store)
    with played(play, job, three_acts(world, play)) as running:
        check_late(play, running)
    told = {(r["window_start"], r["window_end"]): (r["n"], r["parts"]) for r in world.read("out")}
    assert len(told) == len(world.read("out"))
    truth: dict[tuple[int, int], tuple[int, int]] = {}
    for (start, _, _), n in counted(play.all_kept, lambda t: (t // (10 * S) * 10 * S, 0)).items():
        place = (start // (30 * S) * 30 * S, start // (30 * S) * 30 * S + 30 * S)
        had = truth.get(place, (0, 0))
        truth[place] = (had[0] + n, had[1] + 1)
    assert told == {place: of for place, of in truth.items() if place[1] <= play.ws[-1]}


class ByHand(StatefulProcessor):
    """Counts rows in windows of ten seconds, by timers of its own."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.counts = handle.getMapState("counts", "end long", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            end = micros(row.at) // (10 * S) * 10_000 + 10_000
            (had,) = self.counts.getValue((end,)) or (0,)
            self.counts.updateValue((end,), (had + 1,))
            self.handle.registerTimer(end)
        return iter([])

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        end = expiredTimerInfo.getExpiryTimeInMs()
        (n,) = self.counts.getValue((end,)) or (0,)
        self.counts.removeKey((end,))
        yield Row(k=key[0], end=end, n=n)

    def close(self) -> None:
        pass


def test_state_and_timers_of_the_users_own(world: World) -> None:
    world.stream(segments=3)
    # With event time Spark drops every row at the watermark, whatever the state is for.
    play = Play(world, Truth(lambda t: t + 1, exact_ends=False))
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    sink = MemorySink("by hand")
    with setting(world.spark, "spark.sql.streaming.stateStore.providerClass", rocks):
        made = (
            read(world, last_use="once", max_rows=40)
            .groupBy("k")
            .transformWithState(ByHand(), "k STRING, end LONG, n LONG", "append", "eventtime")
        )
        job = write_stream(made, sink=sink, query="q", store=world.store)
        with played(play, job, three_acts(world, play)) as running:
            check_late(play, running)
    told = Counter((row["end"] * MS, row["k"], row["n"]) for row in sink.table().to_pylist())
    sink.clear()
    truth = counted(play.all_kept, lambda t: (0, tumbling(10 * S)(t)))
    closed = {place: n for place, n in truth.items() if place[1] <= play.ws[-1]}
    assert told == Counter((end, k, n) for (_, end, k), n in closed.items())
