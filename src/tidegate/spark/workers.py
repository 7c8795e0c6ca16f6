"""Python workers: the processes that run tasks, kept by Spark from one task to the next.

Between two tasks Spark has a worker look for garbage, among everything that it has imported: with
Arrow, SQL and the store that takes a tenth of a second and more, in which the next task waits and a
core is busy with nothing. What is imported is no garbage. So at the end of its first task a worker
looks once and sets aside what is left; from then on only what came later is looked at.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar

from pyspark import TaskContext

T = TypeVar("T")


def in_worker(made: Iterator[T]) -> Iterator[T]:
    """What a task makes, unchanged."""
    yield from made
    if TaskContext.get() is not None:
        _set_aside(os.getpid())


@lru_cache(maxsize=1)
def _set_aside(process: int) -> None:
    """Once per process: a forked one does it for itself."""
    gc.collect()
    gc.freeze()
