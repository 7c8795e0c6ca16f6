"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "controllers",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_controllers")),
    )
    op.create_table(
        "intents",
        sa.Column("path", sa.String(length=512), nullable=False),
        sa.Column("announced_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_intents")),
    )
    op.create_table(
        "leases",
        sa.Column("bucket", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("bucket", name=op.f("pk_leases")),
    )
    op.create_table(
        "progress",
        sa.Column("job", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("frontier", sa.BigInteger(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job", "node", name=op.f("pk_progress")),
    )
    op.create_table(
        "reader_groups",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_reader_groups")),
    )
    op.create_table(
        "replaced",
        sa.Column("path", sa.String(length=512), nullable=False),
        sa.Column("replaced_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_replaced")),
    )
    op.create_table(
        "streams",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("arrow_schema", sa.Text(), nullable=False),
        sa.Column("event_column", sa.String(length=255), nullable=True),
        sa.Column("event_type", sa.String(length=255), nullable=True),
        sa.Column("routing_key", sa.Text(), nullable=False),
        sa.Column("scaling", sa.Text(), nullable=False),
        sa.Column("retention", sa.Text(), nullable=False),
        sa.Column("mark_timeout", sa.BigInteger(), nullable=False),
        sa.Column("max_future", sa.BigInteger(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("scheduled", sa.Boolean(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.Column("cycled_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_streams")),
        sa.UniqueConstraint("name", name=op.f("uq_streams_name")),
    )
    op.create_index(op.f("ix_streams_bucket"), "streams", ["bucket"], unique=False)
    op.create_table(
        "chunks",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("start_offset", sa.BigInteger(), nullable=False),
        sa.Column("end_offset", sa.BigInteger(), nullable=False),
        sa.Column("skip", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("min_time", sa.BigInteger(), nullable=True),
        sa.Column("max_time", sa.BigInteger(), nullable=True),
        sa.Column("running_max", sa.BigInteger(), nullable=True),
        sa.Column("disorder", sa.BigInteger(), nullable=False),
        sa.Column("width_class", sa.SmallInteger(), nullable=False),
        sa.Column("path", sa.String(length=512), nullable=False),
        sa.Column("committed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_chunks_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
        sa.UniqueConstraint(
            "stream_id",
            "segment",
            "start_offset",
            name=op.f("uq_chunks_stream_id_segment_start_offset"),
        ),
    )
    op.create_index("ix_chunks_end", "chunks", ["stream_id", "segment", "end_offset"], unique=False)
    op.create_index(
        "ix_chunks_interval", "chunks", ["stream_id", "width_class", "min_time"], unique=False
    )
    op.create_index(
        "ix_chunks_reach",
        "chunks",
        ["stream_id", "segment", "running_max", "start_offset"],
        unique=False,
    )
    op.create_table(
        "commit_runs",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("segment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_offset", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("committed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_commit_runs_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(
            "stream_id", "segment", "start_offset", name=op.f("pk_commit_runs")
        ),
    )
    op.create_table(
        "holds",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(length=255), nullable=False),
        sa.Column("cut", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_holds_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("stream_id", "holder", name=op.f("pk_holds")),
    )
    op.create_table(
        "marks",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("lower", sa.BigInteger(), nullable=False),
        sa.Column("upper", sa.BigInteger(), nullable=False),
        sa.Column("cut", sa.Text(), nullable=False),
        sa.Column("writers", sa.Text(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_marks_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", name=op.f("pk_marks")),
    )
    op.create_table(
        "reader_positions",
        sa.Column("group_name", sa.String(length=255), nullable=False),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("segment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.Column("reader", sa.String(length=255), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_name"],
            ["reader_groups.name"],
            name=op.f("fk_reader_positions_group_name"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["stream_id"],
            ["streams.id"],
            name=op.f("fk_reader_positions_stream_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "group_name", "stream_id", "segment", name=op.f("pk_reader_positions")
        ),
    )
    op.create_table(
        "readers",
        sa.Column("group_name", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_name"],
            ["reader_groups.name"],
            name=op.f("fk_readers_group_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_name", "name", name=op.f("pk_readers")),
    )
    op.create_table(
        "segments",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("low", sa.String(length=64), nullable=False),
        sa.Column("high", sa.String(length=64), nullable=False),
        sa.Column("sealed_in", sa.Integer(), nullable=True),
        sa.Column("start_offset", sa.BigInteger(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("min_time", sa.BigInteger(), nullable=True),
        sa.Column("max_time", sa.BigInteger(), nullable=True),
        sa.Column("disorder", sa.BigInteger(), nullable=False),
        sa.Column("truncated_time", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_commit_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_segments_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", name=op.f("pk_segments")),
    )
    op.create_table(
        "transactions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("writer", sa.String(length=255), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("begun_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"],
            ["streams.id"],
            name=op.f("fk_transactions_stream_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transactions")),
    )
    op.create_index(op.f("ix_transactions_stream_id"), "transactions", ["stream_id"], unique=False)
    op.create_table(
        "writers",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("notes_time", sa.Boolean(), nullable=False),
        sa.Column("is_sink", sa.Boolean(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_writers_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("stream_id", "name", name=op.f("pk_writers")),
    )
    op.create_table(
        "transaction_chunks",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("transaction_id", sa.String(length=64), nullable=False),
        sa.Column("segment", sa.Integer(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("min_time", sa.BigInteger(), nullable=True),
        sa.Column("max_time", sa.BigInteger(), nullable=True),
        sa.Column("disorder", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.String(length=512), nullable=False),
        sa.ForeignKeyConstraint(
            ["transaction_id"],
            ["transactions.id"],
            name=op.f("fk_transaction_chunks_transaction_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transaction_chunks")),
    )
    op.create_index(
        op.f("ix_transaction_chunks_transaction_id"),
        "transaction_chunks",
        ["transaction_id"],
        unique=False,
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_index(op.f("ix_transaction_chunks_transaction_id"), table_name="transaction_chunks")
    op.drop_table("transaction_chunks")
    op.drop_table("writers")
    op.drop_index(op.f("ix_transactions_stream_id"), table_name="transactions")
    op.drop_table("transactions")
    op.drop_table("segments")
    op.drop_table("readers")
    op.drop_table("reader_positions")
    op.drop_table("marks")
    op.drop_table("holds")
    op.drop_table("commit_runs")
    op.drop_index("ix_chunks_reach", table_name="chunks")
    op.drop_index("ix_chunks_interval", table_name="chunks")
    op.drop_index("ix_chunks_end", table_name="chunks")
    op.drop_table("chunks")
    op.drop_index(op.f("ix_streams_bucket"), table_name="streams")
    op.drop_table("streams")
    op.drop_table("replaced")
    op.drop_table("reader_groups")
    op.drop_table("progress")
    op.drop_table("leases")
    op.drop_table("intents")
    op.drop_table("controllers")
