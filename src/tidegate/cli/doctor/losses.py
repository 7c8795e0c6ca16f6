"""What an input loses under one global watermark, and beside it what Tidegate loses.

Figures and words for `tidegate doctor --input`; the judging is done in `doctor/stock.py` and
`doctor/planned.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np

from tidegate.cli.doctor.arrivals import Arrivals, Batching
from tidegate.cli.doctor.planned import PlannedOutcome, largest_disorder, planned
from tidegate.cli.doctor.stock import StockOutcome, stock_spark
from tidegate.cli.doctor.words import counted, percent, shown
from tidegate.eventtime.instants import Instant, format_instant
from tidegate.eventtime.watermark import UNKNOWN


@dataclass(frozen=True)
class Question:
    """The query that is asked about: its window (None: by the time of a row), delay, batches."""

    window: timedelta | None
    delay: timedelta
    batching: Batching
    live: bool = False


@dataclass(frozen=True)
class PartitionLosses:
    """One partition: its rows, its times, and what each way loses of it."""

    name: str
    rows: int
    smallest: Instant
    largest: Instant
    stock: int
    tidegate: int


@dataclass(frozen=True, eq=False)
class Losses:
    """The answer."""

    question: Question
    arrivals: Arrivals
    stock: StockOutcome
    planned: PlannedOutcome
    disorder: timedelta

    @property
    def rows(self) -> int:
        """How many rows were judged."""
        return self.arrivals.rows

    @cached_property
    def lost(self) -> int:
        """How many the one watermark loses."""
        return int(self.stock.lost.sum())

    @cached_property
    def lost_by_tidegate(self) -> int:
        """How many Tidegate loses."""
        return int(self.planned.lost.sum())

    @cached_property
    def partitions(self) -> list[PartitionLosses]:
        """Every partition that has rows, the worst first."""
        there = self.arrivals
        smallest = np.full(len(there.names), np.iinfo(np.int64).max)
        largest = np.full(len(there.names), np.iinfo(np.int64).min)
        np.minimum.at(smallest, there.partition, there.times)
        np.maximum.at(largest, there.partition, there.times)
        columns = (
            there.counts(), smallest, largest,
            there.counts(self.stock.lost), there.counts(self.planned.lost),
        )  # fmt: skip
        found = [
            PartitionLosses(name, *(int(value) for value in values))
            for name, *values in zip(there.names, *columns, strict=True)
            if values[0]
        ]
        return sorted(found, key=lambda part: (-part.stock, part.name))

    @cached_property
    def held_back(self) -> tuple[timedelta, timedelta] | None:
        """How far Tidegate's watermark stood behind the newest row: at the median, at the most.

        Over the batches in which it had one.
        """
        far = []
        reached: int | None = None
        for rows, watermark in zip(self.arrivals.batches(), self.planned.watermarks, strict=True):
            times = self.arrivals.times[rows]
            if len(times):
                newest = int(times.max())
                reached = newest if reached is None else max(reached, newest)
            if reached is not None and watermark is not UNKNOWN:
                far.append(reached - watermark - 1)  # a watermark is the last time that is over
        if not far:
            return None
        median, most = int(np.median(far)), max(far)
        return timedelta(microseconds=median), timedelta(microseconds=most)

    @property
    def without_watermark(self) -> int:
        """Batches after which Tidegate still waited for a partition's first row."""
        return sum(watermark is UNKNOWN for watermark in self.planned.watermarks)

    def conclusion(self) -> list[str]:
        """What can be said, sentence by sentence."""
        told = [*self._of_stock(), *self._of_tidegate()]
        if len(self.partitions) == 1:
            told.append(
                "All rows are of one partition, so both have one watermark. If the rows have"
                " several origins, name the column that tells them (--partition)."
            )
        return told + self._of_what_is_not_known()

    def _of_stock(self) -> list[str]:
        delay, needed = shown(self.question.delay), self.stock.needed
        if not self.lost:
            spare = "" if not needed else f" It takes {shown(needed)} at the least."
            return [f"With a delay of {delay} one global watermark loses no row.{spare}"]
        worst = self.partitions[0]
        told = [
            f"One global watermark with a delay of {delay} loses {self.lost:,} of {self.rows:,}"
            f" rows ({percent(self.lost / self.rows)}); the most in partition {worst.name}:"
            f" {worst.stock:,} of {worst.rows:,}."
        ]
        if needed is None:
            return [*told, "No delay would help: Spark's watermark begins at 1970, and rows of"
                    " this input lie before it."]  # fmt: skip
        return [
            *told,
            f"To lose none it would need a delay of {shown(needed)}, and then every result waits"
            f" so long, in event time, after the end of its window instead of {delay}. That is"
            " for these rows in these batches; the next backlog may need more.",
        ]

    def _of_tidegate(self) -> list[str]:
        tolerance = shown(self.question.delay)
        if self.lost_by_tidegate:
            told = [
                f"Tidegate, with a tolerance of {tolerance} in every partition, loses"
                f" {counted(self.lost_by_tidegate, 'row')}; with one of {shown(self.disorder)}, the"
                " largest disorder inside a partition, it loses none."
            ]
            if self.lost_by_tidegate > self.lost:
                told.append(
                    "It may lose more of one partition than Spark does with the same figure, as it"
                    " gives a window out a batch sooner."
                )
        else:
            told = [f"Tidegate, with a tolerance of {tolerance} in every partition, loses none."]
        if self.held_back is not None and len(self.partitions) > 1:
            median, most = self.held_back
            told.append(
                f"It waits for the slowest partition instead: its watermark stood {shown(median)}"
                f" behind the newest row at the median, {shown(most)} at the most."
            )
        if self.without_watermark:
            told.append(
                f"In {self.without_watermark:,} of {len(self.planned.watermarks):,} batches it had"
                " none yet, as some partition had not brought its first row."
            )
        return told

    def _of_what_is_not_known(self) -> list[str]:
        told = []
        if self.arrivals.equal_dates:
            files = counted(self.arrivals.equal_dates, "file")
            told.append(
                f"As old as another, to the millisecond: {files}. Spark takes those in an order of"
                " its own, here it is that of their names."
            )
        if self.arrivals.untimed:
            told.append(
                f"Without a time that can be read: {counted(self.arrivals.untimed, 'row')}, in no"
                " window and counted nowhere."
            )
        return told

    def as_json(self) -> dict[str, Any]:
        """The same for machines; durations in seconds."""
        question, needed, held = self.question, self.stock.needed, self.held_back
        return {
            "rows": self.rows,
            "rows_without_time": self.arrivals.untimed,
            "files": self.arrivals.files,
            "files_of_equal_date": self.arrivals.equal_dates,
            "batches": len(self.arrivals.ends),
            "window": None if question.window is None else question.window.total_seconds(),
            "delay": question.delay.total_seconds(),
            "live": question.live,
            "stock": {
                "lost": self.lost,
                "share": self.lost / self.rows,
                "delay_needed": None if needed is None else needed.total_seconds(),
            },
            "tidegate": {
                "lost": self.lost_by_tidegate,
                "share": self.lost_by_tidegate / self.rows,
                "tolerance_needed": self.disorder.total_seconds(),
                "behind_median": None if held is None else held[0].total_seconds(),
                "behind_most": None if held is None else held[1].total_seconds(),
                "batches_without_watermark": self.without_watermark,
            },
            "partitions": [
                {
                    "partition": part.name,
                    "rows": part.rows,
                    "from": format_instant(part.smallest),
                    "to": format_instant(part.largest),
                    "lost_by_stock": part.stock,
                    "lost_by_tidegate": part.tidegate,
                }
                for part in self.partitions
            ],
            "conclusion": self.conclusion(),
        }


def judge(
    arrivals: Arrivals, question: Question, done: Callable[[float], None] = lambda share: None
) -> Losses:
    """Judge an input in both ways."""
    return Losses(
        question,
        arrivals,
        stock_spark(arrivals, question.window, question.delay, live=question.live),
        planned(arrivals, question.window, question.delay, done=done),
        largest_disorder(arrivals),
    )
