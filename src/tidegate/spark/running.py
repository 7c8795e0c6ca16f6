"""A running job: to wait for, to stop, to ask how far it is.

What fails in a task, in the function of a batch or in the source comes back through Spark as text.
If it was an error of ours it is raised again as that, without the traces of three processes.
"""

from __future__ import annotations

import re
from datetime import timedelta
from time import monotonic
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from tidegate import errors
from tidegate.spark.progress import JobProgress
from tidegate.spark.spec import Job

_OURS = re.compile(
    r"tidegate\.errors\.(?P<kind>\w+Error): (?P<primary>[^\n]+)"
    r"(?:\n\s*Detail: (?P<detail>[^\n]+))?(?:\n\s*Hint: (?P<hint>[^\n]+))?"
    r"\n\s*Code: (?P<code>[\w-]+)"
)


class RunningJob:
    """A job that was started. Closing the session stops it; its record stays."""

    def __init__(self, job: Job, query: StreamingQuery) -> None:
        self.job = job
        self.query = query
        self.progress = JobProgress(job.store(), job.name)

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
                    self.query.stop()
                    return True
                if timeout is not None and monotonic() - began >= timeout.total_seconds():
                    return False
        except PySparkException as failure:
            raise translated(failure) from None
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


def summary(figures: dict[str, Any]) -> str:
    """One line about a job that has ended."""
    return (
        f"{figures['job']}: {figures['rows_in']:,} rows in, {figures['rows_out']:,} out,"
        f" {figures['late']:,} late, {figures['lost']:,} lost, {figures['bad']:,} bad,"
        f" {figures['batches']:,} batches, {figures['rows_per_second']:,} rows/s"
    )
