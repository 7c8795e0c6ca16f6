"""The family of the headline workload: rows delivered partition after partition.

A case has no steps but facts: what a count over all rows gives, what one global watermark makes of
it, and what the minimum over partitions makes of it. Groups are counted by symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tests.cases.conventions import HASHES, Asked, agrees
from tests.cases.family import Case, Family, fail

from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.testing.headline import (
    Headline,
    Key,
    OneGlobalWatermark,
    Outcome,
    Planned,
    deliver,
)

WAYS: Final = ("truth", "one_global_watermark_no_lateness", "per_partition_min")


@dataclass(frozen=True)
class Spread(Headline):
    """The workload, spread by one of the hashes a case may have used."""

    hashed: str = next(iter(HASHES))

    def partition_of(self, key: Key) -> str:
        """Where a key's rows go."""
        return str(HASHES[self.hashed](key) % self.partitions)

    def partition_names(self) -> list[str]:
        """Only those that have rows: nobody delivers the others."""
        used = {self.partition_of(row.key) for row in self.all_rows()}
        return [name for name in super().partition_names() if name in used]


class PartitionBatched(Family):
    """`tidegate.testing.headline`: the planner beside one global watermark."""

    known: ClassVar[set[str]] = {"n", "traders", "symbols", "partitions", *WAYS}

    @classmethod
    def replay(cls, case: Case) -> None:
        """Run the workload and compare every fact of the case."""
        if case.steps or case.init or not case.facts.keys() <= cls.known:
            unknown = sorted(case.facts.keys() - cls.known)
            fail(case, f"is told by {sorted(cls.known)}, without steps and init; found {unknown}")
        runs = {name: cls(case, name) for name in HASHES}
        ours, *_ = runs.values()
        for way, found in (("truth", ours.truth()), ("per_partition_min", ours.planned())):
            wanted = case.facts.get(way, {})
            if not agrees(wanted, found):
                fail(case, f"{way}: expected {wanted}, got {found}")
        wanted = case.facts.get("one_global_watermark_no_lateness")
        outcomes = [run.dropping() for run in runs.values()]
        if wanted and not any(agrees(wanted, found) for found in outcomes):
            ours.must_be_near(case, wanted["dropped_rows"])

    def __init__(self, case: Case, hashed: str) -> None:
        self.workload = Spread(
            rows=case.facts["n"],
            traders=case.facts["traders"],
            symbols=case.facts["symbols"],
            partitions=case.facts["partitions"],
            hashed=hashed,
        )
        self.one, self.all = OneGlobalWatermark(self.workload), Planned(self.workload)
        for _ in deliver(self.workload, self.one, self.all):
            pass
        # Both look at the windows that are closed before what is open is flushed.
        self.said = self.one.current(), self.all.history[-1].watermark
        self.ends = self.one.finish(), self.all.finish()

    def truth(self) -> Asked:
        """What there is to find; the window of the last row is open until the end."""
        truth = self.workload.truth()
        last = max(start for start, _ in truth)
        return Asked(
            windows=len({start for start, _ in truth}),
            groups=len({symbol for _, (_, symbol) in truth}),
            results_with_flush=len(self._groups(truth)),
            results_without_flush=len(self._groups(it for it in truth if it[0] < last)),
        )

    def planned(self) -> Asked:
        """What the minimum over partitions makes of it."""
        outcome, watermark = self.ends[1], self.said[1]
        assert outcome.results == self.workload.truth() or outcome.lost
        return Asked(
            dropped_rows=outcome.lost,
            results_with_flush=len(self._groups(outcome.results)),
            closed_before_flush=self._closed(outcome, watermark, by_claim=True),
        )

    def dropping(self) -> Asked:
        """What one global watermark makes of it."""
        outcome, watermark = self.ends[0], self.said[0]
        return Asked(
            dropped_rows=outcome.lost,
            results_closed=self._closed(outcome, watermark, by_claim=False),
        )

    def must_be_near(self, case: Case, dropped: int) -> None:
        """Another hash puts other keys into the first partition, but about as many."""
        found = self.ends[0].lost
        keys = len({row.key for row in self.workload.all_rows()})
        if found == 0 or abs(found - dropped) > 2 * self.workload.rows / keys:
            fail(case, f"one global watermark: expected about {dropped} dropped, got {found}")

    def _closed(self, outcome: Outcome, watermark: Known, *, by_claim: bool) -> int:
        if watermark is UNKNOWN:
            return 0
        number = watermark + 1 if by_claim else watermark
        length = micros(self.workload.window)
        return len(self._groups(it for it in outcome.results if it[0] + length <= number))

    @staticmethod
    def _groups(results: Iterable[tuple[Instant, Key]]) -> set[tuple[Instant, int]]:
        return {(start, symbol) for start, (_, symbol) in results}


FAMILIES: Final[Mapping[str, type[Any]]] = {"partition_batched": PartitionBatched}
