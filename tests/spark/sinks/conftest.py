"""The small world of the tests of jobs."""

from tests.spark.jobs.conftest import world

__all__ = ["world"]
