"""Kills a whole driver at a named point of a batch, from whichever of its processes comes there.

A driver is a Python process, a JVM, the process that plans and those that run tasks. `KILL_AT` is
the point, `KILL_NTH` at which batch of this life; `KILL_FOLDER` holds what the processes tell each
other. The points, in the order of a batch:

    before the offset log   a plan is made, and nobody knows
    after the offset log    the batch has begun
    in a task               a file of results is being written
    before the transaction
    in the transaction
    after the transaction   committed in the catalog, not in Spark's log
    after the commit log    the next plan is asked for

At the point "a task fails" nobody is killed: a task fails once, and Spark runs it again.
"""

from __future__ import annotations

import os
import signal
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


class Killer:
    """Listens to the steps of one process."""

    def __init__(self) -> None:
        self.point = os.environ["KILL_AT"]
        self.nth = int(os.environ.get("KILL_NTH", "1"))
        self.folder = Path(os.environ["KILL_FOLDER"])
        self.counts: dict[str, int] = {}

    def __call__(self, step: str) -> None:
        count = self.counts[step] = self.counts.get(step, 0) + 1
        is_driver = os.environ.get("KILL_DRIVER") == str(os.getpid())
        if is_driver and count == self.nth and step in ("batch: begun", "batch: before commit"):
            (self.folder / step.replace(" ", "")).touch()
        if is_driver and count == self.nth and step == "batch: committed":
            (self.folder / "committed").touch()
        if self.point == "a task fails":
            self._fail_once(step, is_driver)
        elif self._is_it(step, count, is_driver):
            (self.folder / "killed").touch()
            os.killpg(int(os.environ["KILL_DRIVER"]), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    def _fail_once(self, step: str, is_driver: bool) -> None:
        begun = (self.folder / "batch:begun").exists()
        if begun and not is_driver and step == "file: after upload":
            try:
                (self.folder / "failed").touch(exist_ok=False)
            except FileExistsError:
                return
            raise RuntimeError("this task fails once")

    def _is_it(self, step: str, count: int, is_driver: bool) -> bool:
        begun = (self.folder / "batch:begun").exists()
        committing = (self.folder / "batch:beforecommit").exists()
        if self.point == "before the offset log":
            return step == "plan: made" and count == self.nth
        if self.point == "in a task":
            return begun and not is_driver and step.startswith("file: ")
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
        return step == wanted.get(self.point) and count == self.nth
