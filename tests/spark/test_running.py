"""A run on a busy machine: Python that comes up too late is waited for, nothing else is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tidegate.errors import TidegateError, query_finished
from tidegate.spark.running import RunningJob, Startable

LATE = PySparkException("[STREAM_FAILED] ... Python worker failed to connect back.")


class Ran(RunningJob):
    """A run that ends, or fails, as it is told."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.stopped = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self.failure is not None:
            raise self.failure
        return True

    def stop(self) -> None:
        self.stopped = True

    def figures(self) -> dict[str, Any]:
        return {"lost": 0}


class Told(Startable):
    """A job whose first runs fail with these."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.runs: list[Ran] = []

    def start(
        self, *, available_now: bool = False, every: timedelta | str | None = None
    ) -> RunningJob:
        assert available_now
        self.runs.append(Ran(self.failures.pop(0) if self.failures else None))
        return self.runs[-1]


def test_a_run_begins_again_when_python_came_up_too_late() -> None:
    job = Told(LATE, LATE)
    assert job.run(tell=False) == {"lost": 0}
    assert [run.stopped for run in job.runs] == [True] * 3


@pytest.mark.parametrize(
    ("failures", "runs"),
    [
        ([LATE] * 9, 4),
        ([PySparkException("division by zero")], 1),
        ([query_finished("job")], 1),
        ([LATE, query_finished("job")], 2),
    ],
)
def test_a_run_that_fails_otherwise_or_again_and_again_is_a_failure(
    failures: list[Exception], runs: int
) -> None:
    job = Told(*failures)
    with pytest.raises((PySparkException, TidegateError)) as failed:
        job.run(tell=False)
    assert failed.value is failures[runs - 1]
    assert [run.stopped for run in job.runs] == [True] * runs
