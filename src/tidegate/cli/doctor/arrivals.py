"""Arrivals: the times of all rows in the order in which they came, cut into batches.

It is all that the doctor needs of an input: of each row its time and its partition. A batch is so
many files, or so many rows; one may be empty, as a file without rows is a batch of Spark's too.

>>> made = Arrivals.of(["a", "b"], [("a", [10, 20]), ("b", []), ("b", [5, None])])
>>> made.rows, made.untimed, [made.times[part].tolist() for part in made.batches()]
(3, 1, [[10, 20], [], [5]])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.planning.facts import Flags, Numbers

Codes = npt.NDArray[np.int32]


class Batching(NamedTuple):
    """How much a batch takes: so many files, or so many rows when that is said."""

    files: int = 1
    rows: int | None = None

    def __str__(self) -> str:
        if self.rows is not None:
            return f"{self.rows:,} rows to a batch"
        return "one file to a batch" if self.files == 1 else f"{self.files:,} files to a batch"


class Piece(NamedTuple):
    """What came at once, such as a file: times, which of them are there, and the partitions."""

    times: Numbers
    timed: Flags
    partition: Codes


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows that have a time, in order; `ends` are the places at which batches end.

    `untimed` rows have none, and count nowhere. `successors` names the partitions that go on where
    one of them was sealed.
    """

    names: tuple[str, ...]
    times: Numbers
    partition: Codes
    ends: Numbers
    untimed: int = 0
    files: int = 0
    equal_dates: int = 0
    """Files that are as old as another: nobody but Spark's listing knows their order."""
    successors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows have a time."""
        return len(self.times)

    def batches(self) -> Iterator[slice]:
        """The rows of every batch, in order."""
        for start, end in pairwise([0, *self.ends.tolist()]):
            yield slice(start, end)

    def counts(self, chosen: Flags | None = None) -> Numbers:
        """Rows per partition: all, or those that are chosen."""
        which = self.partition if chosen is None else self.partition[chosen]
        return np.bincount(which, minlength=len(self.names)).astype(np.int64)

    @staticmethod
    def joined(
        names: Sequence[str], pieces: Sequence[Piece], batching: Batching, **more: object
    ) -> Arrivals:
        """One after the other; batches are cut before the rows without a time are left out."""
        empty = Piece(np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, np.int32))
        times, timed, partition = (
            np.concatenate(columns) for columns in zip(empty, *pieces, strict=True)
        )
        if batching.rows is not None:
            cuts = np.arange(batching.rows, len(times) + batching.rows, batching.rows)
        else:
            after = np.cumsum([len(piece.times) for piece in pieces], dtype=np.int64)
            last = np.arange(batching.files, len(after) + batching.files, batching.files) - 1
            cuts = after[np.minimum(last, len(after) - 1)] if len(after) else after
        good = np.concatenate([[0], np.cumsum(timed)])
        return Arrivals(
            tuple(names),
            times[timed],
            partition[timed],
            good[np.minimum(cuts, len(times))].astype(np.int64),
            untimed=int(len(times) - good[-1]),
            **more,  # type: ignore[arg-type]
        )

    @staticmethod
    def of(
        names: Sequence[str],
        pieces: Sequence[tuple[str, Sequence[int | None]]],
        batching: Batching = Batching(),  # noqa: B008 - a frozen value
    ) -> Arrivals:
        """From (partition, times) of every file: for tests and examples."""
        made = [
            Piece(
                np.array([time or 0 for time in times], dtype=np.int64),
                np.array([time is not None for time in times], dtype=np.bool_),
                np.full(len(times), list(names).index(name), dtype=np.int32),
            )
            for name, times in pieces
        ]
        return Arrivals.joined(names, made, batching, files=len(made))
