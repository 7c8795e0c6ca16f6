"""What every sink must hold: a batch once, in order, with its types, deletes among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.contracts.sink_makers import MAKERS, Delivery, Until
from tests.spark.sinks.batches import FLAT, NO_STORE, batch_of, some_rows

from tidegate.errors import TidegateError
from tidegate.spark.sinks import Batch, FrameSink, MemorySink
from tidegate.spark.sinks.sink import OP, REVISION, refuse_connect, refuse_deletes
from tidegate.store import Store

TIME = pa.field("_event_time", pa.timestamp("us", tz="UTC"))
COLUMNS = pa.schema([("n", pa.int64()), ("text", pa.string()), TIME])


@pytest.fixture(params=MAKERS)
def delivery(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Delivery]:
    told: list[str] = []

    def printed() -> str:
        told.append(capsys.readouterr().out)
        return "".join(told)

    with Store.open(tmp_path / "store") as store:
        made = MAKERS[request.param](tmp_path, store, printed)
        yield Delivery(spark, store, made)


def rows(first: int, last: int) -> pa.Table:
    """Numbered rows, with their number as their time."""
    numbers = list(range(first, last))
    texts = [f"row {n}" for n in numbers]
    return pa.table([numbers, texts, pa.array(numbers).cast(TIME.type)], schema=COLUMNS)


def batch(number: int, columns: pa.Schema = COLUMNS) -> Batch:
    return batch_of(number, columns=columns)


# ---- once, and in order ----


def test_rows_come_in_the_order_of_batches_tasks_and_rows(delivery: Delivery) -> None:
    delivery.prepare(COLUMNS)
    assert delivery.run(batch(1), [rows(0, 40), rows(40, 45)]) == 45
    assert delivery.run(batch(2), [rows(45, 46), rows(46, 46), rows(46, 50)]) == 5
    assert delivery.made.numbers() == list(range(50))


def test_a_batch_that_runs_again_after_any_step_counts_once(delivery: Delivery) -> None:
    delivery.prepare(COLUMNS)
    for number, until in enumerate(Until, start=1):
        parts = [rows(3 * number, 3 * number + 2), rows(3 * number + 2, 3 * number + 3)]
        assert delivery.run(batch(number), parts, until) == 3  # then its process dies
        delivery.prepare(COLUMNS)
        assert delivery.run(batch(number), parts) == 3
    found = delivery.made.numbers()
    if delivery.made.once:
        assert found == list(range(3, 12))
    else:
        assert found == [3, 4, 5] * 2 + [6, 7, 8] * 2 + [9, 10, 11] * 2


def test_batches_without_rows_change_nothing(delivery: Delivery) -> None:
    delivery.prepare(COLUMNS)
    assert delivery.run(batch(1), []) == 0
    assert delivery.run(batch(2), [rows(0, 0)]) == 0
    assert delivery.run(batch(3), [rows(0, 2)]) == 2
    assert delivery.run(batch(4), []) == 0
    assert delivery.made.numbers() == [0, 1]


# ---- what a row can be ----


def test_all_common_types_come_back_as_they_were(delivery: Delivery) -> None:
    fields = [field for field in FLAT if field.name != "length"]  # a stream has no lengths of time
    schema = pa.schema([*fields, TIME])
    values = some_rows(pa.schema(fields)).append_column(TIME, pa.array([1, 2, 3]).cast(TIME.type))
    delivery.prepare(schema)
    assert delivery.run(batch(1, schema), [values]) == 3
    if delivery.made.table is not None:
        back = delivery.made.table().select(schema.names)
        assert back.to_pylist() == values.to_pylist()
        assert back.schema.remove_metadata().equals(schema)


def test_rows_that_take_back_others_are_kept_as_such(delivery: Delivery) -> None:
    schema = pa.schema([*COLUMNS, (OP, pa.string()), (REVISION, pa.int64())])

    def marked(table: pa.Table, op: str, revision: int) -> pa.Table:
        count = len(table)
        arrays = [*table.columns, pa.array([op] * count), pa.array([revision] * count)]
        return pa.table(arrays, schema=schema)

    refuse_deletes(delivery.made.sink)
    delivery.prepare(schema)
    delivery.run(batch(1, schema), [marked(rows(0, 2), "insert", 1)])
    corrected = [marked(rows(1, 2), "delete", 2), marked(rows(7, 8), "insert", 2)]
    delivery.run(batch(2, schema), corrected)
    assert delivery.made.numbers() == [0, 1, 1, 7]
    if delivery.made.table is not None:
        table = delivery.made.table()
        assert table[OP].to_pylist() == ["insert", "insert", "delete", "insert"]
        assert table[REVISION].to_pylist() == [1, 1, 2, 2]


# ---- what is refused ----


class Counter(FrameSink):
    """A sink that adds up, and cannot take back."""

    kind: ClassVar[str] = "counter"
    keeps_deletes: ClassVar[bool] = False

    def take(self, rows: DataFrame, batch: Batch) -> int:
        return int(rows.count())


def test_a_sink_without_deletes_refuses_corrections() -> None:
    with pytest.raises(TidegateError) as refusal:
        refuse_deletes(Counter())
    assert refusal.value.code == "sink-without-deletes"


def test_rows_in_memory_are_refused_where_batches_run_in_another_process() -> None:
    connect = pytest.importorskip("pyspark.sql.connect.session")
    remote = connect.SparkSession.__new__(connect.SparkSession)
    with pytest.raises(TidegateError) as refusal:
        refuse_connect(MemorySink("m"), remote)
    assert refusal.value.code == "sink-not-on-connect"
    refuse_connect(Counter(), remote)


def test_rows_in_memory_belong_to_one_history() -> None:
    sink = MemorySink("one history")
    with pytest.raises(TidegateError) as refusal:
        sink.table()
    assert refusal.value.code == "memory-without-rows"
    sink.prepare(NO_STORE, "job", COLUMNS, None)
    assert sink.settled(batch(1)) is None
    other = replace(batch(1), lineage="second-history")
    with pytest.raises(TidegateError) as refusal:
        sink.settled(other)
    assert refusal.value.code == "sink-fenced"
    sink.clear()
    assert sink.settled(other) is None
