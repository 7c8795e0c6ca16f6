"""A real PostgreSQL for whoever wants one.

The server is started once per run, from the wheel that carries one. Where it cannot be had the
tests are skipped with the reason shown, and in CI that is a failure.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
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

            folder = tempfile.mkdtemp(prefix="tidegate-postgres-")
            try:
                return get_server(folder, cleanup_mode="delete")
            except Exception as failure:
                if not _too_slow(failure):
                    raise
            server = get_server(folder, cleanup_mode="delete")  # the same: it is known by now
            ensure_running(server)
            # What it would have done last; its cleanup goes by it.
            server.global_process_id_list.get_and_add(os.getpid())
            return server
    except Exception as failure:
        reason = f"no PostgreSQL server: {failure!r}"
        if os.environ.get("CI") or _too_slow(failure):
            pytest.fail(reason)
        pytest.skip(reason)


def ensure_running(server: Any, patience: float = 60) -> None:
    """Have a server run that is there, on a busy machine too; to be too slow is a failure."""
    began = time.monotonic()
    while True:
        try:
            server.ensure_postgres_running()
            return
        except Exception as failure:
            # A call that failed was one too many: the server that was given up on is in its way.
            if not _too_slow(failure) and not isinstance(failure, subprocess.CalledProcessError):
                raise
            if time.monotonic() - began > patience:
                pytest.fail(f"PostgreSQL did not come up within {patience:.0f} s: {failure!r}")
            time.sleep(0.5)


def _too_slow(failure: BaseException) -> bool:
    """Whether a server is only not up yet.

    After ten seconds the wheel gives up on `pg_ctl`, while the server goes on starting, and looks
    for its log, which may not be there. Who looks at the server meanwhile finds half a file of its
    state, which is an assertion there.
    """
    slow = (subprocess.TimeoutExpired, AssertionError)
    return isinstance(failure, slow) or isinstance(failure.__context__, slow)


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
