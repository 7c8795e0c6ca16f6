"""A real PostgreSQL for whoever wants one.

The server is started once per run, from the wheel that carries one. Where it cannot be had the
tests are skipped with the reason shown, and in CI that is a failure.
"""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url

from tidegate.store.catalog.database import Database
from tidegate.store.catalog.migrate import migrate


def start_postgres() -> Any:
    """A PostgreSQL server of its own, or the reason why there is none.

    Its folder is not below pytest's: the server runs as another user, and a second run of pytest
    that begins at the same time closes those folders to others.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pgserver import get_server  # type: ignore[attr-defined]

            return get_server(tempfile.mkdtemp(prefix="tidegate-postgres-"), cleanup_mode="delete")
    except Exception as failure:
        reason = f"no PostgreSQL server: {failure!r}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres() -> Iterator[URL]:
    """The address of a running PostgreSQL."""
    server = start_postgres()
    url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as on:
        # A test's server need not survive a power cut; our own promises are about processes.
        on.execute(text("ALTER SYSTEM SET fsync = off"))
        on.execute(text("SELECT pg_reload_conf()"))
        on.execute(text("CREATE DATABASE migrated"))
    engine.dispose()
    database = Database(url.set(database="migrated").render_as_string(hide_password=False))
    migrate(database)
    database.close()
    yield url
    server.cleanup()


@contextmanager
def fresh_catalog(server: URL) -> Iterator[str]:
    """The address of a catalog that nobody has used yet; its tables are there."""
    name = f"t_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as on:
        on.execute(text(f"CREATE DATABASE {name} TEMPLATE migrated"))
    yield server.set(database=name).render_as_string(hide_password=False)
    with engine.connect() as on:
        on.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()
