"""The last batch of every writer that is fed by a streaming query."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "writer_batches",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("writer", sa.String(length=255), nullable=False),
        sa.Column("query", sa.String(length=64), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("committed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"],
            ["streams.id"],
            name=op.f("fk_writer_batches_stream_id_streams"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("stream_id", "writer", name=op.f("pk_writer_batches")),
    )


def downgrade() -> None:
    """Take it away."""
    op.drop_table("writer_batches")
