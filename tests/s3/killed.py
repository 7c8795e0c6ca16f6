"""A writer that is killed at a step of its upload."""

from __future__ import annotations

import os
import signal

from tests.store.rows import table

from tidegate.store import Store
from tidegate.store.steps import listening


def append_and_die(catalog: str, data: str, now: int, step: str) -> None:
    """Append the rows from 10 to 19, and be killed when the flush reaches a step."""

    def kill(reached: str) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with Store.open(catalog, data=data, clock=lambda: now) as store:
        writer = store.writer("orders", "shop", flush_age=None)
        writer.append(table(range(10, 20)), first_row=10)
        with listening(kill):
            writer.flush()
