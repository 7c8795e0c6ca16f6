"""The migrations make the tables that the code speaks of."""

from __future__ import annotations

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from tidegate.store import Store
from tidegate.store.catalog import migrate
from tidegate.store.catalog.schema import metadata
from tidegate.store.steps import listening


def test_the_newest_version_is_that_of_the_scripts() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [migrate.HEAD]


def test_the_tables_are_those_of_the_schema(store: Store) -> None:
    def differences(on: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(on), metadata))

    assert store.database.read(differences) == []


def test_a_store_that_is_current_is_opened_without_a_write(store: Store) -> None:
    steps: list[str] = []
    with listening(steps.append):
        migrate.migrate(store.database)
    assert steps == []
    question = text("SELECT version_num FROM alembic_version")
    assert store.database.read(lambda on: on.execute(question).scalar()) == migrate.HEAD
