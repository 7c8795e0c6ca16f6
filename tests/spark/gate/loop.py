"""Spark's loop by hand: the sources of a query asked, logged, run and committed, without Spark.

It does what Spark's micro-batch execution does to a source, in that order and in one thread, and no
more: ask every source for the end of the next batch; log the offsets; read; take the largest value
of the watermark column of each source and the least of all sources; commit. It may be killed
between any two of these. Behind it stands one operator, tumbling windows in append mode. So the
many edge cases of several sources take milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.jobs.world import S, World

from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.logs.files import FileLog
from tidegate.logs.log import Log
from tidegate.spark.arrow_types import spark_schema
from tidegate.spark.gate.batches import GateRun, GateRunner
from tidegate.spark.gate.doors import _where, texts_of
from tidegate.spark.gate.offsets import Offset as At
from tidegate.spark.gate.options import gate_of, gate_schema
from tidegate.spark.gate.reader import GateReader
from tidegate.spark.gate.spec import Gate
from tidegate.spark.gate.trick import WATERMARK
from tidegate.spark.sinks import MemorySink

MS = 1_000
SIZE = 10 * S
Offset = dict[str, Any]


def bounded(folder: Path, name: str, times: Sequence[int]) -> FileLog:
    """A log that has ended, with one row in every file; values are the seconds."""
    place = folder / name / "0"
    place.mkdir(parents=True)
    for n, t in enumerate(times):
        at = pa.array([t * S], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"v": [t], "at": at}), place / f"{n}.parquet")
    return FileLog(name, folder / name, event_column="at", ended=True)


class Killed(BaseException):
    """The process ended here: nobody gets to clean up."""


def gate(
    world: World, stream: str | Log = "orders", *, query: str = "q", **settings: Any
) -> GateReader:
    """A source of a query, as Spark gets it from its options."""
    settings = {"windows": "10 s", "idle_after": None, "tasks": 2, **settings}
    options = _where(stream, world.store, None)
    options |= {"query": query, **texts_of(settings)}
    schema = gate_schema(options)
    names = [name for name in schema.names if name != WATERMARK]
    return GateReader(gate_of(options, names), spark_schema("stream", schema))


def rows_of(reader: GateReader, start: Offset, end: Offset) -> tuple[list[Any], list[int]]:
    """The rows of a batch, and its messages in microseconds."""
    rows, messages = [], []
    for task in reader.partitions(start, end):
        for batch in reader.read(task):
            for row in batch.to_pylist():
                watermark = row.pop(WATERMARK)
                if watermark is not None:
                    assert all(value is None for value in row.values())
                    messages.append(_micros(watermark))
                else:
                    rows.append(row)
    return rows, messages


@dataclass
class Logged:
    """A batch in the offset log: where each source ends, and the watermark it runs with."""

    ends: dict[str, Offset]
    watermark: int


@dataclass
class Checkpoint:
    """What survives a kill."""

    logged: list[Logged] = field(default_factory=list)
    committed: int = 0
    watermark: int = 0
    """That of the next batch, as of the last one that is committed."""
    state: Counter[int] = field(default_factory=Counter)
    """Open windows, by their end."""
    given: list[tuple[int, int, int]] = field(default_factory=list)
    """What came out: the batch, the end of the window, the count."""
    rows: list[tuple[int, str, Any]] = field(default_factory=list)
    """What went in: the batch, the source, the row."""


class Loop:
    """One run of a query over some sources, on a checkpoint."""

    def __init__(
        self,
        world: World,
        sources: Mapping[str, GateReader],
        checkpoint: Checkpoint,
        *,
        available_now: bool = True,
        start: bool = True,
    ) -> None:
        self.world, self.kept = world, checkpoint
        # Every run has planners of its own.
        self.sources = {n: GateReader(s.gate, s.schema) for n, s in sources.items()}
        self._own: dict[str, int] = {}
        self._held = False
        one: Gate = next(iter(self.sources.values())).gate
        run = GateRun(one.name, one.catalog, one.data, MemorySink("x"), pa.schema([]), 0, "")
        self.runner = GateRunner(run)
        self.frontiers: list[Known] = []
        self.watermark = checkpoint.watermark
        if start:
            for source in self.sources.values():
                source.getDefaultReadLimit()
                if available_now:
                    source.prepareForTriggerAvailableNow()
        if checkpoint.committed < len(checkpoint.logged):
            self.watermark = checkpoint.logged[-1].watermark
            self._run(kill=None)

    @property
    def starts(self) -> dict[str, Offset]:
        """Where the next batch begins."""
        if self.kept.committed:
            return self.kept.logged[self.kept.committed - 1].ends
        return {name: source.initialOffset() for name, source in self.sources.items()}

    def step(self, kill: str | None = None) -> bool:
        """One batch; False: there was none to run.

        `kill`: "asked" (every source has planned), "logged" or "ran" (nothing is committed).
        """
        starts = self.starts
        ends = {
            name: source.latestOffset(starts[name], source.getDefaultReadLimit())
            for name, source in self.sources.items()
        }
        if kill == "asked":
            raise Killed
        if ends == starts and not self._held:
            return False
        self._held = False
        self.kept.logged.append(Logged(ends, self.watermark))
        if kill == "logged":
            raise Killed
        self._run(kill)
        return True

    def run(self, limit: int = 200) -> int:
        """Batch after batch until there is none; how many."""
        for count in range(limit):
            if not self.step():
                return count
        raise AssertionError(f"not quiet after {limit} batches")

    def _run(self, kill: str | None) -> None:
        kept = self.kept
        batch = kept.logged[kept.committed]
        frontier = self.runner._frontier(self.runner._words())
        if self.frontiers:
            frontier = later(self.frontiers[-1], frontier)
        starts, seen, state = self.starts, [], Counter(kept.state)
        for name, source in self.sources.items():
            rows: list[Any] = []
            messages: list[int] = []
            if starts[name] != batch.ends[name]:
                rows, messages = rows_of(source, starts[name], batch.ends[name])
            for row in rows:
                seen.append((kept.committed, name, row))
                state[_end(row)] += 1
            if rows or messages:
                top = max([0, *messages])
                self._own[name] = max(self._own.get(name, 0), top)
            else:
                self._own.setdefault(name, 0)
        given = [
            (kept.committed, end, n) for end, n in sorted(state.items()) if end <= batch.watermark
        ]
        if kill == "ran":
            raise Killed
        for row in seen:
            assert _end(row[2]) > batch.watermark, f"Spark would drop {row} at {batch.watermark}"
        for row in self._given_up(starts, batch.ends, seen):
            assert _end(row) <= batch.watermark, f"{row} is of use at {batch.watermark}"
        for _, end, _ in given:
            del state[end]
            for told in self.frontiers:
                assert told is UNKNOWN or end - 1 >= told, f"a result behind the frontier {told}"
        kept.rows += seen
        kept.given += given
        kept.state = state
        kept.committed += 1
        self.frontiers.append(frontier)
        reached = max(self.watermark, min(self._own.values()))
        self._held = reached > self.watermark
        self.watermark = kept.watermark = reached

    def _given_up(
        self, starts: Mapping[str, Offset], ends: Mapping[str, Offset], seen: Sequence[Any]
    ) -> list[Any]:
        """The rows between the offsets of a batch that were not given out, of streams of a store.

        Only where rows have their offsets with them.
        """
        found = []
        for name, source in self.sources.items():
            if not {"_partition", "_offset"} <= set(source.gate.columns):
                continue
            mine = {(r["_partition"], r["_offset"]) for _, n, r in seen if n == name}
            before, after = (_cut(side[name], source.gate.stream) for side in (starts, ends))
            for row in self.world.read(source.gate.stream, "_partition", "_offset"):
                place = (row["_partition"], row["_offset"])
                first = before.get(place[0], place[1] + 1 if before else 0)
                new = first <= place[1] < after.get(place[0], 0)
                if new and place not in mine and row["at"] >= 0:
                    found.append(row)
        return found


def _cut(offset: Offset, stream: str) -> Mapping[str, int]:
    found = At.read(offset)
    return {} if found is None else found.state.streams[stream].cut()


def _end(row: Mapping[str, Any]) -> int:
    at = row["at"] if isinstance(row["at"], int) else _micros(row["at"])
    return at // SIZE * SIZE + SIZE


def _micros(value: Any) -> int:
    return pa.scalar(value, pa.timestamp("us", tz="UTC")).value  # type: ignore[no-any-return]


def resumed(loop: Loop, **how: Any) -> Loop:
    """The same query in new processes."""
    return Loop(loop.world, loop.sources, loop.kept, **how)


def sent(reached: Sequence[int], tolerance: int = 0) -> int:
    """What Spark is to have, when these are the largest times of all partitions: exact ends."""
    return (min(reached) - tolerance) // MS * MS
