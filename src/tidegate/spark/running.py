"""A running job: to wait for, to stop, to ask how far it is.

What fails in a task, in the function of a batch or in the source comes back through Spark as text.
If it was an error of ours it is raised again as that, without the traces of three processes.
"""

from __future__ import annotations

import atexit
import logging
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import micros, parse_duration
from tidegate.spark.progress import JobProgress
from tidegate.store.catalog import holds, queries, streams
from tidegate.store.store import Store

_OURS = re.compile(
    r"tidegate\.errors\.(?P<kind>\w+Error): (?P<primary>[^\n]+)"
    r"(?:\n\s*Detail: (?P<detail>[^\n]+))?(?:\n\s*Hint: (?P<hint>[^\n]+))?"
    r"\n\s*Code: (?P<code>[\w-]+)"
)
_TOO_LATE: Final = "failed to connect back"
"""What Spark says of a Python process that has not come up within its ten seconds."""
_TRIES: Final = 4
_log = logging.getLogger(__name__)
T = TypeVar("T")
AtEnd = Callable[[StreamingQuery], None]


class Known(Protocol):
    """What is known of a job that runs: its name, and where its record is."""

    @property
    def name(self) -> str:
        """The job's name."""

    def store(self) -> Store:
        """The store that keeps its record."""


