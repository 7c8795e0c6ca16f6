"""A play: rows come in acts, a gated query and a naive truth look at each, and must agree.

In an act the query sees what has come, in as many batches as it likes; rows behind W come in an act
of one batch, for by which W a row is judged is a matter of batches. What was read is complete up to
W, which is found here by hand: the least of the largest times of all partitions, less the
tolerance. A row of a later act whose last use lies behind that is lost, and everything else counts.
Nothing here knows of offsets or messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.spark.jobs.truth import Row
from tests.spark.jobs.world import Given, S, World, begun

from tidegate.spark.gate.writing import GateJob
from tidegate.spark.running import RunningJob

MS = 1_000
TOLERANCE = 3
FAR = 1000
"""A time that closes everything that the acts before it have opened."""


@dataclass
class Truth:
    """What is complete, and what is lost, told naively."""

    last_use: Callable[[int], int | None]
    """The end of the last thing that can use a row."""
    exact_ends: bool
    tolerance: int = TOLERANCE * S
    allowed: int = 0
    tops: dict[tuple[str, str], int] = field(default_factory=dict)
    w: int | None = None
    lost: list[Row] = field(default_factory=list)
    late: int = 0

    def act(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of one act that count; W is then what they have completed."""
        kept = []
        for row in rows:
            place = (row.stream, row.partition)
            self.tops[place] = max(self.tops.get(place, row.t), row.t)
            self.late += self.w is not None and row.t <= self.w
            end = self.last_use(row.t)
            if self.w is not None and end is not None and end <= self.w + 1 - self.allowed:
                self.lost.append(row)
            else:
                kept.append(row)
        w = min(self.tops.values()) - self.tolerance - 1
        self.w = w if self.w is None else max(self.w, w)
        return kept

    @property
    def sent(self) -> int:
        """W as Spark has it: whole milliseconds."""
        assert self.w is not None
        reached = self.w - self.allowed
        return (reached + 1 if self.exact_ends else reached) // MS * MS


@dataclass
class Play:
    """A world, the truth of a query in it, and the acts so far."""

    world: World
    truth: Truth
    streams: Sequence[str] = ("orders",)
    seen: list[Row] = field(default_factory=list)
    kept: list[list[Row]] = field(default_factory=list)
    ws: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Tell the truth of everything that has come."""
        new = self.world.rows(*self.streams, seen=self.seen)
        self.seen += new
        self.kept.append(self.truth.act(new))
        self.ws.append(self.truth.sent)

    @property
    def all_kept(self) -> list[Row]:
        """The rows that count."""
        return [row for act in self.kept for row in act]


def crowd(world: World, stream: str, tops: Sequence[int], *, start: int = 1) -> None:
    """Rows for partitions of very different speed, in pieces, in disorder within the tolerance.

    Partition n gets rows up to `tops[n]` seconds.
    """
    pieces = 4
    disorder = (0.0, 2.5, 1.25, 2.9, 0.5)
    count = 0
    for piece in range(pieces):
        rows: list[Given] = []
        for place, top in enumerate(tops):
            for n in range(5):
                at = start + (top - start) * (piece * 5 + n) / (pieces * 5)
                count += 1
                key = world.key(place, stream, nth=count % 2)
                rows.append((key, count, round(max(at - disorder[n], 0.25) * 1000) / 1000))
            count += 1
            rows.append((world.key(place, stream), count, start + (top - start) * (piece + 1) / 4))
        world.append(rows, stream)


def every_place(world: World, stream: str, places: int, times: Sequence[float]) -> None:
    """One row at each time in each partition."""
    rows = [(world.key(p, stream), 1, t) for p in range(places) for t in times]
    world.append(rows, stream)


def at_the_edge(w: int, size: float) -> list[float]:
    """Times in seconds around W, and around the window of W: most of them late, some lost."""
    window = w // round(size * S) * round(size * S)
    near = [w - 20 * S, window - 1, window, w - 1, w, w + 1, w + MS, w + round(size * S)]
    return [t / S for t in near if t >= 0]


def played(play: Play, job: GateJob, acts: Sequence[Callable[[], None]]) -> RunningJob:
    """Run a query through acts; each ends when the query has seen everything."""
    running: RunningJob | None = None
    for act in acts:
        act()
        if running is None:
            running = begun(job)
        running.process_all()
        play.look()
    assert running is not None
    return running


def check_late(play: Play, running: RunningJob, *, dropped: int = 0) -> None:
    """Lost rows are routed once and as the truth says; Spark has dropped none by itself."""
    figures = running.figures()
    got = (figures["late"], figures["lost"], figures["rows_in"])
    expected = (play.truth.late, len(play.truth.lost), len(play.seen))
    assert got == expected, f"late, lost, rows: {got}, and not {expected}"
    routed = Counter(
        (stream, row["k"], row["v"], row["late_time"])
        for stream in play.streams
        for row in play.world.read(f"{stream}.late")
    )
    lost = Counter((row.stream, row.k, row.v, row.t) for row in play.truth.lost)
    assert routed == lost, f"too many: {routed - lost}, missing: {lost - routed}"
    found = dropped_by_spark(running.query.recentProgress)
    assert found == dropped, f"Spark has dropped {found} rows by itself, and not {dropped}"


def dropped_by_spark(told: Iterable[Mapping[str, Any]]) -> int:
    """How many rows Spark's operators dropped by themselves."""
    return sum(
        operator["numRowsDroppedByWatermark"]
        for batch in told
        for operator in batch["stateOperators"]
    )


def batches_with_rows(running: RunningJob) -> int:
    """How many batches had any."""
    return sum(told["numInputRows"] > 1 for told in running.query.recentProgress)
