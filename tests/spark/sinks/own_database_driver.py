"""Runs the example with a database of its own; its whole process group dies at a named step.

python -m tests.spark.sinks.own_database_driver folder "batch: written" 2
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate.store.steps import listening, reached

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "own_database.py"
INSERTED = "own database: inserted"
"""The rows are in the example's transaction, which is not committed yet."""

STEPS = (
    "batch: begun",
    INSERTED,
    "batch: before settle",
    "batch: written",
    "batch: before commit",
    "catalog: before commit",
    "catalog: after commit",
    "batch: committed",
)


def example() -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("own_database", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def main(folder: str, kill_at: str, count: int) -> None:
    """Run the example, and die when a step is reached for the n-th time in its batches."""
    own: Any = example()
    insert, passed = own.insert, 0
    begun = False

    def inserting(database: sqlite3.Connection, rows: Iterable[dict[str, Any]]) -> None:
        insert(database, rows)
        reached(INSERTED)

    def step(name: str) -> None:
        nonlocal begun, passed
        begun = begun or name == STEPS[0]
        passed += begun and name == kill_at
        if passed == count:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    own.insert = inserting
    with listening(step):
        own.main(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
