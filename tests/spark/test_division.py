"""How the work of a batch is divided, seen on Spark's own plan."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.logs.log import facts_of
from tidegate.planning import BatchPlan, Division, PlannerState
from tidegate.planning.replay import replay
from tidegate.spark import StreamSink, batches, kernels, windows
from tidegate.spark.batches import Runner
from tidegate.spark.plan_source import BEGINNING, Planner
from tidegate.spark.results import write_frame
from tidegate.spark.slices import SlicesJob
from tidegate.store import Store
from tidegate.store.reading import read_between

SECOND = 1_000_000
SCHEMA = pa.schema(
    [("item", pa.string()), ("price", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))]
)
BY_ITEM = (
    "SELECT _window_end, item, count(*) AS n, sum(price) AS total FROM orders"
    " GROUP BY _window_end, item"
)
BY_PRICE = BY_ITEM.replace("item", "price")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path)
    made.create_stream(
        "orders", SCHEMA, event_column="at", routing_key=("item",), segments=4, max_future=None
    )
    with made.writer("orders", "shop") as writer:
        rows = [
            {"item": f"item {n % 40}", "price": n % 10, "at": n * SECOND // 10} for n in range(1200)
        ]
        writer.append(pa.Table.from_pylist(rows, schema=SCHEMA))
        writer.flush()
    return made


def planned(
    spark: SparkSession, job: SlicesJob
) -> tuple[Runner, BatchPlan, PlannerState, dict[str, Any]]:
    offset = Planner(job.job).after(dict(BEGINNING))
    after = PlannerState.from_json(offset["state"])
    runner = Runner(spark, job.job)
    fresh = PlannerState.fresh(after.lineage, job.job.query.streams)
    ask = facts_of(runner.logs, fresh).ask
    batch = replay(fresh, after, ask, job.job.query, job.job.policy, cores=job.job.cores)
    return runner, batch, after, offset


def frame(spark: SparkSession, runner: Runner, batch: BatchPlan, after: PlannerState) -> DataFrame:
    assert batch.slice is not None
    pieces = runner.reader.pieces(batch, after)
    return runner._frame(spark, runner.choice, pieces, batch.slice.interval, after.origin)


def exchanges(rows: DataFrame) -> int:
    return str(rows._jdf.queryExecution().executedPlan().toString()).count("Exchange ")


def job(spark: SparkSession, store: Store, size: str, query: str, kernel: Any) -> SlicesJob:
    return windows(
        spark,
        "orders",
        size=size,
        store=store,
        name="divided",
        query=query,
        sink=StreamSink("divided"),
        kernel=kernel,
        cores=4,
        tolerance=timedelta(0),
    )


def test_division_by_time_has_no_exchange(spark: SparkSession, store: Store) -> None:
    runner, batch, after, _ = planned(spark, job(spark, store, "10s", BY_PRICE, "duckdb"))
    assert batch.slice is not None
    assert batch.slice.division is Division.TIME
    assert len(batch.slice.tasks) >= 4
    assert exchanges(frame(spark, runner, batch, after)) == 0


def test_division_by_key_range_has_no_exchange_and_loses_no_row(
    spark: SparkSession, store: Store
) -> None:
    runner, batch, after, _ = planned(spark, job(spark, store, "100s", BY_ITEM, "duckdb"))
    assert batch.slice is not None
    assert batch.slice.division is Division.KEY_RANGE
    assert len(batch.slice.tasks) > 1
    made = frame(spark, runner, batch, after)
    assert exchanges(made) == 0
    counts = [row.n for row in made.collect()]
    assert len(counts) == 40
    assert sum(counts) == 1000


def test_a_few_windows_without_a_key_are_merged_by_exactly_one_exchange(
    spark: SparkSession, store: Store
) -> None:
    runner, batch, after, _ = planned(spark, job(spark, store, "100s", BY_PRICE, "spark"))
    assert batch.slice is not None
    assert batch.slice.division is Division.SHUFFLE
    made = frame(spark, runner, batch, after)
    assert exchanges(made) == 1
    assert sum(row.n for row in made.collect()) == 1000


@pytest.mark.parametrize(("worth", "kernel"), [(1_200, "duckdb"), (1_199, "spark")])
def test_a_batch_of_too_few_windows_tells_the_kernel_that_it_ran_on(
    spark: SparkSession,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    worth: int,
    kernel: str,
) -> None:
    shuffled: list[int] = []

    def written(sink: Any, job: Any, batch: Any, rows: DataFrame) -> list[Any]:
        shuffled.append(exchanges(rows))
        return write_frame(sink, job, batch, rows)

    monkeypatch.setattr(kernels, "WORTH_A_SHUFFLE", worth)
    monkeypatch.setattr(batches, "write_frame", written)
    made = job(spark, store, "100s", BY_PRICE, "auto")
    assert made.explain().startswith("kernel: duckdb")  # of the job, which this batch is not
    made.run(tell=False)
    assert made.progress.detail()["kernel"] == kernel
    assert shuffled == ([1] if kernel == "spark" else [])
    found = [row for batch in read_between(store, "divided") for row in batch.to_pylist()]
    rows = [n % 10 for n in range(1000)]
    assert {row["price"]: (row["n"], row["total"]) for row in found} == {
        price: (rows.count(price), price * rows.count(price)) for price in range(10)
    }
    assert len(found) == 10


def test_the_least_local_watermark_of_all_lanes_is_the_plans(
    spark: SparkSession, store: Store
) -> None:
    made = job(spark, store, "10s", BY_PRICE, "spark")
    _, _, after, offset = planned(spark, made)
    lanes = json.loads(offset["told"])["lanes"]
    assert sum(count for count, *_ in lanes) == 4
    assert isinstance(after.watermark, int)
    assert min(number for _, number, _ in lanes) == after.watermark + 1