class RunningJob:
    """A job that was started. Closing the session stops it; its record stays."""

    def __init__(
        self, job: Known, query: StreamingQuery, *, tell: bool = True, at_end: Sequence[AtEnd] = ()
    ) -> None:
        """`at_end` is done once, before it tells its figures, when it ended without a failure."""
        self.job = job
        self.query = query
        self.progress = JobProgress(job.store(), job.name)
        self._at_end: list[AtEnd] = [*at_end, *([self._tell] if tell else [])]
        self._ending = Lock()  # one thread may wait for it while another stops it
        self._over = Event()
        self._watcher = Thread(target=self._watched, name=f"end of {job.name}", daemon=True)

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return bool(self.query.isActive)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for its end; return whether it came. What it failed with is raised.

        A job whose input has ended for good, and that has given everything out, is at its end.
        """
        began = monotonic()
        try:
            while not self.query.awaitTermination(1):
                if self.progress.finished():
                    self.stop()
                    return True
                if timeout is not None and monotonic() - began >= timeout.total_seconds():
                    return False
        except PySparkException as failure:
            raise translated(failure) from None
        self._ended()
        return True

    def process_all(self) -> None:
        """Wait until everything that is there now has been given out as far as it is complete."""
        try:
            self.query.processAllAvailable()
        except PySparkException as failure:
            raise translated(failure) from None

    def stop(self) -> None:
        """Stop it after no particular batch: it goes on from there when it is started again."""
        self.query.stop()
        if self._at_end and self.query.exception() is None:
            self._ended()

    def _ended(self) -> None:
        """It has ended, and not with a failure."""
        with self._ending:
            while self._at_end:
                self._at_end[0](self.query)
                self._at_end.pop(0)  # not before it is done: what fails here may be tried again

    def watch(self) -> None:
        """Do what is to be done at its end though nobody here waits for it."""
        # A program may end as soon as Spark's query has: before the thread is done with its work.
        atexit.register(self._last_word)
        self._watcher.start()

    def _last_word(self) -> None:
        # A Connect session answers no more when the interpreter is ending: perhaps it is known.
        with suppress(Exception):
            if self._over.is_set() or not self.active:
                self._watcher.join()

    def _watched(self) -> None:
        # What it failed with, or a session that is gone, is for whoever waits.
        with suppress(Exception):
            self.query.awaitTermination()
            self._over.set()
            try:
                self._ended()
            except Exception as failure:
                name = self.job.name
                _log.warning("what was to be done at the end of %s failed: %s", name, failure)
        atexit.unregister(self._last_word)

    def _tell(self, _: StreamingQuery) -> None:
        print(summary(self.figures()), file=sys.stderr)

    def figures(self) -> dict[str, Any]:
        """What it has counted so far."""
        return self.progress.figures()

    def __enter__(self) -> RunningJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def translated(failure: Exception) -> Exception:
    """The error of ours that Spark tells of, or the failure itself."""
    told = list(_OURS.finditer(str(failure)))
    if not told:
        return failure
    found = told[-1]  # the cause of those before it
    kind = getattr(errors, found["kind"], errors.TidegateError)
    made: Exception = kind(
        found["code"], found["primary"], detail=found["detail"] or "", hint=found["hint"] or ""
    )
    return made


def patiently(work: Callable[[], T]) -> T:
    """Do what starts a query; again, up to four times in all, when Python came up too late.

    Every start launches a process, and Spark waits ten seconds for it, which no setting changes and
    a busy machine may need. Nothing is lost by then: a query goes on from its checkpoint. Whatever
    else fails is raised at once.
    """
    for _ in range(_TRIES - 1):
        try:
            return work()
        except PySparkException as failure:
            if _TOO_LATE not in str(failure):
                raise
            _log.warning("started again: a Python process of Spark came up too late")
    return work()


def summary(figures: dict[str, Any]) -> str:
    """One line about a job that has ended."""
    return (
        f"{figures['job']}: {figures['rows_in']:,} rows in, {figures['rows_out']:,} out,"
        f" {figures['late']:,} late, {figures['lost']:,} lost, {figures['bad']:,} bad,"
        f" {figures['batches']:,} batches, {figures['rows_per_second']:,} rows/s"
    )


class Startable:
    """A job that may be started. Those who are one say how; the rest is the same for all."""

    job: Known

    def start(
        self,
        *,
        available_now: bool = False,
        every: timedelta | str | None = None,
        tell: bool = True,
    ) -> RunningJob:
        """Start it: for good, or until everything that is there now has been looked at.

        `every` is the least time between two batches; without it a batch follows the last at once.
        At its end its figures are told in one line on standard error, unless `tell` is False or it
        has failed: when it is stopped or waited for, or when it has looked at everything.
        """
        raise AssertionError("a subclass starts")

    def run(self, *, tell: bool = True) -> dict[str, Any]:
        """Run it over everything that is there now, and give its figures, which are JSON.

        They are also told in one line on standard error, unless `tell` is False. On a machine that
        is too busy for Python to come up in time it is started again.
        """

        def to_the_end() -> RunningJob:
            with self.start(available_now=True, tell=tell) as running:
                running.wait()
            return running

        return patiently(to_the_end).figures()

    @property
    def progress(self) -> JobProgress:
        """How far it is, whether it runs or not, here or elsewhere."""
        return JobProgress(self.job.store(), self.job.name)

    def reset(self) -> bool:
        """Forget its records, so that it can begin anew with an empty checkpoint."""
        store, name = self.job.store(), self.job.name

        def work(on: Connection) -> bool:
            records = [name, *(row.name for row in queries.parts(on, name))]
            for stream in store.list_streams():
                for record in records:
                    holds.release(on, streams.get(on, stream), record)
            return any([queries.forget(on, record) for record in records])

        return store.database.write(work)


def refuse_finished(job: Known) -> None:
    """Refuse to start a job that has given everything out, for good."""
    found = job.store().database.read(lambda on: queries.look(on, job.name))
    if found is not None and found.finished:
        raise errors.query_finished(job.name)


def started(
    writer: DataStreamWriter,
    job: Known,
    *,
    available_now: bool,
    every: timedelta | str | None,
    tell: bool,
    at_end: Sequence[AtEnd] = (),
) -> RunningJob:
    """Start a query: for good, with a least time between batches, or to the end of what is there.

    `every` is that least time; without it a batch follows the last at once. `at_end` is done once
    when it has ended without a failure.
    """
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        length = every if isinstance(every, timedelta) else parse_duration(every)
        writer = writer.trigger(processingTime=f"{micros(length) // 1000} milliseconds")
    running = RunningJob(job, writer.start(), tell=tell, at_end=at_end)
    if available_now:
        running.watch()  # it ends by itself, and people wait for Spark's query as well as for ours
    return running


def checkpoint_of(home: Store, name: str) -> Path:
    """Where a job keeps its checkpoint, if nobody says so: beside a store on this machine."""
    if not home.database.is_sqlite or not home.files.is_local:
        raise errors.checkpoint_missing(name)
    return Path(home.files.root).parent / "checkpoints" / name
