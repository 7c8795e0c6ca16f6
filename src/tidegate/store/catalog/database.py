"""The database behind the catalog: SQLite by default, PostgreSQL when several machines share it.

All work is a function of a connection, run in one transaction. `write` takes the write lock at once
(SQLite) or row locks as it goes (PostgreSQL); `read` sees one moment. Whatever the database asks to
be tried again is tried again, with growing pauses, until the patience runs out; so work must bear
being repeated, also when the answer to a commit was lost.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from tidegate import errors
from tidegate.store.steps import reached

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds for which a busy or absent database is tried again, by default."""

_RETRY_STATES: Final = {
    "40001",  # serialisation failure
    "40P01",  # deadlock
    "55P03",  # lock not available
    "57P01",  # the server is shutting down
    "57P02",
    "57P03",  # the server is starting up
}


class Database:
    """A connection pool with our rules for transactions. Thread safe."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        self.url: URL = make_url(url)
        if self.url.drivername in ("postgresql", "postgres"):
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.patience = patience
        # SQLite lets those who wait for its lock try again at random: of many threads some would
        # starve. Inside a process they queue, and only processes compete.
        self._turn: AbstractContextManager[Any] = RLock() if self.is_sqlite else nullcontext()
        self.engine: Engine = self._sqlite() if self.is_sqlite else self._postgresql()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in a transaction that may change things."""
        with self._turn:
            return self._patiently(lambda: self._once(work, writes=True))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run work on one consistent moment of the catalog."""
        return self._patiently(lambda: self._once(work, writes=False))

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    # ---- inside ----

    def _sqlite(self) -> Engine:
        engine = create_engine(
            self.url,
            # The driver must not begin transactions of its own: ours begin with the right lock.
            connect_args={"isolation_level": None, "timeout": 30, "check_same_thread": False},
            pool_size=8,
            max_overflow=64,
        )

        @event.listens_for(engine, "connect")
        def settle(connection: sqlite3.Connection, _: Any) -> None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA busy_timeout = 30000")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            writes = connection.get_execution_options().get("tidegate_writes", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _postgresql(self) -> Engine:
        return create_engine(self.url, pool_size=8, max_overflow=64, pool_pre_ping=True)

    def _once(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        options: dict[str, Any] = {"tidegate_writes": writes}
        if not self.is_sqlite:
            # Facts for a plan are one read; writers rely on the row locks they take.
            options["isolation_level"] = "READ COMMITTED" if writes else "REPEATABLE READ"
        with self.engine.connect() as connection:
            with connection.execution_options(**options).begin():
                result = work(connection)
                if writes:
                    reached("catalog: before commit")
            if writes:
                reached("catalog: after commit")
            return result

    def _patiently(self, attempt: Callable[[], T]) -> T:
        deadline = time.monotonic() + self.patience
        pause = 0.01
        while True:
            try:
                return attempt()
            except DBAPIError as failure:
                if not _may_retry(failure):
                    raise
                if time.monotonic() + pause > deadline:
                    raise errors.catalog_unavailable(
                        self.url.render_as_string(hide_password=True), str(failure.orig)
                    ) from failure
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, 1.0)


def _may_retry(failure: DBAPIError) -> bool:
    """Whether the database asks to be tried again, or could not be reached."""
    if failure.connection_invalidated:
        return True
    state = getattr(failure.orig, "sqlstate", None)
    if state in _RETRY_STATES:
        return True
    if isinstance(failure.orig, sqlite3.OperationalError):
        return "locked" in str(failure.orig) or "busy" in str(failure.orig)
    # A connection that cannot be made has no state.
    return isinstance(failure, OperationalError | InterfaceError) and state is None
