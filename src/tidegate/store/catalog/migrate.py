"""Bring a catalog to the current version of its tables, whoever comes first.

Opening a store is cheap when nothing is to be done: one small query. Otherwise Alembic runs the
missing steps in one transaction, under a lock, so that of several processes that open a new store
at once one makes the tables and the others find them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from tidegate import errors
from tidegate.store.catalog.database import Database

HEAD: Final = "0003"
"""The newest version; a test compares it with the scripts."""

_FOLDER: Final = Path(__file__).parent / "migrations"
_LOCK: Final = 0x71DE6A7E


def migrate(database: Database) -> None:
    """Make or upgrade the tables, if they are not current."""
    if database.read(version) != HEAD:
        database.write(_upgrade)


def version(on: Connection) -> str | None:
    """The version of the tables; none where there are no tables."""
    if not inspect(on).has_table("alembic_version"):
        return None
    found: str | None = on.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def _upgrade(on: Connection) -> None:
    # Here and not above: loading Alembic takes longer than everything else an open does.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    if on.dialect.name == "postgresql":
        on.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.attributes["connection"] = on
    found = version(on)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise errors.catalog_too_new(found, HEAD)
    command.upgrade(config, "head")
