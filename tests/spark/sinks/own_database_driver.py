"""Runs the example with a database of its own, so that `tests.restart.kills` can kill it.

python -m tests.spark.sinks.own_database_driver folder
"""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate.store.steps import reached

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "own_database.py"
OWN = (
    "own database: inserted",  # the rows are in its transaction, which is not committed yet
    "batch: before settle",  # its transaction is committed, and the job knows nothing of it
    "batch: written",
    "batch: committed",
)
"""Points of this example beside those of every job."""


def example() -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("own_database", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def main(folder: str) -> None:
    """Run the example, and tell when its rows are inserted."""
    os.environ["KILL_DRIVER"] = str(os.getpid())
    own: Any = example()
    insert = own.insert

    def inserting(database: sqlite3.Connection, rows: Iterable[dict[str, Any]]) -> None:
        insert(database, rows)
        reached(OWN[0])

    own.insert = inserting
    own.main(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
