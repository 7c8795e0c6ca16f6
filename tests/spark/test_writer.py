"""Writes by `format("tidegate")`: all of a job appears, or nothing; a batch appears once."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.store.rows import SCHEMA, create, table
from tests.store.test_writer import intents_left, row_of
from tests.store.visible import all_of, visible

from tidegate.eventtime.watermark import Known
from tidegate.spark.source import register
from tidegate.spark.source_options import WriteOptions
from tidegate.spark.writer import BatchWriter, StreamWriter
from tidegate.store import Store


@pytest.fixture
def store(tmp_path: Path, spark: SparkSession) -> Iterator[Store]:
    register(spark)
    with Store.open(tmp_path / "shop") as made:
        create(made, "orders", segments=2)
        yield made


def address(store: Store) -> str:
    return str(Path(store.files.root).parent)


def frame(spark: SparkSession, start: int, end: int, tasks: int = 2) -> DataFrame:
    """Rows as those of `tests.store.rows`."""
    rows = spark.range(start, end, numPartitions=tasks)
    return rows.selectExpr("id % 8 AS key", "id AS n", "timestamp_micros(id) AS at")


def save(rows: DataFrame, store: Store, **options: str) -> None:
    target = {"store": address(store), "stream": "orders", **options}
    rows.write.format("tidegate").options(**target).mode("append").save()


def highest(store: Store, writer: str) -> Known:
    """What a writer has noted, whether the marks have passed it since or not."""
    return row_of(store, writer).notes.highest


# ---- batch ----


def test_a_job_appears_at_once_with_its_note(spark: SparkSession, store: Store) -> None:
    save(frame(spark, 0, 100, tasks=4), store, writer_id="load", note_time="max")
    assert sorted(all_of(store, "orders", "n")) == list(range(100))
    for rows in visible(store, "orders").values():
        assert [row["n"] for row in rows] == sorted(row["n"] for row in rows)
    assert highest(store, "load") == 99
    assert not row_of(store, "load").notes.mark.alive, "it said goodbye"
    save(frame(spark, 100, 110), store, writer_id="load", note_time="1970-01-01T00:00:00.000105Z")
    assert highest(store, "load") == 105
    save(frame(spark, 110, 120), store)
    assert len(all_of(store, "orders", "n")) == 120
    assert intents_left(store) == 0


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, store: Store) -> None:
    broken = frame(spark, 0, 40, tasks=2).selectExpr(
        "key", "IF(n = 39, raise_error('broken'), n) AS n", "at"
    )
    with pytest.raises(Exception, match="broken"):
        save(broken, store, writer_id="load", note_time="max")
    assert all_of(store, "orders", "n") == []


def test_bad_rows_are_refused_or_routed(spark: SparkSession, store: Store) -> None:
    bad = frame(spark, 0, 20).selectExpr("key", "n", "IF(n % 5 = 0, NULL, at) AS at")
    with pytest.raises(Exception, match="rows are refused"):
        save(bad, store)
    assert all_of(store, "orders", "n") == []
    save(bad, store, bad_rows="route", writer_id="load")
    assert sorted(all_of(store, "orders", "n")) == [n for n in range(20) if n % 5]
    assert all_of(store, "orders.errors", "reason") == ["missing"] * 4
    assert all_of(store, "orders.errors", "writer") == ["load"] * 4


def test_what_cannot_be_written_is_refused_before_any_task_runs(
    spark: SparkSession, store: Store
) -> None:
    rows = frame(spark, 0, 5)
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: save(rows.withColumn("color", rows.n), store), '"color"'),
        (lambda: save(rows, store, note_time="max"), "note time"),
        (lambda: save(rows, store, stream="offers"), "unknown stream"),
        (lambda: save(rows, store, writerid="w"), "settings are: bad_rows, data, note_time"),
        (
            lambda: (
                rows.write.format("tidegate")
                .options(store=address(store), stream="orders")
                .mode("overwrite")
                .save()
            ),
            "it can be: append",
        ),
    ]
    for act, text in refusals:
        with pytest.raises(AnalysisException, match=text):
            act()
    assert all_of(store, "orders", "n") == []


# ---- tasks and the driver, without Spark between them ----


def writer(store: Store, kind: Any = BatchWriter, **options: str) -> Any:
    place = {"store": address(store), "stream": "orders", **options}
    made = kind.planned(WriteOptions.parse(place), SCHEMA.names, overwrite=False)
    return pickle.loads(pickle.dumps(made))


def sent(made: Any, *tables: pa.Table) -> Any:
    """What the driver gets of a task that was given these rows."""
    batches = [batch for table in tables for batch in table.to_batches()]
    return pickle.loads(pickle.dumps(made.write(iter(batches))))


def test_of_a_task_that_ran_twice_only_what_spark_commits_counts(store: Store) -> None:
    made = writer(store)
    first, twice = sent(made, table(range(10))), sent(made, table(range(10)))
    other = sent(made, table(range(10, 20)), table(range(20, 30)))
    made.commit([twice, other])
    assert sorted(all_of(store, "orders", "n")) == list(range(30))
    made.abort([first, None])
    assert intents_left(store) == 0
    assert len(all_of(store, "orders", "n")) == 30


def test_rows_keep_the_order_of_the_tasks_over_a_scale(store: Store) -> None:
    made = writer(store)
    messages = [sent(made, table(range(n, n + 10))) for n in (0, 10, 20)]
    store.merge("orders", "0.e0", "1.e0")
    made.commit(messages)
    assert all_of(store, "orders", "n") == list(range(30))


def test_a_task_without_rows_and_a_batch_without_tasks_write_nothing(store: Store) -> None:
    made = writer(store, StreamWriter, writer_id="etl", note_time="max")
    made.commit([sent(made, table([]))], 0)
    made.commit([], 1)
    assert all_of(store, "orders", "n") == []
    for _ in range(2):
        made.commit([sent(made, table(range(5)))], 1)
    assert sorted(all_of(store, "orders", "n")) == list(range(5))
    made = writer(store, StreamWriter, writer_id="etl", note_time="1970-01-01T00:00:00.000007Z")
    made.commit([], 2)
    assert highest(store, "etl") == 7


# ---- streaming ----


class Feed:
    """A folder of Parquet files, one per batch, and a query that copies it into the stream."""

    def __init__(self, spark: SparkSession, store: Store, folder: Path) -> None:
        self.spark, self.store = spark, store
        self.files, self.checkpoint = folder / "feed", folder / "checkpoint"
        self.count = 0

    def add(self, batches: int) -> None:
        for _ in range(batches):
            first = 10 * self.count
            frame(self.spark, first, first + 10).coalesce(1).write.mode("append").parquet(
                str(self.files)
            )
            self.count += 1

    def run(self, writer_id: str | None = "etl", **options: str) -> None:
        """Copy what is there, a file per batch."""
        source = self.spark.readStream.schema("key BIGINT, n BIGINT, at TIMESTAMP")
        rows = source.option("maxFilesPerTrigger", 1).parquet(str(self.files))
        target = {"store": address(self.store), "stream": "orders", **options}
        if writer_id is not None:
            target["writer_id"] = writer_id
        query = (
            rows.writeStream.format("tidegate")
            .options(**target, checkpointLocation=str(self.checkpoint))
            .queryName("copy")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def forget_commits(self, since: int) -> None:
        """As after a crash between our commit and Spark's."""
        for path in (self.checkpoint / "commits").iterdir():
            number = path.name.strip(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= since:
                path.unlink()

    def written(self) -> list[int]:
        return sorted(all_of(self.store, "orders", "n"))


@pytest.fixture
def feed(spark: SparkSession, store: Store, tmp_path: Path) -> Feed:
    made = Feed(spark, store, tmp_path)
    made.add(2)
    return made


def test_a_streaming_query_is_exactly_once_over_replays_and_restarts(feed: Feed) -> None:
    feed.run(note_time="max")
    assert feed.written() == list(range(20))
    assert highest(feed.store, "etl") == 19
    assert row_of(feed.store, "etl").notes.mark.alive
    feed.forget_commits(since=1)
    feed.run(note_time="max")
    assert feed.written() == list(range(20)), "a replayed batch changes nothing"
    feed.add(1)
    feed.run(note_time="max")
    assert feed.written() == list(range(30))
    assert highest(feed.store, "etl") == 29
    assert intents_left(feed.store) == 0


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(StreamingQueryException) as caught:
        act()
    return str(caught.value)


def test_a_deleted_or_older_checkpoint_is_fenced_and_loses_nothing_silently(
    feed: Feed, tmp_path: Path
) -> None:
    feed.run()
    shutil.copytree(feed.checkpoint, tmp_path / "yesterday")
    feed.add(2)
    feed.run()
    assert feed.written() == list(range(40))
    shutil.rmtree(feed.checkpoint)
    shutil.copytree(tmp_path / "yesterday", feed.checkpoint)
    assert "the checkpoint is older than the stream" in refused(feed.run)
    shutil.rmtree(feed.checkpoint)
    assert "of another query" in refused(feed.run)
    assert feed.written() == list(range(40))
    feed.run("second")
    assert feed.written() == sorted([*range(40)] * 2), "another writer_id is another history"


def test_without_a_writer_id_a_replayed_batch_appears_again(feed: Feed) -> None:
    feed.run(None)
    feed.forget_commits(since=1)
    feed.run(None)
    assert feed.written() == sorted([*range(20), *range(10, 20)])
