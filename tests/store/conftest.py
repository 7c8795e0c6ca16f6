"""A fresh store for every test, on SQLite and on a real PostgreSQL.

The PostgreSQL server is started once per run, from the wheel that carries one. Where it cannot be
had the tests are skipped with the reason shown, and in CI that is a failure.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url

from tidegate.store import Store
from tidegate.store.catalog.database import Database
from tidegate.store.catalog.migrate import migrate
from tidegate.testing import ManualClock

START = 1_800_000_000_000_000
"""Where the clock of a test stands: 2027-01-15T08:00:00Z."""


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


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite catalog with its tables, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "catalog.db"
    database = Database(f"sqlite:///{path}")
    migrate(database)
    database.close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a catalog that nobody has used yet; its tables are there."""
    if request.param == "sqlite":
        path = tmp_path / "catalog.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), path)
        yield f"sqlite:///{path}"
        return
    server: URL = request.getfixturevalue("postgres")
    name = f"t_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as on:
        on.execute(text(f"CREATE DATABASE {name} TEMPLATE migrated"))
    yield server.set(database=name).render_as_string(hide_password=False)
    with engine.connect() as on:
        on.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock(START)


@pytest.fixture
def open_store(
    catalog_url: str, tmp_path: Path, clock: ManualClock
) -> Iterator[Callable[..., Store]]:
    """Open the same store again and again, as other processes would."""
    opened: list[Store] = []

    def again(**settings: Any) -> Store:
        settings.setdefault("clock", clock.now)
        opened.append(Store.open(catalog_url, data=tmp_path / "data", **settings))
        return opened[-1]

    yield again
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    """An empty store."""
    return open_store()
