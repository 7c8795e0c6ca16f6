"""Tidegate on Spark: exact event time for PySpark, classic and Connect.

It may import everything but the doors (`cli`). Start reading in `session.py`.
"""

from tidegate.spark.session import session

__all__ = ["session"]
