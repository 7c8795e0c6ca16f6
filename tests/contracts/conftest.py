"""The contract of sinks needs Spark; the session is that of the other tests."""

from tests.spark.conftest import spark

__all__ = ["spark"]
