"""Kills a whole driver at a named point of a batch, from whichever of its processes comes there.

A driver is a Python process, a JVM, the process that plans and those that run tasks. `KILL_AT` is
the point, `KILL_NTH` at which batch of this life; `KILL_FOLDER` holds what the processes tell each
other. The points, in the order of a batch:

    before the offset log   a plan is made, and nobody knows
    after the offset log    the batch has begun
    in a task               a file of results is being written, or rows are handed over
    before the transaction
    in the transaction
    after the transaction   committed in the catalog, not in Spark's log
    after the commit log    the next plan is asked for

Two more are for jobs that have such rows, `IN_OTHER_TASKS`; and any step of the driver is a point
by its own name. At the point "a task fails" nobody is killed: at each step of `FAILS` a task fails
once, when its files are written and nobody knows of them, and Spark runs it again. At "tasks run
twice" the first attempt of every task that writes a file waits until a second one has written its
own, which then waits for the first to do the same; where Spark speculates there is a second one.
Each attempt leaves a file that says so.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

POINTS = (
    "before the offset log",
    "after the offset log",
    "in a task",
    "before the transaction",
    "in the transaction",
    "after the transaction",
    "after the commit log",
)

IN_OTHER_TASKS = {
    "in a task of late rows": "late rows: staged",
    "in a task of bad rows": "bad rows: staged",
}
"""Points in tasks that come when the results have been written, and their steps."""

FAILS = ("file: after upload", *IN_OTHER_TASKS.values())

SAME = {
    "gate: asked": "plan: before",
    "gate: planned": "plan: made",
    "gate batch: begun": "batch: begun",
    "gate batch: before commit": "batch: before commit",
    "gate batch: committed": "batch: committed",
}
"""The points of a gated query by the names that they have in slices."""


class Killer:
    """Listens to the steps of one process."""

    def __init__(self) -> None:
        self.point = os.environ["KILL_AT"]
        self.nth = int(os.environ.get("KILL_NTH", "1"))
        self.folder = Path(os.environ["KILL_FOLDER"])
        self.counts: dict[str, int] = {}

    def __call__(self, step: str) -> None:
        step = SAME.get(step, step)
        count = self.counts[step] = self.counts.get(step, 0) + 1
        is_driver = os.environ.get("KILL_DRIVER") == str(os.getpid())
        if is_driver and count == self.nth and step in ("batch: begun", "batch: before commit"):
            (self.folder / step.replace(" ", "")).touch()
        if is_driver and count == self.nth and step == "batch: committed":
            (self.folder / "committed").touch()
        if self.point == "a task fails":
            self._fail_once(step, is_driver)
        elif self.point == "tasks run twice":
            self._wait_for_a_second(step)
        elif self._is_it(step, count, is_driver):
            (self.folder / "killed").touch()
            os.killpg(int(os.environ["KILL_DRIVER"]), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    def _fail_once(self, step: str, is_driver: bool) -> None:
        from pyspark import TaskContext

        begun = (self.folder / "batch:begun").exists()
        # Behind the gate the process that plans writes files too, and is no task.
        context = None if is_driver else TaskContext.get()
        if begun and context is not None and context.attemptNumber() == 0 and step in FAILS:
            try:
                (self.folder / f"failed {step}").touch(exist_ok=False)
            except FileExistsError:
                return
            raise RuntimeError("this task fails once")

    def _wait_for_a_second(self, step: str) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            return
        task, attempt = f"{context.stageId()}-{context.partitionId()}", context.attemptNumber()
        if step == "file: before upload":
            (self.folder / f"began-{task}-{attempt}").touch()
            if attempt == 0:
                self._wait_for(f"wrote-{task}-1")
        elif step == "file: after upload":
            (self.folder / f"wrote-{task}-{attempt}").touch()
            if attempt == 1:
                self._wait_for(f"wrote-{task}-0")
        elif step in FAILS:
            (self.folder / f"{step.split()[0]}-{task}-{attempt}").touch()

    def _wait_for(self, name: str) -> None:
        patience = time.monotonic() + 120
        while not (self.folder / name).exists():
            assert time.monotonic() < patience, f"nobody {name}"
            time.sleep(0.05)

    def _is_it(self, step: str, count: int, is_driver: bool) -> bool:
        begun = (self.folder / "batch:begun").exists()
        committing = (self.folder / "batch:beforecommit").exists()
        if self.point == "before the offset log":
            return step == "plan: made" and count == self.nth
        if self.point == "in a task":
            return begun and not is_driver and step.startswith(("file: ", "task: "))
        if self.point in IN_OTHER_TASKS:
            return begun and not is_driver and step == IN_OTHER_TASKS[self.point]
        if self.point == "after the commit log":
            return step == "plan: before" and (self.folder / "committed").exists()
        if self.point == "in the transaction":
            return is_driver and committing and step == "catalog: before commit"
        if self.point == "after the transaction":
            return is_driver and committing and step == "catalog: after commit"
        wanted = {
            "after the offset log": "batch: begun",
            "before the transaction": "batch: before commit",
        }
        return step == wanted.get(self.point, self.point) and count == self.nth
