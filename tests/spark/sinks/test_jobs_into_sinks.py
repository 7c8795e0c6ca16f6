"""Whole jobs into the sinks that are not streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from sqlalchemy import Connection, text
from tests.spark.jobs.world import World, failing_at

from tidegate.errors import TidegateError
from tidegate.spark import (
    Batch,
    ConsoleSink,
    FilesSink,
    ForeachBatch,
    MemorySink,
    files_of,
    ordered,
    read_files,
)
from tidegate.spark.sinks import manifests_of

Count = tuple[int, str, int, int]


def counts(table: pa.Table) -> list[Count]:
    """(end of the window in seconds, key, count, sum) of every row."""
    columns = (table["_window_end"].cast(pa.int64()), table["k"], table["n"], table["total"])
    found = zip(*(column.to_pylist() for column in columns), strict=True)
    return sorted((end // 1_000_000, *rest) for end, *rest in found)


def test_a_job_writes_files_once_though_its_commit_failed(world: World) -> None:
    world.stream()
    sink = FilesSink(world.folder / "results")
    job = world.windows(size=10, sink=sink)
    world.append([("a", 1, 1), ("b", 2, 5), ("a", 3, 9), ("a", 4, 12)])
    with failing_at("batch: before commit"):
        job.run()
    settled = files_of(sink.folder)
    assert counts(read_files(sink.folder)) == [(10, "a", 2, 4), (10, "b", 1, 2)]
    figures = job.run()
    assert files_of(sink.folder) == settled  # what is settled is not written again
    assert figures["rows_out"] == 2
    world.append([("b", 5, 19), ("a", 6, 31)])
    assert job.run()["rows_out"] == 4
    expected = [(10, "a", 2, 4), (10, "b", 1, 2), (20, "a", 1, 4), (20, "b", 1, 5)]
    assert counts(read_files(sink.folder)) == expected
    # Others read the same: by the paths, and the folder as a whole while nothing runs.
    assert counts(world.spark.read.parquet(*files_of(sink.folder)).toArrow()) == expected
    whole = world.spark.read.parquet(sink.folder).toArrow()
    assert counts(whole) == expected
    assert set(whole["_batch"].to_pylist()) == {m.batch for m in manifests_of(sink.folder)}
    told = world.spark.read.json(f"{sink.folder}/_tidegate/batches").orderBy("batch").collect()
    paths = [file.path for row in told for file in row.files]
    assert [f"{sink.folder}/{path}" for path in paths] == files_of(sink.folder)


def test_a_folder_of_another_history_is_refused_and_says_how_to_go_on(world: World) -> None:
    world.stream()
    world.append([("a", 1, 1), ("a", 4, 12)])
    sink = FilesSink(world.folder / "results", "csv")
    world.windows(size=10, sink=sink).run()
    again = world.windows(size=10, sink=sink, checkpoint=world.folder / "other")
    again.reset()
    with pytest.raises(TidegateError) as refusal:
        again.run()
    assert refusal.value.code == "sink-fenced"
    assert "another place" in refusal.value.hint
    assert counts(read_files(sink.folder)) == [(10, "a", 1, 1)]


def test_rows_in_order_stay_in_order_in_files_and_in_memory(world: World) -> None:
    world.stream()
    shuffled = [7, 3, 11, 5, 2, 13, 19, 17, 23, 29, 31, 40]
    for part in range(0, len(shuffled), 4):
        world.append([("a", n, n) for n in shuffled[part : part + 4]])
    memory = MemorySink("in order")
    memory.clear()
    for sink in (memory, FilesSink(world.folder / "ordered", "json")):
        job = ordered(
            world.spark, "orders", sink=sink, name=sink.kind, store=world.store, tolerance="9s",
            max_rows=4,
        )  # fmt: skip
        job.run()
    expected = sorted(shuffled)[:-2]  # another row at 40 - 9 = 31 may still come
    assert memory.table()["v"].to_pylist() == expected
    assert read_files(world.folder / "ordered")["v"].to_pylist() == expected


def test_a_function_is_called_once_per_batch_and_its_hook_happens_with_the_commit(
    world: World,
) -> None:
    world.stream()
    calls: list[tuple[Batch, list[dict[str, Any]]]] = []

    def hook(on: Connection) -> None:
        on.execute(text("INSERT INTO seen VALUES (1)"))

    def keep(rows: DataFrame, batch: Batch) -> int:
        calls.append((batch, rows.toArrow().to_pylist()))
        batch.in_commit(hook)
        return len(calls[-1][1])

    world.store.database.write(lambda on: on.execute(text("CREATE TABLE seen (n INTEGER)")))
    job = world.windows(
        size=10, sink=ForeachBatch(keep), late="update", allowed_lateness="1 minute"
    )
    world.append([("a", 1, 1), ("a", 4, 12)])
    with failing_at("batch: before commit"):
        job.run()
    job.run()
    world.append([("a", 2, 3), ("a", 6, 31)])  # one window is corrected, and others close
    figures = job.run()
    numbers = [batch.number for batch, _ in calls]
    assert len(set(numbers)) == len(numbers) - 1  # the failed one came twice
    by_number = {batch.number: (batch, rows) for batch, rows in calls}
    assert len({(batch.job, batch.lineage) for batch, _ in calls}) == 1
    said = [
        (row["_op"], row["_window_end"].second, row["n"], row["_revision"] == batch.number)
        for batch, rows in by_number.values()
        for row in rows
    ]
    assert said == [
        ("insert", 10, 1, True),
        ("delete", 10, 1, True),
        ("insert", 10, 2, True),
        ("insert", 20, 1, True),
    ]
    assert figures["rows_out"] == len(said)
    [(hooks,)] = world.store.database.read(
        lambda on: on.execute(text("SELECT count(*) FROM seen")).all()
    )
    assert hooks == figures["batches"] == len(by_number)


def test_a_hook_happens_once_wherever_its_batch_was_stopped(world: World) -> None:
    world.stream()
    called: list[int] = []
    hooked: list[int] = []

    def keep(rows: DataFrame, batch: Batch) -> int:
        def hook(on: Connection) -> None:
            on.execute(text("INSERT INTO seen VALUES (:n)"), {"n": batch.number})
            hooked.append(batch.number)

        called.append(batch.number)
        batch.in_commit(hook)
        return rows.count()

    world.store.database.write(lambda on: on.execute(text("CREATE TABLE seen (n INTEGER)")))
    job = world.windows(size=10, sink=ForeachBatch(keep))
    world.append([("a", 1, 1)])
    stopped = {
        # What the hook did is taken back with everything else, and is done again.
        "catalog: before commit": [2, 2],
        # All of it is there, only Spark does not know: nothing is done again.
        "catalog: after commit": [1, 1],
        "batch: committed": [1, 1],
    }
    for n, (step, times) in enumerate(stopped.items()):
        world.append([("a", 1, 10 * n + 12)])
        hooked.clear()
        # Others commit to the catalog too: it is the batch's own commit once its hook has been.
        with failing_at(step, when=lambda: hooked):
            job.run()
        number = hooked[-1]
        figures = job.run()
        assert [called.count(number), hooked.count(number)] == times
        seen = world.store.database.read(lambda on: on.execute(text("SELECT n FROM seen")).all())
        assert sorted(n for (n,) in seen) == sorted(set(called))
        assert figures["batches"] == len(seen)
        assert figures["rows_out"] == n + 1


def test_the_console_shows_the_first_rows_and_how_many_there_are(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.stream()
    world.append([("a", 1, 1), ("a", 4, 12)] + [(f"b{n}", n, 5) for n in range(30)])
    world.windows(
        size=10,
        sink=ConsoleSink(rows=1),
        query="SELECT _window_end, k, count(*) AS n FROM orders GROUP BY _window_end, k"
        " ORDER BY _window_end, k",
    ).run()
    printed = capsys.readouterr().out.splitlines()
    [batch, names, row, more, _] = printed
    assert batch.startswith("job, batch ")
    assert batch.endswith("from the beginning to 1970-01-01T00:00:10Z: 31 rows")
    assert names.split() == ["_window_end", "k", "n", "_event_time"]
    assert row.split() == ["1970-01-01", "00:00:10", "a", "1", "1970-01-01", "00:00:09.999999"]
    assert more == "... and 30 more"
