"""A store: whether its catalog opens, is of this version, and its data can be written and read.

Nothing is made and nothing is brought up to date by looking: an address at which there is no store
is a finding, not a new store. What is written to try is removed again.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

import pyarrow as pa
from sqlalchemy import Connection, false, update
from sqlalchemy.exc import SQLAlchemyError

from tidegate.cli.doctor.checks import Check, State
from tidegate.errors import TidegateError
from tidegate.store.catalog.database import Database
from tidegate.store.catalog.migrate import HEAD, version
from tidegate.store.catalog.schema import streams
from tidegate.store.files import DataFiles, shown

PATIENCE: Final = 5.0
"""Seconds for a database that does not answer."""
_WORDS: Final = b"tidegate doctor"


def check_store(address: str, data: str | None) -> list[Check]:
    """The checks of a store, as far as one can get."""
    if "://" not in address:
        folder = Path(address).resolve()
        catalog = folder / "catalog.db"
        if not catalog.is_file():
            told = f"there is no store in {folder}"
            return [Check("catalog", State.FAILED, told, _create(address))]
        url, where = f"sqlite:///{catalog}", data or str(folder / "data")
    elif data is None:
        told = f"{shown(address)} was given without the place of its data"
        return [Check("catalog", State.FAILED, told, "name it by --data")]
    else:
        url, where = address, data
    return [_catalog(url, address), _data(where)]


def _create(address: str) -> str:
    return f"look at the address, or create a stream: tidegate stream create {address} ..."


def _catalog(url: str, address: str) -> Check:
    try:
        database = Database(url, patience=PATIENCE)
    except (SQLAlchemyError, ImportError, ValueError) as failure:
        told = f"{shown(address)} cannot be opened: {_first_line(failure)}"
        advice = "for PostgreSQL: pip install 'tidegate[postgres]'; else look at the address"
        return Check("catalog", State.FAILED, told, advice)
    try:
        found = database.read(version)
        if found != HEAD:
            return _other_version(shown(address), found, address)
        database.write(_change_nothing)
        count = database.read(_streams)
    except (SQLAlchemyError, TidegateError, OSError) as failure:
        told = f"{shown(address)} does not work: {_first_line(failure)}"
        advice = "look at the address, at who may write there, and whether the server runs"
        return Check("catalog", State.FAILED, told, advice)
    finally:
        database.close()
    streams_there = "1 stream" if count == 1 else f"{count:,} streams"
    told = f"{shown(address)} opens, takes changes, is at version {HEAD}, has {streams_there}"
    return Check("catalog", State.OK, told)


def _other_version(where: str, found: str | None, address: str) -> Check:
    if found is None:
        told = f"{where} has no tables of a store"
        return Check("catalog", State.FAILED, told, _create(address))
    told = f"{where} is at version {found}, this Tidegate is at {HEAD}"
    # Versions are numbered, so that the larger is the newer one.
    if found > HEAD:
        return Check("catalog", State.FAILED, told, "install the Tidegate that the others use")
    advice = "the next command that opens the store brings it there: tidegate stream list"
    return Check("catalog", State.WARNING, told, advice)


def _change_nothing(on: Connection) -> None:
    """A change of no row still asks for the right to make one."""
    on.execute(update(streams).where(false()).values(name=streams.c.name))


def _streams(on: Connection) -> int:
    return len(on.execute(streams.select()).all())


def _data(where: str) -> Check:
    path = f"doctor-{uuid.uuid4().hex}"
    advice = "look at the address, its credentials, who may write there, and how much room there is"
    try:
        if "://" not in where and not Path(where).is_dir():
            told = f"the folder {where} is not there"
            return Check("data", State.FAILED, told, "bring it back, or name the place by --data")
        files = DataFiles(where)
        files.write(path, _WORDS)
        try:
            with files.open(path) as source:
                same = source.read() == _WORDS
        finally:
            files.delete(path)
    except (TidegateError, OSError, pa.ArrowException) as failure:
        told = f"{shown(where)} cannot be written and read: {_first_line(failure)}"
        return Check("data", State.FAILED, told, advice)
    if not same:
        told = f"{shown(where)} gives back other bytes than were written"
        return Check("data", State.FAILED, told, advice)
    return Check("data", State.OK, f"{shown(where)} was written, read and cleaned up")


def _first_line(failure: BaseException) -> str:
    """What happened, in one line; where there is a detail it is the one that tells."""
    text = (failure.detail or failure.primary) if isinstance(failure, TidegateError) else ""
    return (text or str(failure)).strip().partition("\n")[0].rstrip(".")
