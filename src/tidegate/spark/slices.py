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
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidegate import errors
from tidegate.eventtime.instants import micros, parse_duration
from tidegate.logs.log import Description, Log
from tidegate.logs.store_log import StoreLog
from tidegate.planning.policy import OF_STREAM, Policy, Release, Strategy
from tidegate.planning.query import Query
from tidegate.spark.batches import batch_function, runner_of
from tidegate.spark.joins import JoinText, check_row_by_row
from tidegate.spark.keys import divides_by_key
from tidegate.spark.plan_door import source_of
from tidegate.spark.progress import JobProgress
from tidegate.spark.running import RunningJob, summary
from tidegate.spark.shape import Plain, Shape, Windows
from tidegate.spark.sinks.sink import Sink, refuse_connect, refuse_deletes
from tidegate.spark.spec import Frames, Job, Kernel
from tidegate.spark.sql_text import Statement
from tidegate.spark.window_rules import check_windowed
from tidegate.store.catalog import holds, queries, streams
from tidegate.store.shared import shared_store
from tidegate.store.store import Store

Duration = timedelta | str
Streams = str | Sequence[str] | Mapping[str, Log]
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class SlicesJob:
    """A job that may be started: in this session, on this checkpoint."""

    spark: SparkSession
    job: Job
    checkpoint: str

    def start(self, *, available_now: bool = False, every: Duration | None = None) -> RunningJob:
        """Start it: for good, or until everything that is there now has been looked at.

        `every` is the least time between two batches; without it a batch follows the last at once.
        """
        store = self.job.store()
        found = store.database.read(lambda on: queries.look(on, self.job.name))
        if found is not None and found.finished:
            raise errors.query_finished(self.job.name)
        runner_of(self.spark, self.job).prepare()
        source = source_of(self.job)
        self.spark.dataSource.register(source)
        writer = (
            self.spark.readStream.format(source.name())
            .load()
            .writeStream.option("checkpointLocation", self.checkpoint)
            .foreachBatch(batch_function(self.job))
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif every is not None:
            writer = writer.trigger(
                processingTime=f"{micros(_duration(every)) // 1000} milliseconds"
            )
        return RunningJob(self.job, writer.start())

    def run(self, *, tell: bool = True) -> dict[str, Any]:
        """Run it over everything that is there now, and give its figures, which are JSON.

        They are also told in one line on standard error, unless `tell` is False.
        """
        running = self.start(available_now=True)
        try:
            running.wait()
        finally:
            running.stop()
        figures = running.figures()
        if tell:
            print(summary(figures), file=sys.stderr)
        return figures

    @property
    def progress(self) -> JobProgress:
        """How far it is, whether it runs or not, here or elsewhere."""
        return JobProgress(self.job.store(), self.job.name)

    def explain(self) -> str:
        """Which kernel runs it, and why; how its work is divided."""
        choice = runner_of(self.spark, self.job).choice
        divided = "by time, and by key range when there are fewer windows than cores"
        if not self.job.query.keyed:
            divided = "by time; by rows with one shuffle when a few windows are large"
        return f"kernel: {choice.kernel}, because {choice.reason}\ndivision: {divided}"

    def reset(self) -> bool:
        """Forget the record of this job, so that it can begin anew with an empty checkpoint."""
        store = self.job.store()

        def work(on: Any) -> bool:
            for name in store.list_streams():
                holds.release(on, streams.get(on, name), self.job.name)
            return queries.forget(on, self.job.name)

        return store.database.write(work)


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
    time_behind: Duration | None = None,
    overrides: Mapping[str, Settings] | None = None,
    **settings: Any,
) -> SlicesJob:
    """A query over tumbling windows, or hopping ones with a `slide`, of one or several streams.

    Rows have `_window_start` and `_window_end`, and the query groups, joins and partitions by them.
    `settings` are those of the policy (`tolerance`, `late`, ...); `overrides` give a stream its
    own. `time_behind`: how far before the end of its window a result's own `_event_time` may lie.
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
        behind or 0, overrides, settings,
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
    overrides: Mapping[str, Settings] | None = None,
    **settings: Any,
) -> SlicesJob:
    """The rows of a stream in the order of their event time, each batch above the last.

    Without `sort` they are above the last batch, and inside a batch as they come. A query may
    filter and compute; whatever looks at several rows at once would depend on batches.
    """
    logs, home = _logs(stream, store)
    [only] = logs
    text: str | Frames = f"SELECT * FROM `{only}`" if query is None else query
    if isinstance(text, str):
        check_row_by_row(Statement.parse(text, [only]))
    return _made(
        spark, logs, home, Query.ordered(only), Plain(), text, sink, name, kernel, checkpoint,
        cores, 0, overrides, settings, in_order=sort,
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
    overrides: Mapping[str, Settings] | None = None,
    **settings: Any,
) -> SlicesJob:
    """Rows of `second` from `before` earlier to `after` later than a row of `first`.

    The query is `SELECT ... FROM a [LEFT | RIGHT] JOIN b ON ...`; the bounds are added to its ON. A
    function gets the rows of `first` in the interval and all of `second` that can meet them, and
    must keep to the bounds itself.
    """
    logs, home = _logs(first, store)
    others, _ = _logs(second, store if store is not None else home)
    [one], [two] = logs, others
    early, late_ = _duration(before), _duration(after)
    if isinstance(query, str):
        joined = JoinText.of(
            Statement.parse(query, [one, two]), one, two, before=early, after=late_
        )
        query, behind = joined.statement.text, micros(joined.time_behind)
        planned = Query.interval_join(
            joined.driver, joined.other, before=joined.before, after=joined.after
        )
    else:
        behind = 0
        planned = Query.interval_join(one, two, before=early, after=late_)
    return _made(
        spark, {**logs, **others}, home, planned, Plain(), query, sink, name, kernel, checkpoint,
        cores, behind, overrides, settings,
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
    for stream, log in logs.items():
        _check_processing(stream, log, own.get(stream, policy))
    if policy.late.value == "update":
        refuse_deletes(sink)
    refuse_connect(sink, spark)
    workers = cores or _cores(spark)
    policy = policy.fitted(cores=workers, memory_bytes=_memory(spark), held=in_order)
    database = home.database.url.render_as_string(hide_password=False)
    job = Job(
        name=name,
        catalog=database,
        # A folder may have been given as seen from here.
        data=home.files.root if home.files.is_local else home.files.address,
        logs={
            stream: _described(stream, log, own.get(stream, policy)) for stream, log in logs.items()
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
        time_behind=time_behind,
    )
    return SlicesJob(spark, job, str(checkpoint or _checkpoint(home, name)))


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


def _described(stream: str, log: Log, policy: Policy) -> Description:
    """A log as it travels; `max_future` is judged by the log, where a row meets its clock."""
    description = log.describe()
    if policy.max_future is OF_STREAM:
        return description
    if "max_future" not in description:
        raise errors.future_is_the_writers(stream)
    far = policy.max_future
    return {**description, "max_future": None if far is None else micros(far)}


def _check_processing(stream: str, log: Log, policy: Policy) -> None:
    if policy.watermark is Strategy.PROCESSING and isinstance(log, StoreLog):
        column = log.store.describe(log.name).config.event_column
        if column is not None:
            raise errors.processing_needs_commit_time(stream, column)


def _checkpoint(home: Store, name: str) -> Path:
    if not home.database.is_sqlite or not home.files.is_local:
        raise errors.checkpoint_missing(name)
    return Path(home.files.root).parent / "checkpoints" / name


def _cores(spark: SparkSession) -> int:
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # on Connect there is no context to ask
        return os.cpu_count() or 2


def _memory(spark: SparkSession) -> int:
    text = spark.conf.get("spark.executor.memory", None) or spark.conf.get(
        "spark.driver.memory", "1g"
    )
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    number, unit = str(text).rstrip("bB")[:-1], str(text).rstrip("bB")[-1].lower()
    return int(float(number) * 2 ** units[unit]) if unit in units else int(text or 1 << 30)


def _duration(value: Duration) -> timedelta:
    return value if isinstance(value, timedelta) else parse_duration(value)
