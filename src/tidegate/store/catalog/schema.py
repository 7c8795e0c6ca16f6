"""The tables of the catalog: everything that must be atomic.

Data lies in files; what is here says which rows of which files are visible, under which offsets,
and what writers, controllers, readers and jobs have agreed on. Instants are integer microseconds,
cuts and other small values JSON. The same tables stand on SQLite and on PostgreSQL.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite counts rows only in a column that is exactly INTEGER.
_ROW_ID: Final = BigInteger().with_variant(Integer(), "sqlite")


def _of_stream() -> Column[int]:
    return Column(
        "stream_id", Integer, ForeignKey("streams.id", ondelete="CASCADE"), primary_key=True
    )


streams: Final = Table(
    "streams",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(255), nullable=False, unique=True),
    Column("arrow_schema", Text, nullable=False, doc="Arrow IPC, base64"),
    Column("event_column", String(255), nullable=True, doc="none: the time is the arrival"),
    Column("event_type", String(255), nullable=True),
    Column("routing_key", Text, nullable=False, doc="JSON list of columns; empty: any segment"),
    Column("scaling", Text, nullable=False, doc="JSON"),
    Column("retention", Text, nullable=False, doc="JSON"),
    Column("mark_timeout", BigInteger, nullable=False),
    Column("max_future", BigInteger, nullable=True, doc="none: never"),
    Column("epoch", Integer, nullable=False, default=0),
    Column("revision", BigInteger, nullable=False, default=0, doc="changes of shape, counted"),
    Column("created_at", BigInteger, nullable=False),
    Column("bucket", Integer, nullable=False, index=True),
    Column("scheduled", Boolean, nullable=False, default=False, doc="in the mark schedule"),
    Column("generation", Text, nullable=False, default="", doc="the mark cycle's state, JSON"),
    Column("cycled_at", BigInteger, nullable=False, default=0, doc="the last mark cycle"),
)

segments: Final = Table(
    "segments",
    metadata,
    _of_stream(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False),
    Column("low", String(64), nullable=False, doc="exact fraction"),
    Column("high", String(64), nullable=False),
    Column("sealed_in", Integer, nullable=True),
    Column("start_offset", BigInteger, nullable=False, default=0, doc="the first readable one"),
    Column("next_offset", BigInteger, nullable=False, default=0),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("min_time", BigInteger, nullable=True),
    Column("max_time", BigInteger, nullable=True, doc="the running maximum"),
    Column("disorder", BigInteger, nullable=False, default=0),
    Column("truncated_time", BigInteger, nullable=True, doc="the largest time truncated away"),
    Column("created_at", BigInteger, nullable=False),
    Column("last_commit_at", BigInteger, nullable=False),
)

chunks: Final = Table(
    "chunks",
    metadata,
    Column("id", _ROW_ID, primary_key=True, autoincrement=True),
    Column("stream_id", Integer, ForeignKey("streams.id", ondelete="CASCADE"), nullable=False),
    Column("segment", Integer, nullable=False),
    Column("start_offset", BigInteger, nullable=False),
    Column("end_offset", BigInteger, nullable=False),
    Column("skip", BigInteger, nullable=False, default=0, doc="first rows of the file not in it"),
    Column("bytes", BigInteger, nullable=False),
    Column("min_time", BigInteger, nullable=True),
    Column("max_time", BigInteger, nullable=True),
    Column("running_max", BigInteger, nullable=True, doc="of the segment, up to and with this one"),
    Column("disorder", BigInteger, nullable=False),
    Column("width_class", SmallInteger, nullable=False, doc="bits of max_time - min_time"),
    Column("path", String(512), nullable=False),
    Column("committed_at", BigInteger, nullable=False),
    UniqueConstraint("stream_id", "segment", "start_offset"),
    # Chunks of one width class begin at most 2^class before any time they hold, so a question about
    # [a, b) is one short range of min_time per class.
    Index("ix_chunks_interval", "stream_id", "width_class", "min_time"),
    # The first chunk that reaches a time, also where the running maximum stands still for long.
    Index("ix_chunks_reach", "stream_id", "segment", "running_max", "start_offset"),
    # What lies behind an offset, the chunk around it included, is one range.
    Index("ix_chunks_end", "stream_id", "segment", "end_offset"),
)

commit_runs: Final = Table(
    "commit_runs",
    metadata,
    _of_stream(),
    Column("segment", Integer, primary_key=True, autoincrement=False),
    Column("start_offset", BigInteger, primary_key=True, autoincrement=False),
    Column("committed_at", BigInteger, nullable=False),
)

writers: Final = Table(
    "writers",
    metadata,
    _of_stream(),
    Column("name", String(255), primary_key=True),
    Column("token", BigInteger, nullable=False, doc="raised by every open: the fence"),
    Column("sequence", BigInteger, nullable=False, default=0, doc="rows that are durable"),
    Column("notes_time", Boolean, nullable=False, default=False),
    Column("is_sink", Boolean, nullable=False, default=False),
    Column("notes", Text, nullable=False, default="", doc="its WriterNotes, JSON; empty: none"),
    Column(
        "version", BigInteger, nullable=False, default=0, doc="for compare-and-set of the notes"
    ),
    Column("opened_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
)

writer_batches: Final = Table(
    "writer_batches",
    metadata,
    _of_stream(),
    Column("writer", String(255), primary_key=True),
    Column("query", String(64), nullable=False, doc="Spark's name for the history of batches"),
    Column("batch", BigInteger, nullable=False, doc="the last one that was committed"),
    Column("committed_at", BigInteger, nullable=False),
)

transactions: Final = Table(
    "transactions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column(
        "stream_id",
        Integer,
        ForeignKey("streams.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("writer", String(255), nullable=True),
    Column("token", BigInteger, nullable=True),
    Column("status", String(16), nullable=False),
    Column("begun_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=True),
    Column("result", Text, nullable=False, default="", doc="what the commit answered, JSON"),
)

transaction_chunks: Final = Table(
    "transaction_chunks",
    metadata,
    Column("id", _ROW_ID, primary_key=True, autoincrement=True),
    Column(
        "transaction_id",
        String(64),
        ForeignKey("transactions.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("segment", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("min_time", BigInteger, nullable=True),
    Column("max_time", BigInteger, nullable=True),
    Column("disorder", BigInteger, nullable=False),
    Column("path", String(512), nullable=False),
)

marks: Final = Table(
    "marks",
    metadata,
    _of_stream(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("lower", BigInteger, nullable=False),
    Column("upper", BigInteger, nullable=False),
    Column("cut", Text, nullable=False),
    Column("writers", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)

controllers: Final = Table(
    "controllers",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("expires_at", BigInteger, nullable=False),
)

leases: Final = Table(
    "leases",
    metadata,
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("owner", String(255), nullable=True),
    Column("token", BigInteger, nullable=False, default=0),
    Column("expires_at", BigInteger, nullable=False, default=0),
)

reader_groups: Final = Table(
    "reader_groups",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False, default=0),
)

readers: Final = Table(
    "readers",
    metadata,
    Column(
        "group_name",
        String(255),
        ForeignKey("reader_groups.name", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("name", String(255), primary_key=True),
    Column("token", BigInteger, nullable=False, default=0),
    Column("expires_at", BigInteger, nullable=False),
)

reader_positions: Final = Table(
    "reader_positions",
    metadata,
    Column(
        "group_name",
        String(255),
        ForeignKey("reader_groups.name", ondelete="CASCADE"),
        primary_key=True,
    ),
    _of_stream(),
    Column("segment", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=True, doc="the largest event time read"),
    Column("reader", String(255), nullable=True),
)

holds: Final = Table(
    "holds",
    metadata,
    _of_stream(),
    Column("holder", String(255), primary_key=True),
    Column("cut", Text, nullable=False, doc="nothing behind it may be truncated"),
    Column("updated_at", BigInteger, nullable=False),
)

intents: Final = Table(
    "intents",
    metadata,
    Column("path", String(512), primary_key=True),
    Column("announced_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

replaced: Final = Table(
    "replaced",
    metadata,
    Column("path", String(512), primary_key=True),
    Column("replaced_at", BigInteger, nullable=False),
)

progress: Final = Table(
    "progress",
    metadata,
    Column("job", String(255), primary_key=True),
    Column("node", String(255), primary_key=True),
    Column("frontier", BigInteger, nullable=True),
    Column("detail", Text, nullable=False, default=""),
    Column("updated_at", BigInteger, nullable=False),
)

queries: Final = Table(
    "queries",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("lineage", String(64), nullable=False, doc="which history of batches this is"),
    Column("batch", BigInteger, nullable=False, doc="the last one that was committed"),
    Column("plan", String(64), nullable=False, doc="the fingerprint of that batch's plan"),
    Column("released", BigInteger, nullable=True, doc="A after it: all before is given out"),
    Column("finished", Boolean, nullable=False, default=False),
    Column("totals", Text, nullable=False, default="", doc="what was counted so far, JSON"),
    Column("updated_at", BigInteger, nullable=False),
)
