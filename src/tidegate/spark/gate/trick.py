"""The trick: how Spark's operators come to follow a watermark that is not theirs.

Spark finds its watermark as the largest value it has seen in one column of a source, less a delay.
So a source of ours has one column more, `_watermark`. In rows it is null; every batch has besides
them one message, a row that is null everywhere else and has W there. Spark takes the largest, which
is W, exactly. Then the messages are dropped, and the column that holds the event time is given the
mark by which Spark's operators know the column that they are to hold against the watermark. Public
interfaces only; no code in the JVM.

What it rests on, each of it held by a test (`tests/spark/gate/test_trick.py`):

- Spark reads a null in the watermark column as 0, and starts at 0: so rows do not move it, and
  times before 1970 cannot be judged. Such rows are bad rows here.
- The filter that drops messages asks for the number of the task's partition. That is not
  deterministic in Spark's eyes, so no filter of the user's is moved below it, where it would drop
  the message with the rows.
- The mark is in the metadata of the column, `spark.watermarkDelayMs`. Only
  `dropDuplicatesWithinWatermark` uses its value: how long a key is remembered.
- W acts in the batch after the one that carried it; with several sources Spark takes the least.
- Spark's watermark has milliseconds, and a window closes at `end <= watermark`. W says that every
  time up to it is complete, so a window that ends at W + 1 us is: where all operators are tumbling
  or hopping windows W + 1 us is sent, rounded down. Sessions merge at `start <= end`, and joins,
  deduplication and `transformWithState` drop rows at the watermark: there W is sent, rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.eventtime.instants import Instant, ceil_to, floor_to, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.spark.gate.packs import unpacked

WATERMARK: Final = "_watermark"
MARK: Final = "spark.watermarkDelayMs"
MILLISECOND: Final = 1_000


def gated(
    raw: DataFrame, columns: Sequence[str], event_column: str, *, within: timedelta
) -> DataFrame:
    """The rows of a source that gives packs, with Spark's watermark following its messages."""
    timed = raw.withWatermark(WATERMARK, "0 seconds")
    rows = unpacked(timed.where(F.col(WATERMARK).isNull() & (F.spark_partition_id() >= 0)), columns)
    mark = {MARK: micros(within) // MILLISECOND}
    return rows.select(
        *(
            F.col(f"`{name}`").alias(name, metadata=mark) if name == event_column else f"`{name}`"
            for name in columns
        )
    )


def message(
    watermark: Known, *, allowed: timedelta, exact_ends: bool, finished: bool
) -> Instant | None:
    """What is sent to Spark for W: microseconds that are whole milliseconds, or nothing yet.

    `exact_ends`: all operators are windows that close at `end <= watermark`. At the end of the
    input nothing is to come that could be late, so then it is rounded up.

    >>> second = 1_000_000
    >>> message(10 * second - 1, allowed=timedelta(0), exact_ends=True, finished=False)
    10000000
    >>> message(10 * second - 1, allowed=timedelta(0), exact_ends=False, finished=False)
    9999000
    >>> message(10 * second - 1, allowed=timedelta(0), exact_ends=False, finished=True)
    10000000
    """
    if watermark is UNKNOWN:
        return None
    reached = watermark - micros(allowed)
    if finished:
        return max(ceil_to(reached + 1, MILLISECOND), 0)
    sent = floor_to(reached + 1 if exact_ends else reached, MILLISECOND)
    return sent if sent > 0 else None
