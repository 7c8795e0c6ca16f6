"""The duckdb kernel as it stands in a task: its cores are Spark's to share out."""

from __future__ import annotations

import os

from tidegate.spark.duckdb_kernel import _connection


def test_a_task_has_one_thread_for_computing_and_none_for_fetching() -> None:
    found = _connection(os.getpid()).sql(
        "SELECT name, value FROM duckdb_settings() WHERE name IN ('threads', 'async_threads')"
    )
    assert dict(found.fetchall()) == {"threads": "1", "async_threads": "0"}
