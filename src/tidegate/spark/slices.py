"""Slices: jobs whose every batch is complete event time. The doors of this room.

    job = windows(spark, "orders", size="1 minute", store="shop", name="per-minute",
                  query="SELECT _window_start, _window_end, item, count(*) AS n FROM orders"
                        " GROUP BY _window_start, _window_end, item",
                  sink=StreamSink("orders_per_minute"))
    job.run()            # everything there is now, then the end
    job.start()          # or for good

A query is SQL text, or a function that gets a DataFrame per stream by its name and returns one.
What runs over complete windows is batch SQL: whatever Spark can say, it may say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate import errors
from tidegate.eventtime.instants import format_duration, micros, parse_duration
from tidegate.logs.log import Log
from tidegate.logs.store_log import StoreLog
from tidegate.planning.behind import refuse_unclear_next
from tidegate.planning.policy import Policy, Release, Strategy
from tidegate.planning.query import Query
from tidegate.spark.batch_rows import rows_of_batch, slices_of_batch
from tidegate.spark.batches import batch_function, runner_of
from tidegate.spark.joins import JoinText, check_row_by_row, chooses_time
from tidegate.spark.keys import divides_by_key
from tidegate.spark.log_policy import described
from tidegate.spark.plan_door import Plans, source_of
from tidegate.spark.running import (
    RunningJob,
    Startable,
    checkpoint_of,
    refuse_finished,
    started,
)
from tidegate.spark.shape import Full, Plain, Shape, Windows
from tidegate.spark.sinks.sink import Sink, refuse_connect, refuse_deletes
from tidegate.spark.size import memory, parallelism
from tidegate.spark.source_options import Between
from tidegate.spark.spec import Frames, Job, Kernel, checked_system
from tidegate.spark.sql_text import Statement
from tidegate.spark.window_rules import check_windowed
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

Duration = timedelta | str
Streams = str | Sequence[str] | Mapping[str, Log]
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class SlicesJob(Startable):
    """A job that may be started: in this session, on this checkpoint."""

    spark: SparkSession
    job: Job
    checkpoint: str

    def start(
        self, *, available_now: bool = False, every: Duration | None = None, tell: bool = True
    ) -> RunningJob:
        """Start it: for good, or until everything that is there now has been looked at.

        `every` is the least time between two batches; without it a batch follows the last at once.
        Its figures are told in one line at its end: see `tell` in `Startable.start`.
        """
        refuse_finished(self.job)
        runner_of(self.spark, self.job).prepare()
        plans = Plans(self.job)
        source = source_of(self.spark, plans)
        self.spark.dataSource.register(source)
        writer = (
            self.spark.readStream.format(source.name())
            .load()
            .writeStream.option("checkpointLocation", self.checkpoint)
            .foreachBatch(batch_function(self.job, plans))
        )
        return started(writer, self.job, available_now=available_now, every=every, tell=tell)

    def rows_of(self, batch: int) -> dict[str, DataFrame]:
        """By stream the rows that a batch has read, to see what its results were made of.

        Batches are numbered from 1, as progress and late rows tell them; the checkpoint keeps the
        last hundred. Rows have their places beside all their columns.
        """
        return rows_of_batch(self.spark, self.job, self.checkpoint, batch)

    def slices_of(self, batch: int) -> dict[str, tuple[Between, ...]]:
        """By stream the bounds between which a batch has read, for `read` with `slices=`."""
        return slices_of_batch(self.spark, self.job, self.checkpoint, batch)

    def explain(self) -> str:
        """Which kernel runs it, and why; how its work is divided."""
        choice = runner_of(self.spark, self.job).choice
        divided = "by time, and by key range when there are fewer windows than cores"
        if not self.job.query.keyed:
            divided = "by time; by rows with one shuffle when a few windows are large"
        said = f"kernel: {choice.kernel}, because {choice.reason}\ndivision: {divided}"
        if isinstance(self.job.shape, Windows) and choice.row_by_row is not None:
            pane = format_duration(timedelta(microseconds=self.job.shape.pane))
            said += f"\nwindows: put together from panes of {pane}, so that a row is counted once"
        return said


def windows(
    spark: SparkSession,
    streams: Streams,
    *,
    size: Duration,
    slide: Duration | None = None,
    query: str | Frames,
    sink: Sink,
    name: str,
    store: Store | str | Path | None = None,
    kernel: Kernel = "auto",
    checkpoint: str | Path | None = None,
    cores: int | None = None,
    system: Sequence[str] = (),
    time_behind: Duration | None = None,
    overrides: Mapping[str, Settings] | None = None,
    **settings: Any,
) -> SlicesJob:
    """A query over tumbling windows, or hopping ones with a `slide`, of one or several streams.

    Rows have `_window_start` and `_window_end`, and the query groups, joins and partitions by them.
    `settings` are those of the policy (`tolerance`, `late`, ...); `overrides` give a stream its
    own. `time_behind`: how far before the end of its window a result's own `_event_time` may lie.
    `system`: `_offset`, `_partition` or `_timestamp`, for rows to have them though no text names
    them: a function cannot, and a * does not mean them otherwise.
    """
    logs, home = _logs(streams, store)
    length, hop = _duration(size), _duration(size if slide is None else slide)
    statement = None
    behind = None if time_behind is None else micros(_duration(time_behind))
    if isinstance(query, str):
        statement = Statement.parse(query, list(logs))
        column = check_windowed(statement)
        if column == "_event_time" and behind is None:
            behind = micros(length)
    keyed = statement is not None and divides_by_key(statement, _routing_keys(logs))
    planned = Query.windows(list(logs), length, slide=hop, keyed=keyed)
    shape = Windows(micros(length), micros(hop))
    return _made(
        spark, logs, home, planned, shape, query, sink, name, kernel, checkpoint, cores,
        system, behind or 0, overrides, settings,
    )  # fmt: skip


def ordered(
    spark: SparkSession,
    stream: str | Mapping[str, Log],
    *,
    query: str | Frames | None = None,
    sink: Sink,
    name: str,
    sort: bool = True,
    store: Store | str | Path | None = None,
    kernel: Kernel = "auto",
    checkpoint: str | Path | None = None,
    cores: int | None = None,
    system: Sequence[str] = (),
    time_behind: Duration | None = None,
    overrides: Mapping[str, Settings] | None = None,
    **settings: Any,
) -> SlicesJob:
    """The rows of a stream in the order of their event time, each batch above the last.

    Without `sort` they are above the last batch, and inside a batch as they come. A query may
    filter and compute; whatever looks at several rows at once would depend on batches. If it gives
    rows another `_event_time`, `time_behind` says how far before their own it may lie.
    """
    logs, home = _logs(stream, store)
    [only] = logs
    text: str | Frames = f"SELECT * FROM `{only}`" if query is None else query
    if isinstance(text, str):
        statement = Statement.parse(text, [only])
        check_row_by_row(statement)
        _check_time(name, statement, time_behind)
    behind = micros(_duration(time_behind or timedelta(0)))
    return _made(
        spark, logs, home, Query.ordered(only), Plain(), text, sink, name, kernel, checkpoint,
        cores, system, behind, overrides, settings, in_order=sort,
    )  # fmt: skip


def interval_join(
    spark: SparkSession,
    first: str | Mapping[str, Log],
    second: str | Mapping[str, Log],
    *,
    before: Duration,
    after: Duration,
    query: str | Frames,
    sink: Sink,
    name: str,
    store: Store | str | Path | None = None,
    kernel: Kernel = "auto",
    checkpoint: str | Path | None = None,
    cores: int | None = None,
    system: Sequence[str] = (),
    time_behind: Duration | None = None,
    overrides: Mapping[str, Settings] | None = None,
    **settings: Any,
) -> SlicesJob:
    """Rows of `second` from `before` earlier to `after` later than a row of `first`.

    The query is `SELECT ... FROM a [LEFT | RIGHT | FULL] JOIN b ON ...`; the bounds are added to
    its ON. A function gets the rows of `first` in the interval and all of `second` that can meet
    them, and must keep to the bounds itself. `time_behind`: how far before its row of `first` the
    time of a result may lie, where it is neither that of the one nor of the other.
    """
    logs, home = _logs(first, store)
    others, _ = _logs(second, store if store is not None else home)
    [one], [two] = logs, others
    early, late_ = _duration(before), _duration(after)
    shape: Shape = Plain()
    if isinstance(query, str):
        statement = Statement.parse(query, [one, two])
        joined = JoinText.of(statement, one, two, before=early, after=late_)
        _check_time(name, statement, time_behind)
        query, behind = joined.statement.text, micros(joined.time_behind)
        planned = (Query.full_join if joined.full else Query.interval_join)(
            joined.driver, joined.other, before=joined.before, after=joined.after
        )
        if joined.full:
            _check_full(joined, settings, overrides)
            shape = Full(micros(joined.before), micros(joined.after))
    else:
        behind = 0
        planned = Query.interval_join(one, two, before=early, after=late_)
    if time_behind is not None:
        behind = micros(_duration(time_behind))
    return _made(
        spark, {**logs, **others}, home, planned, shape, query, sink, name, kernel, checkpoint,
        cores, system, behind, overrides, settings,
    )  # fmt: skip


def _made(
    spark: SparkSession,
    logs: dict[str, Log],
    home: Store,
    query: Query,
    shape: Shape,
    text: str | Frames,
    sink: Sink,
    name: str,
    kernel: Kernel,
    checkpoint: str | Path | None,
    cores: int | None,
    system: Sequence[str],
    time_behind: int,
    overrides: Mapping[str, Settings] | None,
    settings: Settings,
    *,
    in_order: bool = False,
) -> SlicesJob:
    policy = Policy.from_options({**settings, "release": Release.TIME.value})
    own = {
        stream: Policy.from_options({**chosen, "release": Release.TIME.value})
        for stream, chosen in (overrides or {}).items()
    }
    for chosen in (policy, *own.values()):
        refuse_unclear_next(query, chosen)
    if policy.late.value == "update":
        refuse_deletes(sink)
    refuse_connect(sink, spark)
    workers = cores or parallelism(spark) or os.cpu_count() or 2
    policy = policy.fitted(cores=workers, memory_bytes=memory(spark), held=in_order)
    catalog, data = home.addresses
    job = Job(
        name=name,
        catalog=catalog,
        data=data,
        logs={
            stream: described(stream, log, own.get(stream, policy)) for stream, log in logs.items()
        },
        query=query,
        shape=shape,
        policy=policy,
        sink=sink,
        text=text if isinstance(text, str) else None,
        function=None if isinstance(text, str) else text,
        kernel=kernel,
        overrides=own,
        cores=workers,
        ordered=in_order,
        system=checked_system(system),
        time_behind=time_behind,
    )
    return SlicesJob(spark, job, str(checkpoint or checkpoint_of(home, name)))


def _logs(streams: Streams, store: Store | str | Path | None) -> tuple[dict[str, Log], Store]:
    home = store if isinstance(store, Store) or store is None else shared_store(store)
    if isinstance(streams, Mapping):
        logs = dict(streams)
        if home is None:
            found = [log.store for log in logs.values() if isinstance(log, StoreLog)]
            if not found:
                raise errors.job_without_store()
            home = found[0]
        return logs, home
    if home is None:
        raise errors.job_without_store()
    names = [streams] if isinstance(streams, str) else list(streams)
    return {name: StoreLog(home, name) for name in names}, home


def _routing_keys(logs: Mapping[str, Log]) -> dict[str, tuple[str, ...]]:
    return {
        name: log.store.describe(log.name).config.routing_key if isinstance(log, StoreLog) else ()
        for name, log in logs.items()
    }


def _check_time(name: str, statement: Statement, time_behind: Duration | None) -> None:
    """Nobody else can say how far behind a time lies that a query computes."""
    if time_behind is None and chooses_time(statement.tree):
        raise errors.time_behind_missing(name, "they have a time of their own choice")


def _check_full(
    joined: JoinText, settings: Settings, overrides: Mapping[str, Settings] | None
) -> None:
    """A full join says what met nobody, and so must know of every row when it came too late."""
    for given in (settings, *(overrides or {}).values()):
        policy = Policy.from_options({**given, "release": Release.TIME.value})
        if policy.watermark is Strategy.PROCESSING:
            text = joined.statement.fragment(joined.statement.tree)
            raise errors.join_not_by_interval("a FULL join needs event times", text)


def _duration(value: Duration) -> timedelta:
    return value if isinstance(value, timedelta) else parse_duration(value)
