"""A fresh store for every test, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import fresh_catalog

from tidegate.store import Store
from tidegate.store.catalog.database import Database
from tidegate.store.catalog.migrate import migrate
from tidegate.testing import ManualClock

START = 1_800_000_000_000_000
"""Where the clock of a test stands: 2027-01-15T08:00:00Z."""


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
    with fresh_catalog(request.getfixturevalue("postgres")) as address:
        yield address


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
