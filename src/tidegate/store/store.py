"""The store: streams in a catalog and a data folder, opened by one address.

A folder is enough: it is created on first use, with a SQLite catalog and the data inside. Several
machines share a store by a PostgreSQL catalog and a data address all of them can reach.

    store = Store.open("shop")                                            # a folder
    store = Store.open("postgresql://db/shop", data="s3://bucket/shop")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.eventtime.watermark import Known
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.marks.segment import Bound, Segment
from tidegate.store.catalog import holds, streams, time_index
from tidegate.store.catalog.database import PATIENCE, Database
from tidegate.store.catalog.migrate import migrate
from tidegate.store.catalog.streams import SegmentRecord, StreamRecord
from tidegate.store.config import Retention, Scaling, StreamConfig, check_name
from tidegate.store.files import DataFiles
from tidegate.store.group import EXPIRY, Balance, ReaderGroup, Start
from tidegate.store.maintenance import Maintenance, maintain
from tidegate.store.mark_cycle import EmbeddedMarks
from tidegate.store.retention import Truncation, truncate
from tidegate.store.transaction import expire
from tidegate.store.uploads import FAR, NEAR, Uploads
from tidegate.store.writer import Writer


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
        self.uploads = Uploads(NEAR if files.is_local else FAR)
        self.clock = clock
        self.registry = registry or EventTimeRegistry()
        self.on_note: list[Callable[[str], None]] = []
        """Called with the stream's name after every note."""
        self._marks: EmbeddedMarks | None = None

    @staticmethod
    def open(
        address: str | Path,
        *,
        data: str | Path | None = None,
        clock: Callable[[], Instant] = wall_clock,
        registry: EventTimeRegistry | None = None,
        patience: timedelta = timedelta(seconds=PATIENCE),
        embedded_marks: bool = True,
    ) -> Store:
        """Open a store by a folder, or by a catalog URL and a data address.

        The catalog is brought to the current version of its tables. With `embedded_marks` those who
        note time or plan through this store run the mark cycles that are due, where no controller
        does.
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
        store = Store(database, DataFiles(where), clock=clock, registry=registry)
        if embedded_marks:
            store._marks = EmbeddedMarks(store)
            store.on_note.append(store._marks.noted)
        return store

    def see_to_marks(self, name: str) -> None:
        """Run the mark cycle of a stream if it is of use, nobody else does, and it is ours to run.

        For whoever is about to plan.
        """
        if self._marks is not None:
            self._marks.planned(name)

    def noted(self, name: str) -> None:
        """Tell whoever waits for notes that a stream has got one."""
        for hook in list(self.on_note):
            hook(name)

    @property
    def addresses(self) -> tuple[str, str]:
        """Of the catalog and of the data, as any process on this machine can open them.

        With them go whatever secrets they have. A folder may have been given as seen from here.
        """
        catalog = self.database.url.render_as_string(hide_password=False)
        return catalog, self.files.root if self.files.is_local else self.files.address

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

    # ---- readers ----

    def reader_group(
        self,
        name: str,
        streams: Sequence[str],
        *,
        start: Start = "earliest",
        balance: Balance = "rows",
        expiry: timedelta = EXPIRY,
    ) -> ReaderGroup:
        """Open a reader group, or make it; one that exists goes on where it is.

        A new one begins at the first readable row, at the end, or at cuts by stream. Segments are
        given away by rows behind or by time behind.
        """
        return ReaderGroup(self, name, streams, start=start, balance=balance, expiry=expiry)

    # ---- segments ----

    def scale(
        self, name: str, sealed: Sequence[str], opened: Sequence[tuple[Bound, Bound]]
    ) -> Lineage:
        """Seal segments and open others over the same keys."""
        return self.database.write(
            lambda on: streams.scale(on, streams.get(on, name), sealed, opened, self.clock())
        )

    def split(self, name: str, segment: str, parts: int = 2) -> Lineage:
        """Split an open segment into equal parts."""
        found = self._segment(name, segment)
        if parts < 2:
            raise errors.wrong_setting("parts", parts, ["2 or more"])
        width = (found.high - found.low) / parts
        bounds = [found.low + n * width for n in range(parts)] + [found.high]
        return self.scale(name, [segment], list(pairwise(bounds)))

    def merge(self, name: str, first: str, second: str) -> Lineage:
        """Merge two open segments whose keys meet; if they do not, it is an error."""
        both = [self._segment(name, segment) for segment in (first, second)]
        pair = sorted(both, key=lambda segment: segment.low)
        return self.scale(name, [first, second], [(pair[0].low, pair[1].high)])

    def _segment(self, name: str, segment: str) -> Segment:
        lineage = self.database.read(lambda on: streams.lineage(on, streams.get(on, name).id))
        return lineage.segment(segment)

    # ---- time and keeping ----

    def cut_at(self, name: str, time: Instant) -> Cut:
        """The cut that has every row at or after a time behind it."""
        return self.database.read(lambda on: time_index.cut_at(on, name, time))

    def time_at(self, name: str, cut: Mapping[str, int]) -> Known:
        """The number of the last mark that a cut has passed."""
        return self.database.read(lambda on: time_index.time_at(on, name, cut))

    def truncate(
        self,
        name: str,
        *,
        before: Mapping[str, int] | None = None,
        time: Instant | None = None,
        age: timedelta | None = None,
        size: int | None = None,
    ) -> Truncation:
        """Give up rows before a cut or a time, or what exceeds an age or a size.

        Never more than running jobs can spare.
        """
        return truncate(self, name, before=before, time=time, age=age, size=size)

    def hold(self, name: str, holder: str, cut: Mapping[str, int]) -> None:
        """Keep what lies behind a cut from being truncated; renew it at least once a day."""
        self.database.write(
            lambda on: holds.hold(on, streams.get(on, name), holder, cut, self.clock())
        )

    def release(self, name: str, holder: str) -> bool:
        """Hold nothing any more; return whether anything was held."""
        return self.database.write(lambda on: holds.release(on, streams.get(on, name), holder))

    def maintain(self, name: str | None = None) -> Maintenance:
        """Truncate, compact and sweep what is due, of one stream or of all."""
        return maintain(self, name)

    # ---- writing ----

    def writer(self, stream: str, writer_id: str | None = None, **settings: Any) -> Writer:
        """Open a writer; one with the same id that is open somewhere is fenced.

        Settings are those of `Writer`: `notes_time`, `sink`, `flush_rows`, `flush_bytes`,
        `flush_age`, `bad_rows`. Without an id it cannot note time.
        """
        return Writer(self, stream, writer_id, **settings)

    def expire_transactions(self) -> int:
        """Abort every transaction whose time is over; return how many there were."""
        return expire(self)


def _as_declared(found: StreamRecord, config: StreamConfig, exist_ok: bool) -> StreamRecord:
    same = replace(found.config, segments=config.segments) == config
    if exist_ok and same:
        return found
    raise errors.stream_exists(found.name, same)
