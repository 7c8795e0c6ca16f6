"""How far every node of every job is complete, for any process to ask.

A row per job and node; written in the transaction that commits the batch. A frontier never goes
back, and that is the condition of the update, not a promise of its callers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, select
from sqlalchemy.dialects import postgresql, sqlite

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.store.catalog.schema import progress


@dataclass(frozen=True)
class NodeProgress:
    """A node of a job: how far it is complete, and what else is known of it."""

    job: str
    node: str
    frontier: Known
    detail: Mapping[str, Any]
    updated_at: Instant


def tell(
    on: Connection,
    job: str,
    node: str,
    frontier: Known,
    detail: Mapping[str, Any],
    now: Instant,
) -> None:
    """Note how far a node is complete; a frontier that is behind the last one changes nothing."""
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    reached = None if frontier is UNKNOWN else frontier
    row = dialect.insert(progress).values(
        job=job,
        node=node,
        frontier=reached,
        detail=json.dumps(detail, separators=(",", ":")),
        updated_at=now,
    )
    new = row.excluded
    further = case(
        (progress.c.frontier.is_(None), new.frontier),
        (new.frontier > progress.c.frontier, new.frontier),
        else_=progress.c.frontier,
    )
    on.execute(
        row.on_conflict_do_update(
            index_elements=[progress.c.job, progress.c.node],
            set_={"frontier": further, "detail": new.detail, "updated_at": new.updated_at},
        )
    )


def told(on: Connection, job: str) -> dict[str, NodeProgress]:
    """The nodes of a job, by name."""
    rows = on.execute(select(progress).where(progress.c.job == job).order_by(progress.c.node))
    return {
        row.node: NodeProgress(
            row.job,
            row.node,
            UNKNOWN if row.frontier is None else row.frontier,
            json.loads(row.detail) if row.detail else {},
            row.updated_at,
        )
        for row in rows
    }
