"""What `trick.py` rests on, assumption by assumption, held against Spark alone.

Where one of these fails after an upgrade of Spark, the message says which sentence at the head of
`trick.py` is no longer true, and so what has to be thought about anew.
"""

from __future__ import annotations

import contextlib
import io
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from tests.spark.gate.feed import COLUMNS, MS, Feed, S, micros, run
from tests.spark.jobs.world import World

from tidegate.spark import read_stream
from tidegate.spark.gate.trick import WATERMARK


def broken(assumption: str) -> str:
    """The message of a test that fails."""
    return f"an assumption of trick.py no longer holds: {assumption}"


def _window(row: Row) -> tuple[int, int, int]:
    return micros(row.window.start) // S, micros(row.window.end) // S, row["count"]


def test_w_is_exact_to_the_millisecond_and_acts_in_the_next_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path / "feed")
    feed.batch([("a", 1 * S), ("a", -5 * S)])
    feed.batch([("a", 11 * S), ("a", 99 * S)])
    feed.batch([("a", 12 * S)], message=10 * S - MS)
    feed.batch([("a", 13 * S)], message=10 * S)
    feed.batch([("a", 14 * S)])
    # The delay in the mark is not what moves windows.
    frame = feed.gated(within=timedelta(hours=1))
    heard = run(frame.groupBy(F.window("at", "10 seconds")).count(), tmp_path)
    assert [heard.watermark(n) for n in (0, 1, 2)] == [0, 0, 0], broken(
        "Spark reads a null in the watermark column as 0, and starts at 0: rows moved it"
    )
    assert heard.dropped(0) == 1, broken("a time before 1970 is behind Spark's first watermark")
    assert heard.watermark(3) == 10 * S - MS, broken("W is exact to the millisecond")
    assert heard.watermark(4) == 10 * S, broken("W acts in the batch after the one that has it")
    assert heard.given(_window) == {4: [(0, 10, 1)]}, broken(
        "a window closes at `end <= watermark`, in the batch after the one that carried it,"
        " and a delay in the mark of the column does not change that"
    )
    assert sum(heard.dropped(n) for n in heard.told) == 1


