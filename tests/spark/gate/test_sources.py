"""One source of the gate: what it gives out, where it begins, when it is quiet, when it ends.

Most of it is driven by hand, as Spark drives it (`loop.py`); what only Spark can show comes last.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tests.spark.gate.loop import Checkpoint, Loop, bounded, gate, resumed, rows_of
from tests.spark.jobs.world import S, World, begun, reach

from tidegate.errors import TidegateError
from tidegate.logs.files import FileLog
from tidegate.logs.nexmark import NexmarkLog
from tidegate.spark import StreamSink, read_stream, register, write_stream
from tidegate.spark.gate.trick import WATERMARK
from tidegate.spark.progress import JobProgress
from tidegate.spark.running import patiently


def alone(world: World, stream: Any = "orders", **settings: Any) -> Loop:
    """A query over one stream, begun."""
    source = gate(world, stream, **settings)
    return Loop(world, {source.gate.stream: source}, Checkpoint())


def ids(loop: Loop) -> list[int]:
    """The values of the rows that were given out."""
    return [row["v"] for _, _, row in loop.kept.rows]


def figures(loop: Loop) -> dict[str, Any]:
    return JobProgress(loop.world.store, "q").figures()


def test_rows_have_the_columns_that_were_asked_for(bare: World) -> None:
    bare.stream(segments=2)
    bare.append([(bare.key(0), 1, 5), (bare.key(0), 2, 6.5), (bare.key(1), 3, 7)])
    columns = "v,at,_offset,_partition,_event_time,_timestamp"
    loop = alone(bare, columns=columns)
    loop.run()
    wanted = bare.read("orders", "_offset", "_partition", "_event_time", "_timestamp")
    got = [row for _, _, row in loop.kept.rows]
    assert [list(row) for row in got] == [columns.split(",")] * 3

    def plain(row: Any) -> tuple[Any, ...]:
        times = (row[name] for name in ("at", "_event_time", "_timestamp"))
        return (row["v"], row["_partition"], row["_offset"], *map(_micros, times))

    assert sorted(map(plain, got)) == sorted(map(plain, wanted))


def _micros(value: Any) -> int:
    return value if isinstance(value, int) else pa.scalar(value, pa.timestamp("us", "UTC")).value


def test_limits_cut_the_input_into_batches(bare: World) -> None:
    bare.stream()
    for n in range(6):
        bare.append([("a", 2 * n, 10 * n), ("a", 2 * n + 1, 10 * n + 1)])
    for query, limit, most in (("rows", {"max_rows": 4}, 4), ("bytes", {"max_bytes": 1}, 2)):
        loop = alone(bare, query=query, **limit)
        loop.run()
        per_batch = Counter(batch for batch, _, _ in loop.kept.rows)
        assert sorted(ids(loop)) == list(range(12))
        assert max(per_batch.values()) == most
        assert bare.read("orders.late") == []
    loop = alone(bare, query="all")
    loop.run()
    assert set(Counter(batch for batch, _, _ in loop.kept.rows).values()) == {12}


def test_a_run_ends_with_what_there_was_also_where_there_was_nothing(bare: World) -> None:
    bare.stream()
    loop = alone(bare)
    assert loop.run() <= 1
    loop = resumed(loop)
    bare.append([("a", 1, 5)])  # after it has begun
    assert loop.run() <= 1
    assert ids(loop) == []
    loop = resumed(loop)
    bare.append([("a", 2, 50)])
    loop.run()
    assert ids(loop) == [1]
    loop = resumed(loop)
    loop.run()
    assert ids(loop) == [1, 2]
    # Nothing new: at most the one batch that repeats W, and then none, however often it is asked.
    for _ in range(2):
        loop = resumed(loop)
        assert loop.run() <= 2
        assert not loop.step()
    loop = resumed(loop, available_now=False)
    loop.run()
    asked = [loop.step() for _ in range(15)]  # timers are looked at in between
    assert not any(asked)


def test_where_it_begins(bare: World) -> None:
    bare.stream()
    for n in range(4):
        bare.append([("a", 2 * n, 10 * n + 5), ("a", 2 * n + 1, 10 * n + 9)])
    [segment] = [record.name for record in bare.store.segments("orders")]
    tens, none = {"windows": "10 s"}, {"windows": None}
    begins: list[tuple[Any, Any, list[int]]] = [
        ("earliest", tens, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("latest", tens, [8]),
        ({segment: 5}, tens, [5, 6, 7, 8]),
        # Windows begin where the first whole one does.
        ("1970-01-01T00:00:19Z", tens, [4, 5, 6, 7, 8]),
        ("1970-01-01T00:00:19Z", none, [3, 4, 5, 6, 7, 8]),
        (19 * S, none, [3, 4, 5, 6, 7, 8]),
    ]
    loops = [
        (alone(bare, query=f"q{n}", start=start, **use), expected)
        for n, (start, use, expected) in enumerate(begins)
    ]
    for loop, _ in loops:
        loop.run()
    bare.append([("a", 8, 45)])
    for loop, expected in loops:
        again = resumed(loop)
        again.run()
        assert ids(again) == expected
    # What lies before the start is not late: nobody has asked for it.
    assert bare.read("orders.late") == []


def test_a_batch_may_have_a_message_and_no_row(bare: World) -> None:
    bare.stream()
    bare.registered()
    bare.append([("a", 1, 5)])
    loop = alone(bare)
    loop.run()
    assert loop.watermark == 0  # nobody has noted a time
    bare.note(20)
    source = loop.sources["orders"]
    loop = resumed(loop)
    loop.run()
    assert loop.watermark == 20 * S
    assert [(end // S, n) for _, end, n in loop.kept.given] == [(10, 1)]
    batches = zip(loop.kept.logged, loop.kept.logged[1:], strict=False)
    read = [rows_of(source, a.ends["orders"], b.ends["orders"]) for a, b in batches]
    assert ([], [20 * S]) in read


def _late(world: World, policy: str, **settings: Any) -> Loop:
    world.stream()
    world.append([("a", 1, 5), ("a", 2, 35)])
    loop = alone(world, late=policy, **settings)
    loop.run()
    # Lost; late but of use; on time.
    world.append([("a", 3, 8), ("a", 4, 31), ("a", 5, 38), ("a", 6, 52)])
    loop = resumed(loop)
    loop.run()
    return loop


def test_lost_rows_are_routed_with_who_lost_them_and_when(bare: World) -> None:
    loop = _late(bare, "route")
    assert sorted(ids(loop)) == [1, 2, 4, 5, 6]
    [row] = bare.read("orders.late")
    assert (row["k"], row["v"], row["at"], row["late_time"]) == ("a", 3, 8 * S, 8 * S)
    assert (row["late_job"], row["late_watermark"]) == ("q", 35 * S - 1)
    told = figures(loop)
    assert (told["late"], told["lost"], told["bad"], told["rows_in"]) == (2, 1, 0, 6)
    assert list(told["partitions"]["orders"].values()) == [[2, 1, 0]]


def test_lost_rows_are_dropped_and_counted(bare: World) -> None:
    loop = _late(bare, "drop")
    assert sorted(ids(loop)) == [1, 2, 4, 5, 6]
    assert bare.store.list_streams() == ["orders"]
    assert (figures(loop)["late"], figures(loop)["lost"]) == (2, 1)


def test_lost_rows_count_in_the_next_window(bare: World) -> None:
    loop = _late(bare, "next")
    times = {row["v"]: _micros(row["at"]) // S for _, _, row in loop.kept.rows}
    assert times == {1: 5, 2: 35, 3: 35, 4: 31, 5: 38, 6: 52}
    assert [(end // S, n) for _, end, n in loop.kept.given] == [(10, 1), (40, 4)]
    assert bare.store.list_streams() == ["orders"]
    assert (figures(loop)["late"], figures(loop)["lost"]) == (2, 0)


def test_a_row_is_waited_for_as_long_as_is_allowed(bare: World) -> None:
    loop = _late(bare, "route", allowed_lateness="25 s")
    # 35 s - 25 s: the first window had just been given out.
    assert [row["v"] for row in bare.read("orders.late")] == [3]
    assert loop.watermark == (52 - 25) * S
    later = gate(bare, query="other", allowed_lateness="26 s")
    loop = Loop(bare, {"orders": later}, Checkpoint())
    loop.run()
    assert sorted(ids(loop)) == [1, 2, 3, 4, 5, 6]


def test_rows_before_1970_are_bad_rows_with_the_reason(bare: World) -> None:
    bare.stream()
    bare.append([("a", 1, -5), ("a", 2, 0), ("a", 3, -0.000001), ("a", 4, 12)])
    loop = alone(bare)
    loop.run()
    bare.append([("a", 5, -7), ("a", 6, 25)])  # both late and too old: it is told once
    for _ in range(2):
        loop = resumed(loop)
        loop.run()
    assert ids(loop) == [2, 4, 6]
    told = bare.read("orders.errors")
    assert [row["reason"] for row in told] == ["before 1970"] * 3
    assert bare.read("orders.late") == []
    assert (figures(loop)["late"], figures(loop)["lost"], figures(loop)["bad"]) == (0, 0, 3)


def test_the_first_instant_of_1970_is_a_bad_row_where_spark_would_drop_it(bare: World) -> None:
    bare.stream()
    bare.append([("a", 1, -5), ("a", 2, 0), ("a", 3, 0.000001), ("a", 4, 12)])
    loop = alone(bare, windows=None, last_use="once")
    loop.run()
    resumed(loop).run()
    assert ids(loop) == [3, 4]
    told = sorted(row["reason"] for row in bare.read("orders.errors"))
    assert told == ["before 1970", "the first instant of 1970"]
    assert (figures(loop)["lost"], figures(loop)["bad"]) == (0, 2)


def test_a_late_row_has_the_columns_that_were_added_while_its_query_ran(bare: World) -> None:
    bare.stream()
    bare.append([("a", 1, 5), ("a", 2, 35)])
    loop = Loop(bare, {"orders": gate(bare)}, Checkpoint(), available_now=False)
    loop.run()
    bare.store.alter_stream("orders", add_columns=[pa.field("city", pa.string())])
    bare.append([("a", 3, 6), ("a", 4, 45)], writer="new", city="Rome")
    loop.run()  # with the planner that it began with
    [row] = bare.read("orders.late")
    assert (row["v"], row["city"]) == (3, "Rome")


def test_a_column_that_is_added_meanwhile_changes_nothing_for_a_query_that_runs(
    bare: World,
) -> None:
    bare.stream()
    bare.append([("a", 1, 5), ("a", 2, 35)])
    loop = alone(bare)
    loop.run()
    bare.store.alter_stream("orders", add_columns=[pa.field("city", pa.string())])
    bare.append([("a", 3, 6), ("a", 4, 45)], writer="new", city="Rome")
    loop = resumed(loop)
    loop.run()
    assert [sorted(row) for _, _, row in loop.kept.rows] == [["at", "k", "v"]] * 3
    [row] = bare.read("orders.late")  # a late row is kept as it is
    assert (row["v"], row["city"]) == (3, "Rome")
    # A query that is started now sees it, in old rows as nothing.
    new = Loop(bare, {"orders": gate(bare, query="new")}, Checkpoint())
    new.run()
    cities = {row["v"]: row["city"] for _, _, row in new.kept.rows}
    assert cities == {1: None, 2: None, 3: "Rome", 4: "Rome"}


def test_files_and_generated_rows_with_a_store_beside(bare: World, tmp_path: Path) -> None:
    for partition, times in (("0", [5, 15, 40]), ("1", [6, 12, -1, 70])):
        folder = tmp_path / "files" / partition
        folder.mkdir(parents=True)
        at = pa.array([t * S for t in times], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"v": pa.array(times), "at": at}), folder / "1.parquet")
    log = FileLog("files", tmp_path / "files", event_column="at", ended=True)
    loop = alone(bare, log, columns="v,at,_partition,_offset")
    loop.run()
    assert sorted(ids(loop)) == [5, 6, 12, 15, 40, 70]
    assert [(end // S, n) for _, end, n in loop.kept.given] == [(10, 2), (20, 2), (50, 1), (80, 1)]
    assert [row["reason"] for row in bare.read("files.errors")] == ["before 1970"]
    assert {row["_partition"] for _, _, row in loop.kept.rows} == {"0", "1"}

    bids = NexmarkLog("bids", "bid", total=2000, partitions=3, shuffle=20, span_rows=100)
    source = gate(bare, bids, query="n", columns="auction,_event_time", tolerance="1 s")
    rows = 0
    start = source.initialOffset()
    source.prepareForTriggerAvailableNow()
    while True:
        end = source.latestOffset(start, source.getDefaultReadLimit())
        if end == start:
            break
        rows += len(rows_of(source, start, end)[0])
        start = end
    assert rows == int(bids.snapshot({}).partitions.latest.sum()) == 1840
    assert JobProgress(bare.store, "n").figures()["late"] == 0


def test_bounded_logs_are_given_out_to_their_end_and_are_then_finished(
    bare: World, tmp_path: Path
) -> None:
    logs = [bounded(tmp_path, "short", [5, 15]), bounded(tmp_path, "long", [1, 100, 250])]
    sources = {log.name: gate(bare, log, columns="v,at", max_rows=1) for log in logs}
    loop = Loop(bare, sources, Checkpoint())
    loop.run()
    # Everything, also the window that holds the largest time, and nothing before its time.
    assert [(end // S, n) for _, end, n in loop.kept.given] == [
        (10, 2),
        (20, 1),
        (110, 1),
        (260, 1),
    ]
    assert not loop.kept.state
    loop.step()
    for name in sources:
        with pytest.raises(TidegateError) as over:
            resumed(loop).sources[name].latestOffset(loop.starts[name], None)  # type: ignore[arg-type]
        assert over.value.code == "query-finished"


# ---- what only Spark can show ----


def test_by_hand_with_options_alone(world: World) -> None:
    world.stream()
    world.append([("a", 1, 5), ("a", 2, 25)])
    register(world.spark)
    given: list[Any] = []
    options = {"store": str(world.folder / "store"), "stream": "orders", "query": "hand"}
    raw = world.spark.readStream.format("tidegate").options(**options, windows="10 s").load()
    assert raw.columns == ["k", "v", "at", WATERMARK]
    writer = (
        raw.writeStream.foreachBatch(lambda rows, _: given.extend(rows.collect()))
        .option("checkpointLocation", str(world.folder / "hand"))
        .trigger(availableNow=True)
    )
    patiently(lambda: writer.start().awaitTermination())
    assert sorted(row.v for row in given if row.v is not None) == [1, 2]
    messages = [row for row in given if row[WATERMARK] is not None]
    assert messages
    assert all(row.v is None and row.k is None and row.at is None for row in messages)
    with pytest.raises(Exception, match="unknown-setting"):
        world.spark.readStream.format("tidegate").options(**options, wndows="1 s").load()
    with pytest.raises(TidegateError, match="slices"):
        read_stream(world.spark, "orders", store=world.store, query="q", late="update")
    with pytest.raises(TidegateError, match="store"):
        read_stream(world.spark, "orders", query="q")


def test_frames_of_one_name_have_each_its_own_store(world: World, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = World(world.spark, tmp_path / "other")
    frames = {}
    for value, here in ((1, world), (2, other)):
        here.stream()
        here.append([("a", value, 5)])
        frames[value] = read_stream(here.spark, "orders", store=here.store, query="q")
    assert {value: _values(rows, tmp_path / str(value)) for value, rows in frames.items()} == {
        1: [1],
        2: [2],
    }
    other.close()


def _values(rows: DataFrame, checkpoint: Path) -> list[int]:
    """What a query over the rows gives out of what is there."""
    given: list[int] = []
    writer = (
        rows.writeStream.foreachBatch(lambda batch, _: given.extend(r.v for r in batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )
    patiently(lambda: writer.start().awaitTermination())
    return given


def test_a_quiet_query_runs_no_batches_and_one_that_was_stopped_goes_on(world: World) -> None:
    world.stream(segments=2)
    orders = read_stream(
        world.spark, "orders", store=world.store, query="q", windows="10 s", idle_after="never"
    )
    counts = orders.groupBy(F.window("at", "10 seconds")).count()
    job = write_stream(counts, sink=StreamSink("out"), query="q", store=world.store)
    assert job.run(tell=False)["rows_in"] == 0  # nobody has written anything
    world.append([(world.key(0), 1, 5), (world.key(1), 2, 5), (world.key(0), 1, 25)])
    before = job.run(tell=False)["batches"]
    assert world.read("out") == []  # the other segment is waited for
    with begun(job) as running:
        again = running.figures()["batches"]
        assert again <= before + 2
        assert not running.wait(timedelta(seconds=3))
        assert running.figures()["batches"] == again
        world.append([(world.key(1), 3, 20)])
        running.process_all()
        assert running.figures()["batches"] > again
        assert running.figures()["dropped_by_spark"] == 0
    out = [(r["window_start"] // S, r["window_end"] // S, r["count"]) for r in world.read("out")]
    assert out == [(0, 10, 2)]
    assert job.progress.frontier() == 20 * S


def test_processing_time_follows_the_clock(world: World) -> None:
    schema = pa.schema([("k", pa.string()), ("v", pa.int64())])
    world.store.create_stream("orders", schema, routing_key=("k",))
    orders = read_stream(
        world.spark, "orders", store=world.store, query="q", windows="1 s", watermark="processing"
    )
    counts = orders.groupBy(F.window("_event_time", "1 second"), "k").count()
    job = write_stream(counts, sink=StreamSink("out"), query="q", store=world.store)
    writer = world.store.writer("orders", "w", flush_age=None)
    with begun(job) as running:
        for n in range(2):
            writer.append([{"k": "a", "v": n}, {"k": "b", "v": n}])
            writer.flush()
            newest = max(row["_timestamp"] for row in world.read("orders", "_timestamp"))
            # The clock alone gives the window out: no further row is needed.
            reach(running, (newest // S * S + S) / S)
        told = running.figures()
    writer.close()
    assert (told["late"], told["lost"], told["dropped_by_spark"]) == (0, 0, 0)
    rows = world.read("orders", "_timestamp")
    expected = Counter((row["_timestamp"] // S * S, row["k"]) for row in rows)
    got = {(r["window_start"], r["k"]): r["count"] for r in world.read("out")}
    assert got == dict(expected)
