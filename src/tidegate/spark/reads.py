"""From a plan to rows: what every part of a batch reads of every stream.

A batch is divided by the planner into tasks, each with a piece of the interval; a correction is one
more piece, read twice, below the cut before and below the cut after. Here the spans of a piece
become rows to read: times, columns, and the files that hold them now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa

from tidegate.eventtime.instants import micros
from tidegate.eventtime.lateness import Once
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.logs.log import Log
from tidegate.planning.batch import BatchPlan
from tidegate.planning.behind import first_of_ours
from tidegate.planning.facts import Offsets, Spans
from tidegate.planning.latecomers import parted
from tidegate.planning.query import Query
from tidegate.planning.slices import Interval, Task, shifted
from tidegate.planning.state import PlannerState
from tidegate.spark.rows import Reads, StreamRows, frame_schema, rows_of, with_files
from tidegate.spark.shape import EVENT_TIME


@dataclass(frozen=True)
class Piece:
    """A piece of complete event time, and the rows of every stream that belong to it."""

    interval: Interval
    reads: Reads
    rows: int


class Reader:
    """Makes rows to read from what a plan says."""

    def __init__(
        self,
        logs: Mapping[str, Log],
        query: Query,
        columns: Mapping[str, Sequence[str]],
        *,
        ordered: bool = False,
    ) -> None:
        self._logs = logs
        self._query = query
        self._columns = {name: (*wanted, EVENT_TIME) for name, wanted in columns.items()}
        self._ordered = ordered

    def schemas(self) -> dict[str, pa.Schema]:
        """What the rows of every stream have."""
        return {
            name: frame_schema(self._logs[name], columns) for name, columns in self._columns.items()
        }

    def pieces(self, batch: BatchPlan, after: PlannerState) -> list[Piece]:
        """The tasks of a batch."""
        if batch.slice is None:
            return []
        return self._with_files([self._piece(task, after) for task in batch.slice.tasks])

    def below(
        self, interval: Interval, starts: Mapping[str, Offsets], state: PlannerState
    ) -> Piece:
        """An interval as it stands below the cuts of a state, in one piece."""
        reads: dict[str, tuple[StreamRows, ...]] = {}
        count = 0
        for name in self._columns:
            log = self._logs[name]
            cut = state.streams[name].cut()
            spans = log.overlapping(*self._times(name, interval), starts[name], cut)
            reads[name] = tuple(self._kinds(name, spans, interval, state))
            count += int(spans.rows.sum())
        [piece] = self._with_files([Piece(interval, reads, count)])
        return piece

    def _piece(self, task: Task, after: PlannerState) -> Piece:
        reads: dict[str, tuple[StreamRows, ...]] = {}
        for name in self._columns:
            kinds = self._kinds(name, task.reads[name], task.interval, after)
            a = task.interval.a
            if name in task.behind and a is not UNKNOWN:
                times = (first_of_ours(after, self._query, name), a)
                kinds.append(self._rows(name, task.behind[name], times, at=a))
            reads[name] = tuple(kinds)
        return Piece(task.interval, reads, task.rows)

    def _kinds(
        self, name: str, spans: Spans, interval: Interval, state: PlannerState
    ) -> list[StreamRows]:
        """The rows around an interval; in a full join those that came late by themselves."""
        times = self._times(name, interval)
        if self._query.reach is None:
            return [self._rows(name, spans, times)]
        drives = isinstance(self._query.sides[name].use, Once)
        if drives:
            times = (later(times[0], state.origin), times[1])
        # The same ranges for all pieces of a batch: Spark reads them as one.
        came = state.streams[name].latecomers
        kinds = []
        for since, part in parted(spans, came).items():
            # Below what was closed when it came a row of the first stream was lost.
            own = (later(times[0], since), times[1]) if drives else times
            kinds.append(self._rows(name, part, own, at=None if since is UNKNOWN else since))
        return kinds or [self._rows(name, spans, times)]

    def _times(self, name: str, interval: Interval) -> tuple[Known, int]:
        side = self._query.sides[name]
        return shifted(interval.a, -micros(side.before)), interval.b + micros(side.after)

    def _rows(
        self, name: str, spans: Spans, times: tuple[Known, int], at: int | None = None
    ) -> StreamRows:
        log, columns = self._logs[name], self._columns[name]
        return rows_of(log, spans, columns, times, at=at, ordered=self._ordered)

    def _with_files(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces with the files that hold their rows now, all looked up at once."""
        found: list[dict[str, tuple[StreamRows, ...]]] = [{} for _ in pieces]
        for name, log in self._logs.items():
            if name not in self._columns:
                continue
            every = iter(with_files([r for p in pieces for r in p.reads[name]], log))
            for piece, reads in zip(pieces, found, strict=True):
                reads[name] = tuple(islice(every, len(piece.reads[name])))
        return [replace(piece, reads=reads) for piece, reads in zip(pieces, found, strict=True)]
