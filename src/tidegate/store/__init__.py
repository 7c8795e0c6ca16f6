"""The stream store: data in files, everything that must be atomic in a SQL catalog.

It may import the pure rooms, pyarrow and SQLAlchemy. Start reading in `store.py`; the rules that
keep rows from being lost or doubled stand in the heads of `writer.py` and `catalog/schema.py`.
"""

from tidegate.store.config import Retention, Scaling, StreamConfig
from tidegate.store.store import Store
from tidegate.store.transaction import Transaction
from tidegate.store.writer import Writer

__all__ = ["Store", "StreamConfig", "Scaling", "Retention", "Writer", "Transaction"]
