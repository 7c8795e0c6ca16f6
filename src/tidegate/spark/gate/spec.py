"""A gate as a value: one stream of a streaming query, and how its rows are used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.lateness import LastUse, Once
from tidegate.eventtime.watermark import Known
from tidegate.logs.log import Description, Log, open_log
from tidegate.planning.policy import Policy, Strategy
from tidegate.planning.query import FINEST, Query, Side, grid_of
from tidegate.spark.gate.trick import message
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

SECOND: Final = timedelta(seconds=1)
EPOCH: Final = 0


@dataclass(frozen=True)
class Gate:
    """One source of a query. `name` is the query's: that is what routed rows carry.

    `source` names it among the sources of its query, `stream` is the stream's own name. `columns`
    are those of its rows, `event_column` the one among them that has the event time. `exact_ends`:
    all operators behind it are windows that close at their end. `held`: how long operators hold on
    to a row after its last use, as joins and timers do.
    """

    name: str
    source: str
    catalog: str
    data: str | None
    stream: str
    log: Description
    columns: tuple[str, ...]
    event_column: str
    use: LastUse
    policy: Policy
    exact_ends: bool = False
    within: timedelta = timedelta(0)
    held: timedelta = timedelta(0)
    cores: int = 2

    @property
    def record(self) -> str:
        """The name of its own record in the catalog: what has been routed."""
        return f"{self.name}/{self.source}"

    @property
    def node(self) -> str:
        """Its name among the nodes of the query."""
        return f"source:{self.source}"

    @property
    def query(self) -> Query:
        """The query as its planner sees it: this stream, and the last use of a row."""
        return Query({self.stream: Side(self.use)}, self._grid, held=self.held)

    @property
    def _grid(self) -> timedelta:
        """On what times a clock may act: where windows end, or else once a second."""
        if self.exact_ends:
            return grid_of(self.use)
        return SECOND if self.policy.watermark is Strategy.PROCESSING else FINEST

    @property
    def earliest(self) -> Instant:
        """The first time that Spark's operators can judge: its watermark begins at 1970.

        Those that drop rows at the watermark drop rows of that very instant too.
        """
        return EPOCH + isinstance(self.use, Once)

    def store(self) -> Store:
        """The store that keeps its record, and its late and bad rows."""
        return shared_store(self.catalog, self.data)

    def open_log(self) -> Log:
        """The stream."""
        return open_log(self.log)

    def claimed(self, sent: Instant) -> Instant:
        """The W of ours that Spark's operators have, when they were told this."""
        return sent - self.exact_ends + micros(self.policy.allowed_lateness)

    def message(self, watermark: Known, *, finished: bool) -> Instant | None:
        """What Spark is told of a watermark."""
        return message(
            watermark,
            allowed=self.policy.allowed_lateness,
            exact_ends=self.exact_ends,
            finished=finished,
        )
