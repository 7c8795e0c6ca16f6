"""The demo's rows: orders of five sites, an hour of backlog and half an hour that is written live.

Every site has a partition of its own, and inside it rows are out of order by less than two seconds.
The sites differ in how they deliver: that, and nothing else, makes one global watermark lose rows.
The numbers come from a seed, so that the same call gives the same orders.

>>> orders = Workload(rows=1_000)
>>> [len(orders.backlog(site)) + len(orders.live(site)) for site in SITES]
[225, 225, 225, 225, 100]
>>> sorted(orders.routing()) == sorted(SITES)
True
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.eventtime.instants import Instant, micros, parse_instant
from tidegate.marks.lineage import Lineage
from tidegate.store.routing import hashes, segment_index

_Ints = npt.NDArray[np.int64]

Site = Literal["fast", "steady", "slow", "crashing", "quiet"]
SITES: Final[tuple[Site, ...]] = get_args(Site)
"""In the order in which the backlog is delivered."""

STREAM: Final = "orders"
WINDOW: Final = timedelta(minutes=1)
DISORDER: Final = timedelta(seconds=2)
DELAY: Final = timedelta(minutes=10)
"""What stock Spark is given; it is for the whole query, so it is far above the disorder."""

FIRST: Final[Instant] = parse_instant("2025-06-02T08:00:00Z")
BACKLOG: Final = timedelta(hours=1)
LIVE: Final = timedelta(minutes=30)
QUIET_FOR: Final = timedelta(minutes=20)
"""How long before the end of the backlog the quiet site has fallen silent."""
ITEMS: Final = 20

SCHEMA: Final = pa.schema(
    [
        ("site", pa.int32()),
        ("item", pa.string()),
        ("cents", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class Workload:
    """So many orders, spread evenly over the sites and their time."""

    rows: int = 3_000_000
    seed: int = 7

    @property
    def live_from(self) -> Instant:
        """Where the backlog ends."""
        return FIRST + micros(BACKLOG)

    @property
    def until(self) -> Instant:
        """Every order that counts is before this time."""
        return self.live_from + micros(LIVE)

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return (self.until - FIRST) // micros(WINDOW)

    def routing(self) -> dict[Site, int]:
        """The number of each site, chosen so that it has a partition of its own."""
        segments = Lineage.start(len(SITES)).open_in(0)
        tried = pa.table({"site": pa.array(range(1_000), pa.int32())})
        places = segment_index(hashes(tried, ["site"]), segments)
        return {site: int(np.argmax(places == place)) for place, site in enumerate(SITES)}

    def partitions(self) -> dict[str, Site]:
        """Whose partition it is, by its name."""
        segments = Lineage.start(len(SITES)).open_in(0)
        return {segment.name: site for segment, site in zip(segments, SITES, strict=True)}

    def backlog(self, site: Site) -> pa.Table:
        """What a site had collected before the demo began."""
        silent = QUIET_FOR if site == "quiet" else timedelta(0)
        return self._orders(site, FIRST, self.live_from - micros(silent))

    def live(self, site: Site) -> pa.Table:
        """What a site sends while the jobs run."""
        end = self.live_from if site == "quiet" else self.until
        return self._orders(site, self.live_from, end)

    def closing(self, site: Site) -> pa.Table:
        """One order from long after the last window, so that it can close in either way."""
        return _table(
            self.routing()[site], np.zeros(1, np.int64), np.ones(1, np.int64), np.array([self.late])
        )

    @property
    def late(self) -> Instant:
        """When the closing orders are made: their own window is not counted."""
        return self.until + micros(DELAY) + 2 * micros(WINDOW)

    @cached_property
    def _step(self) -> float:
        """Microseconds from one order of a site to its next."""
        times = len(SITES) * micros(BACKLOG + LIVE)
        return (times - micros(QUIET_FOR) - micros(LIVE)) / self.rows

    def _orders(self, site: Site, start: Instant, end: Instant) -> pa.Table:
        chance = np.random.default_rng([self.seed, SITES.index(site), start - FIRST])
        count = int((end - start) / self._step)
        even = start + (np.arange(count) * self._step).astype(np.int64)
        at = np.maximum(even - chance.integers(0, micros(DISORDER), count), start)
        items, cents = chance.integers(0, ITEMS, count), chance.integers(100, 10_000, count)
        return _table(self.routing()[site], items, cents, at)


def _table(site: int, items: _Ints, cents: _Ints, at: _Ints) -> pa.Table:
    names = pa.array([f"item {number:02d}" for number in range(ITEMS)])
    return pa.table(
        [
            pa.array(np.full(len(at), site, np.int32)),
            names.take(pa.array(items)),
            pa.array(cents),
            pa.array(at).cast(SCHEMA.field("at").type),
        ],
        schema=SCHEMA,
    )
