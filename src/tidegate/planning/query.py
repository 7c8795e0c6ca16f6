"""The query as the planner sees it: a grid, and how each stream is used.

The planner knows nothing of SQL. Of a query it needs the grid on which results are complete, and
per stream the last use of a row, how far back a batch reads before its interval, and how far past
it the stream must be complete.

>>> hopping = Query.windows(["orders"], timedelta(seconds=10), slide=timedelta(seconds=4))
>>> hopping.grid, hopping.sides["orders"].before          # gcd(10, 4); size - grid
(datetime.timedelta(seconds=2), datetime.timedelta(seconds=8))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

from tidegate.eventtime.instants import micros
from tidegate.eventtime.lateness import Forever, InAny, InJoin, InWindows, LastUse, Once

FINEST = timedelta(microseconds=1)
"""The grid of a query that has none."""


@dataclass(frozen=True)
class Side:
    """How one stream is used: a batch for [a, b) reads it in [a - before, b + after)."""

    use: LastUse
    before: timedelta = timedelta(0)
    after: timedelta = timedelta(0)


@dataclass(frozen=True)
class Query:
    """Streams in FROM order (the first drives a join), and the grid.

    `keyed`: the grouping contains the routing key, so that work may be divided by key range.
    """

    sides: Mapping[str, Side]
    grid: timedelta = FINEST
    keyed: bool = False
    reach: timedelta | None = None
    """In a full join: how far before A it must be known which rows came late."""
    held: timedelta = timedelta(0)
    """How long what stands behind the planner holds a row after its last use."""

    @staticmethod
    def windows(
        streams: Sequence[str],
        size: timedelta,
        *,
        slide: timedelta | None = None,
        more: Sequence[tuple[timedelta, timedelta]] = (),
        keyed: bool = False,
    ) -> Query:
        """Tumbling or hopping windows over one or several streams; `more` are (size, slide)."""
        windows = [(size, slide or size), *more]
        uses = [InWindows(length, hop) for length, hop in windows]
        use: LastUse = uses[0] if len(uses) == 1 else InAny(tuple(uses))
        grid = grid_of(use)
        longest = max(length for length, _ in windows)
        side = Side(use, before=longest - grid)
        return Query({name: side for name in streams}, grid, keyed)

    @staticmethod
    def ordered(*streams: str) -> Query:
        """Ordered release: rows in the order of their time."""
        return Query({name: Side(Once()) for name in streams})

    @staticmethod
    def interval_join(
        first: str, second: str, *, before: timedelta, after: timedelta, keyed: bool = False
    ) -> Query:
        """Rows of `second` from `before` earlier to `after` later than a row of `first`."""
        return Query(
            {first: Side(Once()), second: Side(InJoin(before), before=before, after=after)},
            keyed=keyed,
        )

    @staticmethod
    def full_join(first: str, second: str, *, before: timedelta, after: timedelta) -> Query:
        """The same, and rows of `second` that no row of `first` has met.

        That is known of a row when all of `first` up to `before` later has been given out; the
        first row that could have met it lies `before + after` earlier than that.
        """
        reach = before + after
        return Query(
            {
                first: Side(Once(), before=reach),
                second: Side(InJoin(before), before=before, after=after),
            },
            reach=reach,
        )

    @staticmethod
    def stateless(*streams: str) -> Query:
        """Rows as they arrive; nothing is ever too late."""
        return Query({name: Side(Forever()) for name in streams})

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, in order."""
        return tuple(self.sides)

    @property
    def waits(self) -> timedelta:
        """How far past an interval the streams must be complete before it is released."""
        return max((side.after for side in self.sides.values()), default=timedelta(0))


def grid_of(use: LastUse) -> timedelta:
    """The coarsest grid on which all these windows begin and end; the finest for other uses.

    >>> grid_of(InAny((InWindows(timedelta(seconds=10)), InWindows(timedelta(seconds=4)))))
    datetime.timedelta(seconds=2)
    """
    uses = use.uses if isinstance(use, InAny) else (use,)
    lengths = [
        micros(length)
        for one in uses
        for length in ((one.size, one.slide) if isinstance(one, InWindows) else (FINEST,))
        if length is not None
    ]
    return timedelta(microseconds=reduce(math.gcd, lengths))
