"""How a run begins on a busy machine, and how it ends: it says once what it has counted."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import SimpleNamespace
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
        self,
        *,
        available_now: bool = False,
        every: timedelta | str | None = None,
        tell: bool = True,
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


# ---- the end ----

LINE = "job: 1,234 rows in, 5 out, 4 late, 3 lost, 2 bad, 6 batches, 617 rows/s\n"
FIGURES = {
    "job": "job",
    "rows_in": 1234,
    "rows_out": 5,
    "late": 4,
    "lost": 3,
    "bad": 2,
    "batches": 6,
    "rows_per_second": 617,
}


class Asked:
    """A query of Spark that ends when it is stopped, or by itself; perhaps with a failure."""

    def __init__(self, *, ended: bool, failure: Exception | None) -> None:
        self.ended, self.failure = ended, failure
        self.over = Event()

    def awaitTermination(self, seconds: float | None = None) -> bool:
        if seconds is None:
            self.over.wait()
        if self.ended and self.failure is not None:
            raise self.failure
        return self.ended

    def stop(self) -> None:
        self.ended = True
        self.over.set()

    @property
    def isActive(self) -> bool:
        return not self.ended

    def exception(self) -> Exception | None:
        return self.failure


def running(
    *, ended: bool = False, finished: bool = False, failure: Exception | None = None, **said: Any
) -> RunningJob:
    query: Any = Asked(ended=ended, failure=failure)
    made = RunningJob(SimpleNamespace(name="job", store=lambda: None), query, **said)
    made.progress = SimpleNamespace(finished=lambda: finished, figures=lambda: FIGURES)  # type: ignore[assignment]
    return made


def within(job: RunningJob) -> None:
    with job as inside:
        inside.wait()


@pytest.mark.parametrize(
    ("job", "end"),
    [
        ({"ended": True}, RunningJob.wait),
        ({"finished": True}, RunningJob.wait),
        ({}, RunningJob.stop),
        ({"ended": True}, within),
    ],
    ids=["what was there is over", "its input has ended", "it is stopped", "a with ends"],
)
def test_a_job_that_has_ended_tells_its_figures_once(
    job: dict[str, Any],
    end: Callable[[RunningJob], object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = running(**job, at_end=[lambda _: print("first what else there is to do")])
    assert capsys.readouterr() == ("", "")
    end(made)
    assert capsys.readouterr() == ("first what else there is to do\n", LINE)
    made.wait()
    made.stop()
    assert capsys.readouterr() == ("", "")


def test_a_job_tells_nothing_while_it_runs_when_it_failed_or_when_told_not_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not running().wait(timedelta(0))
    failed = running(ended=True, failure=PySparkException("division by zero"))
    with pytest.raises(PySparkException):
        failed.wait()
    failed.stop()
    quiet = running(ended=True, tell=False)
    quiet.wait()
    quiet.stop()
    assert capsys.readouterr() == ("", "")


def test_the_figures_of_a_job_are_its_last_word_also_when_two_threads_end_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = Thread(target=lambda: made.stop())

    def count_more(_: object) -> None:
        other.start()
        other.join(0.1)  # it must not tell what is not counted yet
        print("counted", file=sys.stderr)

    made = running(ended=True, at_end=[count_more])
    made.wait()
    other.join()
    assert capsys.readouterr().err == f"counted\n{LINE}"


def watched(made: RunningJob) -> None:
    """Watch it from its beginning to its end, for which nobody waits."""
    made.watch()
    made.query.stop()
    for thread in threading.enumerate():
        if thread.name == "end of job":
            thread.join()


def test_a_job_that_is_watched_tells_its_figures_though_nobody_waits_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = running()
    watched(made)
    assert capsys.readouterr().err == LINE
    made.wait()
    assert capsys.readouterr().err == ""
    watched(running(failure=PySparkException("division by zero")))
    assert capsys.readouterr().err == ""


def test_what_goes_wrong_at_the_end_of_a_watched_job_is_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    log = SimpleNamespace(warning=lambda text, *given: said.append(text % given))
    monkeypatch.setattr("tidegate.spark.running._log", log)

    def fail(_: object) -> None:
        raise OSError("the catalog is gone")

    made = running(at_end=[fail])
    watched(made)
    assert said == ["what was to be done at the end of job failed: the catalog is gone"]
    with pytest.raises(OSError, match="the catalog is gone"):
        made.wait()  # it is not done yet, and whoever waits must know


@pytest.mark.parametrize("head_start", [0, 0.2], ids=["at once", "while that is being done"])
def test_a_program_that_ends_with_the_query_has_told_its_figures(head_start: float) -> None:
    program = (
        "from time import sleep; from tests.spark.test_running import running;"
        "made = running(at_end=[lambda _: sleep(1)]); made.watch(); made.query.stop();"
        f"sleep({head_start})"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", LINE)


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_kept_of_a_watched_job_that_is_over(fails: bool) -> None:
    """A driver may start thousands of them."""
    made = running(failure=PySparkException("division by zero") if fails else None, tell=False)
    over = weakref.ref(made)
    watched(made)
    del made
    gc.collect()
    assert over() is None


def test_at_the_end_of_a_program_nobody_asks_a_session_for_what_is_known() -> None:
    """Connect has no threads left by then, with which to ask."""
    program = (
        "from time import sleep; from tests.spark.test_running import Asked, running;"
        "made = running(at_end=[lambda _: sleep(1)]); made.watch(); made.query.stop(); sleep(0.2);"
        "del Asked.exception, Asked.isActive"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", LINE)


class Started(Startable):
    """A job whose start is remembered."""

    def start(
        self,
        *,
        available_now: bool = False,
        every: timedelta | str | None = None,
        tell: bool = True,
    ) -> RunningJob:
        return running(ended=True, tell=tell)


def test_a_run_tells_its_figures_once_or_not_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert Started().run() == FIGURES
    assert capsys.readouterr().err == LINE
    assert Started().run(tell=False) == FIGURES
    assert capsys.readouterr().err == ""
