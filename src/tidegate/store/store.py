"""The store: streams in a catalog and a data folder, opened by one address.

A folder is enough: it is created on first use, with a SQLite catalog and the data inside. Several
machines share a store by a PostgreSQL catalog and a data address all of them can reach.

    store = Store.open("shop")                                            # a folder
    store = Store.open("postgresql://db/shop", data="s3://bucket/shop")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.marks.lineage import Lineage
from tidegate.marks.segment import Bound
from tidegate.store.catalog import streams
from tidegate.store.catalog.database import PATIENCE, Database
from tidegate.store.catalog.migrate import migrate
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord
from tidegate.store.config import Retention, Scaling, StreamConfig, check_name
from tidegate.store.files import DataFiles


def wall_clock() -> Instant:
    """The current instant."""
    return time.time_ns() // 1000


class Store:
    """Streams, by name. Thread safe; `close` gives the catalog's connections back."""

    def __init__(
        self,
        database: Database,
        files: DataFiles,
        *,
        clock: Callable[[], Instant] = wall_clock,
        registry: EventTimeRegistry | None = None,
    ) -> None:
        self.database = database
        self.files = files
        self.clock = clock
        self.registry = registry or EventTimeRegistry()

    @staticmethod
    def open(
        address: str | Path,
        *,
        data: str | Path | None = None,
        clock: Callable[[], Instant] = wall_clock,
        registry: EventTimeRegistry | None = None,
        patience: timedelta = timedelta(seconds=PATIENCE),
    ) -> Store:
        """Open a store by a folder, or by a catalog URL and a data address.

        The catalog is brought to the current version of its tables.
        """
        text = str(address)
        if "://" in text:
            if data is None:
                raise errors.data_address_missing(text)
            url, where = text, str(data)
        else:
            folder = Path(address).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            url, where = f"sqlite:///{folder / 'catalog.db'}", str(data or folder / "data")
        database = Database(url, patience=patience.total_seconds())
        migrate(database)
        return Store(database, DataFiles(where), clock=clock, registry=registry)

    def close(self) -> None:
        """Give all connections back."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- streams ----

    def create_stream(
        self, name: str, schema: pa.Schema, *, exist_ok: bool = False, **settings: Any
    ) -> StreamRecord:
        """Create a stream; one that exists is an error, unless `exist_ok` and it is declared so.

        Settings are the fields of `StreamConfig`.
        """
        config = StreamConfig(schema, **settings)
        config.validate(name, self.registry)

        def work(on: Any) -> StreamRecord:
            found = streams.find(on, name)
            if found is not None:
                return _as_declared(found, config, exist_ok)
            return streams.create(on, name, config, self.clock())

        try:
            return self.database.write(work)
        except IntegrityError:
            # Somebody else created it between our look and our insert.
            return _as_declared(self.describe(name), config, exist_ok)

    def describe(self, name: str) -> StreamRecord:
        """A stream's declaration."""
        return self.database.read(lambda on: streams.get(on, name))

    def list_streams(self) -> list[str]:
        """The names of all streams, in order."""
        return self.database.read(streams.names)

    def segments(self, name: str) -> list[SegmentRecord]:
        """All segments of a stream, the sealed ones too."""
        return self.database.read(lambda on: streams.segment_records(on, streams.get(on, name).id))

    def alter_stream(
        self,
        name: str,
        *,
        add_columns: Sequence[pa.Field] = (),
        scaling: Scaling | None = None,
        retention: Retention | None = None,
        mark_timeout: timedelta | None = None,
    ) -> StreamRecord:
        """Add nullable columns, or change how a stream is scaled and kept."""

        def work(on: Any) -> StreamRecord:
            found = streams.get(on, name)
            schema = found.config.schema
            for column in add_columns:
                if not column.nullable:
                    raise errors.column_not_nullable(name, column.name)
                schema = schema.append(column)
            config = replace(
                found.config,
                schema=schema,
                scaling=scaling or found.config.scaling,
                retention=retention or found.config.retention,
                mark_timeout=mark_timeout or found.config.mark_timeout,
            )
            config.validate(name, self.registry)
            streams.change(on, found, config)
            return streams.get(on, name)

        return self.database.write(work)

    def delete_stream(self, name: str) -> None:
        """Delete a stream; its files are removed by the next sweep."""
        check_name(name)
        self.database.write(lambda on: streams.remove(on, streams.get(on, name)))

    # ---- segments ----

    def scale(
        self, name: str, sealed: Sequence[str], opened: Sequence[tuple[Bound, Bound]]
    ) -> Lineage:
        """Seal segments and open others over the same keys."""
        return self.database.write(
            lambda on: streams.scale(on, streams.get(on, name), sealed, opened, self.clock())
        )


def _as_declared(found: StreamRecord, config: StreamConfig, exist_ok: bool) -> StreamRecord:
    same = replace(found.config, segments=config.segments) == config
    if exist_ok and same:
        return found
    raise errors.stream_exists(found.name, same)
