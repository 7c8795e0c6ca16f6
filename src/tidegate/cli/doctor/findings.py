"""What the progress of a stock query shows: figures, and a conclusion that says no more than them.

Spark counts a dropped row where a stateful operator meets it. In front of an aggregation rows of
one group have been put together already, so what it counts is fewer than what is lost; in front of
hopping windows a row has been doubled, and it may be more. Both are said where they can be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any, Final

from tidegate.cli.doctor.progress import Batch, QueryProgress
from tidegate.cli.doctor.words import counted, percent, shown
from tidegate.eventtime.instants import Instant, format_instant

PUT_TOGETHER: Final = ("stateStoreSave", "sessionWindowStateStoreSave")
"""Operators whose rows were put together, by group, before they are counted."""


@dataclass(frozen=True)
class Standstill:
    """Batches over which the watermark did not move although rows came in."""

    first: int
    last: int
    rows: int
    watermark: Instant | None
    lasted: timedelta | None
    """From the start of the first batch to that of the last, by the wall clock."""


@dataclass(frozen=True)
class Findings:
    """The figures of one query."""

    query: QueryProgress

    @property
    def rows(self) -> int:
        """All input rows."""
        return sum(batch.rows for batch in self.query.batches)

    @property
    def dropped(self) -> Counter[str]:
        """Rows dropped by the watermark, by operator."""
        total: Counter[str] = Counter()
        for batch in self.query.batches:
            total.update(batch.dropped)  # keeps operators that dropped none
        return total

    @property
    def stateful(self) -> bool:
        """Whether there is an operator that could drop rows."""
        return any(batch.dropped for batch in self.query.batches)

    @property
    def has_event_time(self) -> bool:
        """Whether the query has a watermark at all."""
        return any(batch.has_event_time for batch in self.query.batches)

    @property
    def counted_in_groups(self) -> bool:
        """Whether one counted row may stand for several of the input."""
        return any(name.partition(" ")[0] in PUT_TOGETHER for name in self.dropped)

    def dropping(self) -> list[tuple[Batch, int]]:
        """The batches that dropped rows, and how many."""
        counted = [(batch, sum(batch.dropped.values())) for batch in self.query.batches]
        return [(batch, count) for batch, count in counted if count]

    def standstills(self) -> list[Standstill]:
        """Where the watermark stood, the longest first."""
        found = []
        timed = [batch for batch in self.query.batches if batch.has_event_time]
        for watermark, group in groupby(timed, key=lambda batch: batch.watermark):
            fed = [batch for batch in group if batch.rows]
            # One batch with rows is no standstill: what it brings moves the next one's watermark.
            if len(fed) > 1:
                lasted = _between(fed[0].began_at, fed[-1].began_at)
                rows = sum(batch.rows for batch in fed[1:])
                found.append(Standstill(fed[0].number, fed[-1].number, rows, watermark, lasted))
        return sorted(found, key=lambda stood: stood.first - stood.last)

    def widest(self) -> tuple[Batch, timedelta] | None:
        """The batch whose largest time ran furthest ahead of its smallest."""
        spreads = [
            (batch, timedelta(microseconds=batch.largest - batch.smallest))
            for batch in self.query.batches
            if batch.largest is not None and batch.smallest is not None
        ]
        return max(spreads, key=lambda spread: spread[1], default=None)

    def delay(self) -> timedelta | None:
        """The delay of the watermark, where all batches agree on one."""
        found, reached = set(), None
        last: Instant | None = None
        for batch in self.query.batches:
            if batch.watermark is not None and batch.watermark != last and reached is not None:
                found.add(reached - batch.watermark)
            last = batch.watermark
            if batch.largest is not None:
                reached = batch.largest if reached is None else max(reached, batch.largest)
        one = found.pop() if len(found) == 1 else None
        return None if one is None or one < 0 else timedelta(microseconds=one)

    def conclusion(self) -> list[str]:
        """What can be said, sentence by sentence."""
        return [*self._of_drops(), *self._of_standstills(), *self._of_spread()]

    def _of_drops(self) -> list[str]:
        total = sum(self.dropped.values())
        if not self.stateful:
            return ["The query has no stateful operator, so its watermark drops no row."]
        if not self.has_event_time:
            return ["The query has no watermark: it drops no row, and its state has no end."]
        if not total:
            count = counted(len(self.query.batches), "batch", "batches")
            return [
                f"No row was dropped in {count}. What came before or after is not in this file."
            ]
        share = f": {percent(total / self.rows)} of its input rows" if self.rows else ""
        told = [
            f"Spark counted {counted(total, 'row')} behind the one watermark of the query, and"
            f" dropped them{share}. It raised no error, and does not tell which rows they were."
        ]
        if self.counted_in_groups:
            told.append(
                "That is no count of input rows: rows of one group and task were put together"
                " before, so in tumbling windows as many are lost or more, and in hopping windows a"
                " row counts once for each. To know the rows, give the doctor the input (--input)."
            )
        if len(self.dropped) > 1:
            told.append(
                "With several stateful operators each counts what reaches it; the sum need not"
                " be one of input rows."
            )
        return told

    def _of_standstills(self) -> list[str]:
        stood = self.standstills()
        if not stood:
            return []
        worst = stood[0]
        lasted = "" if worst.lasted is None else f", over {shown(worst.lasted)}"
        at = "" if worst.watermark is None else f", at {format_instant(worst.watermark)}"
        return [
            f"The watermark stood still while rows came in, at the most from batch {worst.first}"
            f" to {worst.last}{lasted}{at}. Nothing that waits for it could be given out"
            " meanwhile."
        ]

    def _of_spread(self) -> list[str]:
        widest, delay = self.widest(), self.delay()
        if widest is None or delay is None or widest[1] <= delay:
            return []
        return [
            f"Inside one batch times lay up to {shown(widest[1])} apart, and the delay of the"
            f" watermark is {shown(delay)}: rows as old as these, in a later batch, would be"
            " behind it."
        ]

    def as_json(self) -> dict[str, Any]:
        """The same for machines; durations in seconds."""
        widest, delay, total = self.widest(), self.delay(), sum(self.dropped.values())
        return {
            "query": self.query.name,
            "batches": len(self.query.batches),
            "rows": self.rows,
            "stateful": self.stateful,
            "event_time": self.has_event_time,
            "dropped": total,
            "dropped_share": total / self.rows if self.rows else None,
            "counted_in_groups": self.counted_in_groups,
            "dropped_by_operator": dict(self.dropped),
            "dropped_by_batch": {str(batch.number): count for batch, count in self.dropping()},
            "delay": None if delay is None else delay.total_seconds(),
            "widest_batch": None if widest is None else widest[0].number,
            "widest": None if widest is None else widest[1].total_seconds(),
            "standstills": [
                {
                    "first_batch": stood.first,
                    "last_batch": stood.last,
                    "rows": stood.rows,
                    "watermark": None
                    if stood.watermark is None
                    else format_instant(stood.watermark),
                    "seconds": None if stood.lasted is None else stood.lasted.total_seconds(),
                }
                for stood in self.standstills()
            ],
            "conclusion": self.conclusion(),
        }


def _between(first: Instant | None, last: Instant | None) -> timedelta | None:
    if first is None or last is None or last < first:
        return None
    return timedelta(microseconds=last - first)
