"""Where queries end, and how far their results may be said to be: also when sources differ.

What can be driven by hand is (`loop.py`); what only Spark can show comes last.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.spark.gate.loop import Checkpoint, Killed, Loop, bounded, gate, resumed, rows_of
from tests.spark.jobs.world import S, World, begun

from tidegate.errors import TidegateError
from tidegate.spark import FilesSink, MemorySink, StreamSink, read_stream, write_stream
from tidegate.spark.gate.batches import fresh_runner
from tidegate.spark.gate.writing import GateJob
from tidegate.spark.sinks.files import read_files

COLUMNS = "k,v,at,_partition,_offset"


def ends(loop: Loop) -> list[tuple[int, int]]:
    """What came out: the end of each window in seconds, and the count."""
    return [(end // S, n) for _, end, n in loop.kept.given]


@pytest.mark.parametrize("order", [("short", "long"), ("long", "short")])
def test_killed_anywhere_near_the_end_everything_is_given_out(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    """The end is recorded when what it calls for has been run, and not a batch before."""
    logs = {
        "short": bounded(tmp_path, "short", [5, 15]),
        "long": bounded(tmp_path, "long", [1, 100, 250]),
    }
    for number in range(10):
        for kill in ("asked", "logged", "ran"):
            world = World(None, tmp_path / f"{number}-{kill}")  # type: ignore[arg-type]
            sources = {n: gate(world, logs[n], columns="v,at", max_rows=1) for n in order}
            loop = Loop(world, sources, Checkpoint())
            try:
                for step in range(20):
                    if not loop.step(kill if step == number else None):
                        break
            except Killed:
                loop = resumed(loop)
                with contextlib.suppress(TidegateError):  # it had finished
                    loop.run()
            assert ends(loop) == [(10, 2), (20, 1), (110, 1), (260, 1)], (number, kill)
            assert not loop.kept.state
            world.close()


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_no_frontier_is_ahead_of_spark_after_a_batch_that_ran_again(
    bare: World, order: tuple[str, str]
) -> None:
    """Spark then knows of the sources that were in that batch, and has forgotten the others."""
    for name, top in (("a", 100), ("b", 110)):
        bare.stream(name)
        bare.append([("k", 1, 95), ("k", 2, top)], name)
    sources = {name: gate(bare, name, columns=COLUMNS) for name in order}
    loop = Loop(bare, sources, Checkpoint())
    loop.run()
    bare.append([("k", 3, 104), ("k", 4, 125)], "a")
    loop = resumed(loop)
    loop.step()  # each repeats its watermark
    with pytest.raises(Killed):
        loop.step("logged")
    again = resumed(loop)
    again.run()  # the loop asserts that no result is behind a frontier that was told
    assert (110, 2) in ends(again)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_row_that_spark_would_drop_is_routed_though_its_source_would_allow_it(
    bare: World, order: tuple[str, str]
) -> None:
    for name, top in (("a", 100), ("b", 200)):
        bare.stream(name)
        bare.append([("k", 1, 95), ("k", 2, top)], name)
    allowed = {"a": "0 s", "b": "60 s"}
    sources = {n: gate(bare, n, columns=COLUMNS, allowed_lateness=allowed[n]) for n in order}
    loop = Loop(bare, sources, Checkpoint())
    loop.run()
    assert loop.watermark == 100 * S
    bare.append([("k", 3, 55)], "b")
    loop = resumed(loop)
    loop.run()  # the loop asserts that Spark would drop nothing
    assert [row["v"] for row in bare.read("b.late")] == [3]


def test_what_spark_was_told_holds_when_more_is_allowed_later(bare: World) -> None:
    bare.stream()
    bare.append([("k", 1, 5), ("k", 2, 100)])
    loop = Loop(bare, {"orders": gate(bare, columns=COLUMNS)}, Checkpoint())
    loop.run()
    bare.append([("k", 3, 55)])
    patient = gate(bare, columns=COLUMNS, allowed_lateness="60 s")
    loop = Loop(bare, {"orders": patient}, loop.kept)
    loop.run()
    assert [row["v"] for row in bare.read("orders.late")] == [3]
    assert loop.watermark == 100 * S


def test_at_the_end_sources_that_allow_more_close_the_windows_of_the_others(
    bare: World, tmp_path: Path
) -> None:
    logs = [bounded(tmp_path, "a", [5, 15]), bounded(tmp_path, "b", [1, 100, 250])]
    allowed = {"a": "60 s", "b": "0 s"}
    sources = {
        log.name: gate(bare, log, columns="v,at", allowed_lateness=allowed[log.name])
        for log in logs
    }
    loop = Loop(bare, sources, Checkpoint())
    loop.run()
    assert ends(loop) == [(10, 2), (20, 1), (110, 1), (260, 1)]


def test_the_end_waits_for_what_operators_hold(bare: World, tmp_path: Path) -> None:
    log = bounded(tmp_path, "orders", [12, 15])
    for held, last in ((None, 15_001), ("10 s", 25_001)):
        source = gate(
            bare, log, query=f"held {held}", windows=None, last_use="once", held=held,
            columns="v,at",
        )  # fmt: skip
        loop = Loop(bare, {"orders": source}, Checkpoint())
        loop.run()
        assert loop.watermark == last * 1000


def test_a_clock_moves_a_long_window_once_at_its_end(bare: World) -> None:
    schema = pa.schema([("k", pa.string())])
    bare.store.create_stream("orders", schema, routing_key=("k",))
    with bare.store.writer("orders", "w", flush_age=None) as writer:
        writer.append([{"k": "a"}])
    for use, most in (({"windows": "1 h"}, 1), ({"windows": None, "gap": "1 h"}, 3)):
        source = gate(bare, watermark="processing", query=str(use), columns=None, **use)
        source.getDefaultReadLimit()
        offset, found = source.initialOffset(), []
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            end = source.latestOffset(offset, source.getDefaultReadLimit())
            if end != offset:
                found.append(rows_of(source, offset, end))
                offset = end
        assert sum(len(rows) for rows, _ in found) == 1
        assert len(found) <= most


# ---- what only Spark can show ----


def _passed(world: World, log: Any, **settings: Any) -> GateJob:
    rows = read_stream(world.spark, log, store=world.store, query="q").where("v > 4")
    return write_stream(
        rows, sink=StreamSink("out"), query="q", store=world.store, event_time="at",
        time_behind="0 s", **settings,
    )  # fmt: skip


def test_a_query_without_state_ends_and_its_frontier_is_that_of_all_its_rows(
    world: World, tmp_path: Path
) -> None:
    job = _passed(world, bounded(tmp_path, "short", [1, 5, 15]))
    with begun(job) as running:
        assert running.wait(timedelta(minutes=2))
    assert sorted(row["v"] for row in world.read("out")) == [5, 15]
    assert job.progress.finished()
    # And one that goes on: the last watermark is noted though nothing comes after it.
    world.stream()
    world.append([("a", 5, 5), ("a", 6, 25)])
    job.reset()
    rows = read_stream(world.spark, "orders", store=world.store, query="on", idle_after="never")
    on = write_stream(
        rows, sink=StreamSink("on"), query="on", store=world.store, event_time="at",
        time_behind="0 s",
    )  # fmt: skip
    figures = on.run(tell=False)
    assert on.progress.frontier() == 25 * S - 1000
    assert on.run(tell=False)["batches"] <= figures["batches"] + 1


def test_what_spark_drops_is_counted_also_in_the_last_batch_of_a_run(world: World) -> None:
    world.stream()
    world.append([("a", 1, 5), ("a", 2, 100)])
    # The use of the rows is not said: nothing is too late for the source.
    rows = read_stream(world.spark, "orders", store=world.store, query="q", idle_after="never")
    counts = rows.groupBy(F.window("at", "10 seconds")).count()
    job = write_stream(counts, sink=StreamSink("out"), query="q", store=world.store)
    assert job.run(tell=False)["dropped_by_spark"] == 0
    world.append([("a", 3, 6)])
    assert job.run(tell=False)["dropped_by_spark"] == 1
    nodes = job.progress.nodes()
    assert any(name.startswith("operator:") for name in nodes)


def test_a_job_that_was_reset_is_another_history_also_in_the_same_process(
    world: World, tmp_path: Path
) -> None:
    world.stream()
    world.append([("a", 1, 5), ("a", 2, 25)])
    out, checkpoint = str(tmp_path / "files"), tmp_path / "checkpoint"
    rows = read_stream(world.spark, "orders", store=world.store, query="q", windows="10 s")
    counts = rows.groupBy(F.window("at", "10 seconds")).count()
    job = write_stream(
        counts, sink=FilesSink(out), query="q", store=world.store, checkpoint=checkpoint
    )
    job.run(tell=False)
    assert read_files(out).num_rows == 1
    job.reset()
    shutil.rmtree(checkpoint)
    with pytest.raises(TidegateError) as refused:  # and not: there already, nothing to do
        job.run(tell=False)
    assert refused.value.code == "sink-fenced"


def test_what_is_not_clear_of_a_query_is_refused(world: World, tmp_path: Path) -> None:
    world.stream()
    world.stream("payments")
    world.append([("a", 1, 5), ("a", 2, 25)])

    def read(stream: str, query: str = "q") -> Any:
        return read_stream(world.spark, stream, store=world.store, query=query, windows="10 s")

    def code(rows: Any, **settings: Any) -> str:
        given = {"sink": MemorySink("m"), "query": "q", "store": world.store, **settings}
        with pytest.raises(TidegateError) as refused:
            write_stream(rows, **given).run(tell=False)
        return refused.value.code

    assert code(read("orders"), event_time="at") == "time-behind-missing"
    counted = read("orders").union(read("payments")).groupBy(F.window("at", "10 seconds")).count()
    assert code(counted) == "time-behind-missing"
    other = read("orders", "another").groupBy(F.window("at", "10 seconds")).count()
    assert code(other, query="lonely") == "gate-without-sources"
    rate = world.spark.readStream.format("rate").load().selectExpr("timestamp AS at")
    mixed = (
        read("orders", "mixed")
        .select("at")
        .union(rate)
        .groupBy(F.window("at", "10 seconds"))
        .count()
    )
    assert (
        code(mixed, query="mixed", time_behind="0 s", checkpoint=tmp_path / "d")
        == "gate-with-strangers"
    )
    with pytest.raises(TidegateError) as twice:
        read_stream(
            world.spark, "orders", store=world.store, query="q", windows="1 s", last_use="once"
        )
    assert twice.value.code == "use-given-twice"


def test_rows_of_every_type_come_through_packs(world: World) -> None:
    kinds = pa.schema(
        [
            ("k", pa.string()),
            ("note", pa.string()),
            ("small", pa.uint16()),
            ("flag", pa.bool_()),
            ("money", pa.decimal128(12, 2)),
            ("day", pa.date32()),
            ("raw", pa.binary()),
            ("tags", pa.list_(pa.string())),
            ("place", pa.struct([("x", pa.float64()), ("y", pa.float32())])),
            ("at", pa.timestamp("us", tz="UTC")),
        ]
    )
    world.store.create_stream("orders", kinds, event_column="at", routing_key=("k",))
    rows = [
        {
            "k": f"k{n}",
            "note": None if n % 7 == 0 else "ä" * (n % 5),
            "small": n % 500,
            "flag": None if n % 3 == 0 else n % 2 == 0,
            "money": None if n % 5 == 0 else Decimal(n) / 4,
            "day": n % 30 if n % 4 else None,
            "raw": bytes([n % 256]),
            "tags": None if n % 6 == 0 else ["a", None, str(n)],
            "place": None if n % 9 == 0 else {"x": n / 2, "y": None},
            "at": n * S,
        }
        for n in range(2500)
    ]
    table = pa.Table.from_pylist(rows, schema=kinds.set(9, pa.field("at", pa.int64())))
    table = table.set_column(9, "at", table["at"].cast(kinds.field("at").type))
    with world.store.writer("orders", "w", flush_age=None) as writer:
        writer.append(table)
    given: list[Any] = []
    frame = read_stream(world.spark, "orders", store=world.store, query="q")
    query = (
        frame.writeStream.foreachBatch(lambda got, _: given.extend(got.toArrow().to_pylist()))
        .option("checkpointLocation", str(world.folder / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert Counter(map(repr, given)) == Counter(map(repr, table.to_pylist()))


def test_a_query_that_is_stopped_before_its_first_batch_has_just_ended(world: World) -> None:
    world.stream()
    rows = read_stream(world.spark, "orders", query="q", store=world.store)
    job = write_stream(
        rows.select("k", "v"), sink=MemorySink("early"), query="q", store=world.store
    )
    runner = fresh_runner(job.job)
    query: Any = SimpleNamespace(recentProgress=[])
    runner.tell_last(query)
    with job.start(tell=False):
        pass  # stopped at once, whatever it has done by then