def _plan(frame: DataFrame) -> str:
    """The optimised plan, as text."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        frame.explain(extended=True)
    return out.getvalue().split("== Optimized Logical Plan ==")[1].split("== Physical Plan ==")[0]


def _below_the_watermark(frame: DataFrame) -> str:
    """That part of the plan which is read before the watermark is found."""
    lines = _plan(frame).splitlines()
    depths = [len(line) - len(line.lstrip(" :+-")) for line in lines]
    [top] = [n for n, line in enumerate(lines) if "EventTimeWatermark" in line]
    below = range(top + 1, len(lines))
    return "\n".join(lines[n] for n in below if min(depths[top + 1 : n + 1]) > depths[top])


def test_no_filter_of_the_user_is_moved_below_the_watermark(
    spark: SparkSession, tmp_path: Path, world: World
) -> None:
    feed = Feed(spark, tmp_path / "feed")
    feed.batch([("a", 1 * S), ("b", 2 * S)], message=10 * S)
    feed.batch([("a", 12 * S), ("b", 12 * S)], message=20 * S)
    world.stream()
    ours = read_stream(spark, "orders", store=world.store, query="q", windows="10 s")

    def filtered(rows: DataFrame) -> DataFrame:
        """Filters that each would drop a message with the rows."""
        kept = rows.where("k = 'a'").where(F.col("at").isNotNull())
        return kept.where(F.col("at") > F.timestamp_micros(F.lit(0))).dropna()

    said = broken("the filter that drops messages keeps filters of the user above it")
    for frame in (feed.gated(), ours):
        assert "Filter" not in _below_the_watermark(filtered(frame)), said
        joined = filtered(frame).join(spark.createDataFrame([("a",)], "k STRING"), "k")
        assert "Filter" not in _below_the_watermark(joined), said
    # What it is for: without that half the optimiser does move them, and this test can see it.
    timed = feed.raw().withWatermark(WATERMARK, "0 seconds")
    naive = timed.where(F.col(WATERMARK).isNull()).select(*COLUMNS)
    assert "Filter" in _below_the_watermark(naive.where("k[0] = 'a'")), (
        "Spark no longer moves filters below a watermark: trick.py could be simpler"
    )

    counted = filtered(feed.gated()).groupBy(F.window("at", "10 seconds")).count()
    heard = run(counted, tmp_path)
    assert heard.given(_window) == {1: [(0, 10, 1)], 2: [(10, 20, 1)]}, said


def test_with_several_sources_spark_takes_the_least(spark: SparkSession, tmp_path: Path) -> None:
    fast, slow = Feed(spark, tmp_path / "fast"), Feed(spark, tmp_path / "slow")
    fast.batch([("a", 1 * S)], message=100 * S)
    slow.batch([("b", 2 * S)], message=10 * S)
    fast.batch([("a", 101 * S)], message=200 * S)
    slow.batch([("b", 12 * S)])
    both = fast.gated().union(slow.gated())
    heard = run(both.groupBy(F.window("at", "10 seconds")).count(), tmp_path)
    assert [heard.watermark(n) for n in sorted(heard.told)] == [0, 10 * S, 10 * S][
        : len(heard.told)
    ], broken("with several sources Spark takes the least, and a source that is silent holds it")
    assert heard.given(_window) == {1: [(0, 10, 2)]}


def test_sessions_merge_at_their_end(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "feed")
    feed.batch([("a", 0), ("b", 0)], message=10 * S - MS)
    # On time with W = 10 s - 1 ms, and so its session must still be open.
    feed.batch([("a", 10 * S), ("b", 10 * S + MS)], message=10 * S)
    feed.batch([("c", 30 * S)], message=20 * S)
    counted = feed.gated().groupBy(F.session_window("at", "10 seconds"), "k").count()
    heard = run(counted, tmp_path)

    def session(row: Row) -> tuple[str, int, int, int]:
        window = row.session_window
        return row.k, micros(window.start), micros(window.end), row["count"]

    said = broken("sessions merge at `start <= end`, and close at `end <= watermark`")
    assert heard.given(session) == {2: [("b", 0, 10 * S, 1)], 3: [("a", 0, 20 * S, 2)]}, said
    assert sum(heard.dropped(n) for n in heard.told) == 0, said


def test_deduplication_drops_rows_at_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "feed")
    feed.batch([("a", 5 * S), ("a", 5 * S), ("b", 5 * S)], message=10 * S)
    feed.batch([])  # by which rows are judged is what the batch before ran with
    feed.batch([("c", 10 * S), ("d", 10 * S + MS), ("d", 10 * S + MS)])
    heard = run(feed.gated().dropDuplicates(["k", "at"]), tmp_path)
    said = broken("deduplication drops rows with `time <= watermark`, and no other")
    assert heard.given(lambda row: row.k) == {0: ["a", "b"], 2: ["d"]}, said
    assert heard.dropped(2) == 1, said


def test_joins_drop_rows_at_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    left, right = Feed(spark, tmp_path / "left"), Feed(spark, tmp_path / "right")
    left.batch([("a", 1 * S)], message=10 * S)
    right.batch([("a", 2 * S)], message=10 * S)
    for feed in (left, right):
        feed.batch([])  # by which rows are judged is what the batch before ran with
    left.batch([("b", 10 * S), ("c", 10 * S + MS)])
    right.batch([("b", 11 * S), ("c", 11 * S)])
    other = right.gated().select(F.col("k").alias("rk"), F.col("at").alias("rat"))
    near = (
        (F.col("k") == F.col("rk"))
        & (F.col("rat") >= F.col("at"))
        & (F.col("rat") <= F.col("at") + F.expr("INTERVAL 5 SECONDS"))
    )
    heard = run(left.gated().join(other, near), tmp_path)
    said = broken("joins drop every row with `time <= watermark`, and no other")
    assert heard.given(lambda row: row.k) == {0: ["a"], 2: ["c"]}, said
    assert sum(heard.dropped(n) for n in heard.told) == 1, said


def test_keys_are_remembered_for_the_delay_in_the_mark(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "feed")
    feed.batch([("a", 10 * S), ("b", 10 * S)], message=15 * S - MS)
    feed.batch([])
    feed.batch([("a", 16 * S)], message=15 * S)
    feed.batch([])
    feed.batch([("a", 17 * S), ("b", 17 * S)])
    frame = feed.gated(within=timedelta(seconds=5)).dropDuplicatesWithinWatermark(["k"])
    heard = run(frame, tmp_path)
    assert heard.given(lambda row: (row.k, micros(row.at) // S)) == {
        0: [("a", 10), ("b", 10)],
        4: [("a", 17), ("b", 17)],
    }, broken("the delay in the mark of the column is how long a key is remembered")
