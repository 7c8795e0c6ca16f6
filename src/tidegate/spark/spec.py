"""The job as a value: everything a batch needs, on whatever machine or process it runs.

A spec is frozen and pickles; it travels into the source that plans, into the function that runs a
batch, and the parts of it that tasks need into tasks. Who runs it opens logs and store by the
addresses in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pyspark.sql import DataFrame

from tidegate import errors
from tidegate.logs.log import OFFSET, Description, Log, open_log
from tidegate.planning.policy import Policy
from tidegate.planning.query import Query
from tidegate.spark.rows import PARTITION, TIMESTAMP
from tidegate.spark.shape import Shape
from tidegate.spark.sinks.sink import Sink
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

SYSTEM: Final = (OFFSET, PARTITION, TIMESTAMP)
"""Columns that a row has by its place in the log. Rows always have their event time."""

Kernel: TypeAlias = Literal["auto", "spark", "duckdb"]
Frames: TypeAlias = Callable[..., DataFrame]
"""A query as a function: batch DataFrames by stream name in, one DataFrame out."""


@dataclass(frozen=True)
class Job:
    """A slices job: streams, a query over complete event time, and a sink."""

    name: str
    catalog: str
    data: str
    logs: Mapping[str, Description]
    query: Query
    shape: Shape
    policy: Policy
    sink: Sink
    text: str | None = None
    function: Frames | None = None
    kernel: Kernel = "auto"
    overrides: Mapping[str, Policy] = field(default_factory=dict)
    cores: int = 2
    ordered: bool = False
    """Rows come in the order of their time, within a batch too."""
    system: tuple[str, ...] = ()
    """System columns that rows have, whether or not a text names them."""
    time_behind: int = 0
    """How far before the released time a result may lie: what the frontier is lowered by."""

    def store(self) -> Store:
        """The store that keeps the job's record, its late and bad rows, and its sink's stream."""
        return shared_store(self.catalog, self.data)

    def open_logs(self) -> dict[str, Log]:
        """The streams, by the name that the query has for them."""
        return {name: open_log(description) for name, description in self.logs.items()}


def checked_system(asked: Sequence[str]) -> tuple[str, ...]:
    """System columns that a query may ask for, once each; an error when there is no such one."""
    if isinstance(asked, str):
        asked = [asked]
    for name in asked:
        if name not in SYSTEM:
            raise errors.unknown_system_column(name, SYSTEM)
    return tuple(dict.fromkeys(asked))
