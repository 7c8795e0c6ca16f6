"""Tidegate: exact event time for Apache Spark."""
