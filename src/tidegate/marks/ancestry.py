"""Ancestry: what a cut must know of the partitions it speaks of, and the plain answer.

Partitions may follow each other, as segments do when a stream is scaled, or stand side by side for
good, as those of Kafka do. The second kind has a flat lineage: nothing follows anything.

>>> FlatLineage(["0", "1"]).is_whole(["1"]), FLAT.followed(["0"], by=["1"])
(False, set())
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Protocol


class Ancestry(Protocol):
    """Who comes after whom: implemented by `Lineage` and by `FlatLineage`."""

    def ancestors_of(self, names: Iterable[str]) -> set[str]:
        """Every partition that must be read to its end before one of these."""

    def followed(self, names: Collection[str], by: Collection[str]) -> set[str]:
        """Those of `names` that come before one of `by`."""

    def is_whole(self, names: Collection[str]) -> bool:
        """Whether these cover the key space, each key exactly once."""

    def complete(self, names: Collection[str]) -> set[str]:
        """These, and what fills the gaps between them: partitions at their beginning."""


class FlatLineage:
    """Partitions side by side. Those that are known to exist belong into every whole cut."""

    __slots__ = ("partitions",)

    def __init__(self, partitions: Iterable[str] = ()) -> None:
        self.partitions: Final = frozenset(partitions)

    def ancestors_of(self, names: Iterable[str]) -> set[str]:
        """None."""
        return set()

    def followed(self, names: Collection[str], by: Collection[str]) -> set[str]:
        """None."""
        return set()

    def is_whole(self, names: Collection[str]) -> bool:
        """Whether every known partition is there."""
        return self.partitions.issubset(names)

    def complete(self, names: Collection[str]) -> set[str]:
        """Add the known ones that are missing."""
        return set(self.partitions.union(names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlatLineage) and self.partitions == other.partitions

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __repr__(self) -> str:
        return f"FlatLineage({sorted(self.partitions)})"


FLAT: Final = FlatLineage()
"""Partitions side by side, of which none is known beforehand."""
