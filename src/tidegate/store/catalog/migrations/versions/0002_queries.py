"""What every query has committed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "queries",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("lineage", sa.String(length=64), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("plan", sa.String(length=64), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=True),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.Column("totals", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_queries")),
    )


def downgrade() -> None:
    """Take it away."""
    op.drop_table("queries")
