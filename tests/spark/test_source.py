"""The batch source: what comes out of `format("tidegate")` is what the log holds between bounds."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructType
from sqlalchemy import select
from tests.store.rows import create, write

from tidegate.errors import TidegateError
from tidegate.logs.files import FileLog
from tidegate.logs.nexmark import NexmarkLog
from tidegate.logs.store_log import StoreLog
from tidegate.planning.facts import Spans
from tidegate.spark.arrow_types import spark_schema
from tidegate.spark.source import LogReader, bounds_of, columns_of, read, register
from tidegate.spark.source_options import Between, ReadOptions, WriteOptions
from tidegate.spark.source_partitions import Read, pack, runs
from tidegate.store import Store
from tidegate.store.catalog.schema import chunks
from tidegate.testing import MemoryLog


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "shop") as made:
        yield made


def numbers(frame: DataFrame) -> list[int]:
    """The column `n`, as an Arrow table and not as rows: a hundred times as fast."""
    found: list[int] = frame.select("n").toArrow().column("n").to_pylist()
    return found


def code_of(act: Callable[[], object]) -> str:
    with pytest.raises(TidegateError) as caught:
        act()
    return caught.value.code


# ---- packing ----

spans = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(1, 40)), max_size=12
)


@settings(deadline=None)
@given(spans, st.integers(1, 9), st.integers(1, 30))
def test_every_offset_is_in_one_task_and_tasks_are_equal(
    listed: list[tuple[str, int, int]], tasks: int, least: int
) -> None:
    ends: dict[str, int] = {}
    made = []
    for name, gap, rows in listed:
        start = ends.get(name, 0) + gap
        ends[name] = start + rows
        made.append((name, start, start + rows, 0, 9))
    packed = pack(runs(Spans.of(made, names="abc")), tasks, least=least)
    wanted = sorted((name, at) for name, start, end, *_ in made for at in range(start, end))
    found = [(r.partition, at) for task in packed for r in task for at in range(r.start, r.end)]
    assert found == wanted, "each once, in order"
    assert len(packed) <= tasks
    sizes = [sum(r.rows for r in task) for task in packed]
    assert all(size == max(-(-len(wanted) // tasks), least) for size in sizes[:-1])


def test_without_a_number_of_tasks_large_reads_are_divided_by_rows() -> None:
    packed = pack([Read("0", 0, 50_000_000)])
    assert len(packed) >= 50
    assert pack(runs(Spans.of([]))) == []
    assert pack(runs(Spans.of([("0", 5, 9, 0, 9)]))) == [(Read("0", 5, 9),)]


# ---- options ----

PLACE = {"store": "/data/shop", "stream": "orders"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"store": "/data/shop"}, "option-missing"),
        ({"stream": "orders"}, "option-missing"),
        ({"store": "postgresql://db/shop", "stream": "orders"}, "option-missing"),
        ({"store": "shop", "stream": "orders"}, "store-address-relative"),
        ({**PLACE, "path": "/data/shop"}, "setting-given-twice"),
        ({**PLACE, "log": "{}"}, "setting-given-twice"),
        ({**PLACE, "colums": "id"}, "unknown-setting"),
        ({**PLACE, "writer_id": "w"}, "unknown-setting"),
        ({**PLACE, "columns": "id,,n"}, "wrong-setting"),
        ({**PLACE, "columns": "id,id"}, "column-given-twice"),
        ({**PLACE, "tasks": "0"}, "wrong-setting"),
        ({**PLACE, "tasks": "many"}, "wrong-setting"),
        ({**PLACE, "from_cut": "17"}, "wrong-setting"),
        ({**PLACE, "from_cut": '{"0.e0": "1"}'}, "wrong-setting"),
        ({**PLACE, "to_cut": '{"0.e0": -1}'}, "wrong-setting"),
        ({**PLACE, "from_time": "noon"}, "instant-not-parsed"),
        ({**PLACE, "from_time": "2026-01-02", "to_time": "2026-01-01"}, "bounds-crossed"),
        ({"log": "orders"}, "wrong-setting"),
        ({**PLACE, "slices": "{}"}, "wrong-setting"),
        ({**PLACE, "slices": '[{"to_cut": {"0.e0": 1}}]'}, "wrong-setting"),
        ({**PLACE, "slices": '[{"until": "2026-01-01"}]'}, "unknown-setting"),
        ({**PLACE, "slices": '[{"to_time": "noon"}]'}, "instant-not-parsed"),
        ({**PLACE, "slices": "[]", "to_time": "2026-01-01"}, "setting-given-twice"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], code: str) -> None:
    assert code_of(lambda: ReadOptions.parse(options)) == code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({**PLACE, "tasks": "2"}, "unknown-setting"),
        ({**PLACE, "bad_rows": "drop"}, "wrong-setting"),
        ({**PLACE, "note_time": "max"}, "writer-without-id"),
        ({**PLACE, "writer_id": "w", "note_time": "soon"}, "instant-not-parsed"),
    ],
)
def test_a_wrong_option_of_a_write_is_refused(options: dict[str, str], code: str) -> None:
    assert code_of(lambda: WriteOptions.parse(options)) == code


def test_names_of_options_have_no_case_and_a_path_is_the_store() -> None:
    asked = ReadOptions.parse({"PATH": "/data/shop", "Stream": "orders", "Columns": "Id, n"})
    assert asked.place is not None
    assert (asked.place.store, asked.columns) == ("/data/shop", ("Id", "n"))


# ---- what is read, without Spark ----


def batches(log: StoreLog, **options: str) -> list[dict[str, Any]]:
    """What the tasks of a read would give."""
    asked = ReadOptions.parse({"log": json.dumps(log.describe()), **options})
    schema = spark_schema(log.name, columns_of(log, asked.columns))
    reader = LogReader(log.describe(), schema, bounds_of(log, asked), asked.tasks)
    return [
        row
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]


def test_only_chunks_that_can_hold_the_times_are_opened(store: Store) -> None:
    create(store, "orders", segments=2)
    for first in range(0, 100, 10):
        write(store, "orders", range(first, first + 10))
    log = StoreLog(store, "orders")
    kept = log.overlapping(35, 52, {}, {s.name: s.end for s in store.segments("orders")})
    held = {(kept.names[p], int(at)) for p, at in zip(kept.partition, kept.start, strict=True)}
    rows = store.database.read(lambda on: list(on.execute(select(chunks))))
    others = [row for row in rows if (f"{row.segment}.e0", row.start_offset) not in held]
    assert len(others) > len(rows) / 2
    for row in others:
        store.files.delete(row.path)
    iso = [f"1970-01-01T00:00:00.0000{n}Z" for n in (35, 52)]
    found = batches(log, from_time=iso[0], to_time=iso[1], columns="n")
    assert sorted(row["n"] for row in found) == list(range(35, 52))


def test_bounds_that_are_not_there_are_refused(store: Store) -> None:
    create(store, "orders")
    write(store, "orders", range(10))
    log = StoreLog(store, "orders")
    for options, code in (
        ({"from_cut": '{"7.e0": 1}'}, "log-partition-unknown"),
        ({"to_cut": '{"0.e0": 11}'}, "cut-ahead-of-stream"),
        ({"from_cut": '{"0.e0": 7}', "to_cut": '{"0.e0": 6}'}, "bounds-crossed"),
        ({"columns": "what"}, "unknown-column"),
    ):
        assert code_of(lambda options=options: batches(log, **options)) == code  # type: ignore[misc]


def test_truncated_rows_are_told_when_they_are_asked_for(store: Store) -> None:
    create(store, "orders")
    for first in range(0, 40, 10):
        write(store, "orders", range(first, first + 10))
    store.truncate("orders", before={"0.e0": 20})
    log = StoreLog(store, "orders")
    assert [row["n"] for row in batches(log)] == list(range(20, 40))
    assert [row["n"] for row in batches(log, to_time="1970-01-01T00:00:00.000030Z")] == list(
        range(20, 30)
    )
    late = batches(log, from_time="1970-01-01T00:00:00.000025Z")
    assert [row["n"] for row in late] == list(range(25, 40))
    for options in ({"from_time": "1970-01-01T00:00:00.000015Z"}, {"from_cut": '{"0.e0": 10}'}):
        assert code_of(lambda options=options: batches(log, **options)) == "rows-truncated"  # type: ignore[misc]


def test_a_log_without_timestamps_has_the_other_system_columns() -> None:
    memory = MemoryLog()
    memory.add_stream("orders", ["0", "1"])
    memory.append("orders", "1", [10, 30, 20])
    log: Any = memory.log("orders")
    columns = "_partition,_offset,_event_time"
    found = batches(log, columns=columns, to_time="1970-01-01T00:00:00.000025Z")
    assert [(row["_partition"], row["_offset"]) for row in found] == [("1", 0), ("1", 2)]
    assert code_of(lambda: batches(log, columns="_timestamp")) == "unknown-column"


# ---- on Spark ----


def test_a_frame_equals_the_log_between_any_bounds(spark: SparkSession, store: Store) -> None:
    draw = random.Random(5)
    create(store, "orders", segments=3)
    for first in range(0, 600, 60):
        write(store, "orders", [first + (n * 7) % 60 for n in range(60)])
        if first == 240:
            store.split("orders", "1.e0")
    register(spark)
    log = StoreLog(store, "orders")
    ends = {s.name: s.end for s in store.segments("orders")}
    truth = batches(log, columns="n,_partition,_offset,_event_time,_timestamp")
    assert len(truth) == 600
    for tasks in (1, 3, 7):
        cuts = [{name: draw.randint(0, end) for name, end in ends.items()} for _ in range(2)]
        start = {name: min(cut[name] for cut in cuts) for name in ends}
        below = {name: max(cut[name] for cut in cuts) for name in ends}
        a, b = sorted(draw.sample(range(600), 2))
        frame = read(
            spark,
            store,
            "orders",
            from_cut=start,
            to_cut=below,
            from_time=a,
            to_time=b,
            columns=["_timestamp", "n", "_offset", "_event_time", "_partition"],
            tasks=tasks,
        )
        found = frame.toArrow().to_pylist()
        wanted = [
            row
            for row in truth
            if start[row["_partition"]] <= row["_offset"] < below[row["_partition"]]
            and a <= row["n"] < b
        ]
        assert sorted(found, key=_place) == sorted(wanted, key=_place)


def test_several_slices_are_read_as_one_frame(spark: SparkSession, store: Store) -> None:
    create(store, "orders", segments=2)
    for first in range(0, 100, 20):
        write(store, "orders", [first + (n * 7) % 20 for n in range(20)])
    wanted = [*range(5, 31), *range(60, 80)]
    slices = [Between(from_time=5, to_time=31), Between(from_time=60, to_time=80)]
    frame = read(spark, store, "orders", slices=slices, tasks=3)
    assert sorted(numbers(frame)) == wanted
    assert numbers(read(spark, store, "orders", slices=[])) == []


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["_partition"], row["_offset"]


def test_the_end_is_taken_when_the_frame_is_made(spark: SparkSession, store: Store) -> None:
    create(store, "orders")
    write(store, "orders", range(10))
    frame = read(spark, store, "orders")
    write(store, "orders", range(10, 15))
    assert numbers(frame) == numbers(frame) == list(range(10))
    assert numbers(read(spark, store, "orders")) == list(range(15))


def test_a_session_knows_the_format_though_nobody_has_registered_it(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """What is registered in one session is not known to the next: here Spark looks by itself."""
    create(store, "orders")
    write(store, "orders", range(10))
    fresh = spark.newSession()
    options = {"store": str(tmp_path / "shop"), "stream": "orders"}
    asked = fresh.read.format("tidegate").options(**options)
    frame = asked.load()
    frame.write.format("tidegate").options(**options).mode("append").save()
    assert numbers(frame) == list(range(10)), "the end is taken once here too"
    assert sorted(numbers(asked.load())) == sorted([*range(10), *range(10)])
    listed = ", ".join(f"{name} '{value}'" for name, value in options.items())
    fresh.sql(f"CREATE TEMPORARY VIEW seen USING tidegate OPTIONS ({listed})")
    assert fresh.sql("SELECT count(*) AS n FROM seen").collect()[0].n == 20
    rows = fresh.readStream.format("tidegate").options(**options, query="copies").load()
    copies = (
        rows.where("_watermark IS NULL")
        .drop("_watermark")
        .writeStream.format("tidegate")
        .options(store=options["store"], stream="copies", writer_id="copy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    create(store, "copies")
    query = copies.trigger(availableNow=True).start()
    query.awaitTermination()
    assert read(spark, store, "copies").count() == 20


def test_to_find_the_format_loads_nothing_of_ours() -> None:
    """Spark imports it in every program that has a source of whatever kind."""
    seen = "import sys, pyspark_tidegate; print('tidegate' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_work_is_packed_for_all_cores(spark: SparkSession, store: Store) -> None:
    create(store, "orders", segments=3)
    write(store, "orders", range(200_000))
    frame = read(spark, store, "orders", columns=["n"], tasks=4)
    parts = frame.selectExpr("spark_partition_id() as part", "n").groupBy("part").count().collect()
    assert sorted(row["count"] for row in parts) == [50_000] * 4
    assert frame.selectExpr("sum(n)").collect()[0][0] == sum(range(200_000))


def test_nothing_to_read_is_an_empty_frame_with_its_types(
    spark: SparkSession, store: Store
) -> None:
    create(store, "orders", segments=2)
    frame = read(spark, store, "orders", columns=["n", "_event_time"])
    assert frame.count() == 0
    assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == [
        ("n", "bigint"),
        ("_event_time", "timestamp"),
    ]


def test_every_type_arrives_as_it_was(spark: SparkSession, store: Store) -> None:
    at = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    values: dict[str, tuple[pa.DataType, Any]] = {
        "a_bool": (pa.bool_(), True),
        "an_int8": (pa.int8(), -7),
        "a_uint8": (pa.uint8(), 200),
        "a_uint32": (pa.uint32(), 4_000_000_000),
        "a_uint64": (pa.uint64(), 18_000_000_000_000_000_000),
        "a_float": (pa.float32(), 1.5),
        "a_double": (pa.float64(), 0.1),
        "a_decimal": (pa.decimal128(10, 2), Decimal("12.34")),
        "a_text": (pa.large_string(), "käse"),
        "some_bytes": (pa.binary(), b"\x00\xff"),
        "a_word": (pa.dictionary(pa.int32(), pa.string()), "red"),
        "a_day": (pa.date32(), date(2026, 1, 31)),
        "local": (pa.timestamp("ms"), at.replace(tzinfo=None, microsecond=0)),
        "nano": (pa.timestamp("ns", tz="Europe/Berlin"), at),
        "a_list": (pa.list_(pa.int64()), [1, None]),
        "a_struct": (pa.struct([("x", pa.int32())]), {"x": 5}),
        "a_map": (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in values.items()])
    store.create_stream("kinds", schema)
    whole = {name: pa.array([value, None], kind) for name, (kind, value) in values.items()}
    with store.writer("kinds") as writer:
        writer.append(pa.table(whole, schema=schema))
    first, second = read(spark, store, "kinds").toArrow().to_pylist()
    assert first == {name: value for name, (_, value) in values.items()}
    assert set(second.values()) == {None}


def test_a_type_that_spark_has_not_is_refused_and_may_be_left_out() -> None:
    kinds = pa.schema([("n", pa.int64()), ("what", pa.month_day_nano_interval())])
    assert code_of(lambda: spark_schema("odd", kinds)) == "column-not-for-spark"
    assert spark_schema("odd", kinds.remove(1)).names == ["n"]


@pytest.mark.parametrize("kind", ["files", "nexmark"])
def test_any_log_can_be_read(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    log: Any
    if kind == "files":
        for shop in ("berlin", "lisbon"):
            (tmp_path / shop).mkdir()
            lines = [f"{n},2026-01-31T12:00:0{n}Z" for n in range(6)]
            (tmp_path / shop / "1.csv").write_text("\n".join(["n,at", *lines, "9,at noon\n"]))
        log = FileLog("orders", tmp_path, format="csv", event_column="at", ended=True)
        wanted = [n for _ in range(2) for n in range(2, 5)]
    else:
        log = NexmarkLog("bids", "bid", total=500, partitions=3)
        latest = log.snapshot({}).partitions
        wanted = [
            offset
            for name, end in zip(latest.names, latest.latest.tolist(), strict=True)
            for batch in log.read(name, 0, end, ["_offset"])
            for offset in batch.column(0).to_pylist()
        ]
    if kind == "files":
        noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        bounds = [noon + timedelta(seconds=n) for n in (2, 5)]
        frame = read(spark, log, from_time=bounds[0], to_time=bounds[1])
    else:
        frame = read(spark, log, columns=["_offset", "_partition"]).selectExpr("_offset as n")
    assert sorted(map(int, numbers(frame))) == sorted(wanted)


def test_a_schema_of_the_users_chooses_columns_and_must_be_the_streams(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    create(store, "orders")
    write(store, "orders", range(5))
    register(spark)
    plain = spark.read.format("tidegate").option("stream", "orders")
    chosen = plain.schema(StructType().add("n", LongType())).load(str(tmp_path / "shop"))
    assert chosen.columns == ["n"]
    assert numbers(chosen) == list(range(5))
    wrong = plain.schema(StructType().add("n", StringType())).load(str(tmp_path / "shop"))
    with pytest.raises(Exception, match="schema is not the stream's"):
        wrong.collect()


def test_spark_shows_what_we_say(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    register(spark)
    plain = spark.read.format("tidegate").option("stream", "orders")
    with pytest.raises(AnalysisException, match="no store at this address"):
        plain.load(str(tmp_path / "nowhere"))
    with pytest.raises(AnalysisException, match="settings are: columns, data, from_cut"):
        plain.option("colums", "n").load(str(tmp_path))
    assert code_of(lambda: read(spark, tmp_path)) == "option-missing"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.faults
def test_a_connect_session_reads_and_writes_as_a_classic_one_does(tmp_path: Path) -> None:
    """In a process of its own: a session is classic or Connect for good."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_source", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "read": list(range(15, 40)),
        "no such option": True,
        "written": sorted([*range(40), *range(40)]),
        "batches": [0],
        "noted": 39,
    }
