"""What every query has committed: the compare-and-set that makes a batch happen once.

A query's row names its lineage (one history of batches) and the last batch of it. A batch commits
in one transaction that begins with `commit`: it moves the row from the batch before to this one.
The same batch with the same plan again is a replay, and changes nothing. Anything else is somebody
else's history, and fenced: two drivers of one query, a checkpoint that was deleted, or one restored
from yesterday.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.store.catalog.schema import progress, queries


@dataclass(frozen=True)
class QueryRow:
    """The last batch that a query has committed, and what it has counted so far."""

    name: str
    lineage: str
    batch: int
    plan: str
    released: Known
    finished: bool
    totals: Mapping[str, Any]
    updated_at: Instant


@dataclass(frozen=True)
class Step:
    """From one batch to the next: what must be there, and what shall be."""

    name: str
    lineage: str
    batch: int
    plan: str
    released: Known
    finished: bool = False


def look(on: Connection, name: str, *, lock: bool = False) -> QueryRow | None:
    """A query's row; None when it has never committed a batch."""
    question = select(queries).where(queries.c.name == name)
    row = on.execute(question.with_for_update() if lock else question).one_or_none()
    return None if row is None else _row(row)


def parts(on: Connection, name: str) -> list[QueryRow]:
    """The rows of the sources of a query, where these have rows of their own."""
    beginning = queries.c.name.startswith(f"{name}/", autoescape=True)
    return [_row(row) for row in on.execute(select(queries).where(beginning))]


def commit(on: Connection, step: Step, now: Instant) -> QueryRow | None:
    """Move a query to its next batch; None: this very batch is committed already.

    It comes first in the transaction that makes the batch visible, and locks the row until that
    ends. Raises `query-fenced` when the row is not where this batch begins.
    """
    if step.batch == 1:
        _insert_first(on, step, now)
    found = look(on, step.name, lock=True)
    if found is not None and found.lineage == step.lineage:
        if found.batch == step.batch and found.plan == step.plan:
            return None
        if found.batch == step.batch - 1:
            _move(on, step, now)
            return found
    raise fenced(step, found)


def check(found: QueryRow | None, step: Step) -> None:
    """Whether a plan may still be made: the row is where this batch begins, or at this batch."""
    if found is None:
        if step.batch > 1:
            raise fenced(step, None)
        return
    if found.lineage != step.lineage or found.batch not in (step.batch - 1, step.batch):
        raise fenced(step, found)


def fenced(step: Step, found: QueryRow | None) -> errors.ConflictError:
    """The error that says who was there first."""
    return errors.query_fenced(
        step.name,
        step.lineage,
        step.batch,
        None if found is None else found.lineage,
        None if found is None else found.batch,
    )


def count(on: Connection, name: str, totals: Mapping[str, Any]) -> None:
    """Keep what a query has counted; the caller holds its row."""
    text = json.dumps(totals, separators=(",", ":"))
    on.execute(update(queries).where(queries.c.name == name).values(totals=text))


def finish(on: Connection, name: str, now: Instant) -> None:
    """Note that a query has given everything out, for good."""
    on.execute(update(queries).where(queries.c.name == name).values(finished=True, updated_at=now))


def forget(on: Connection, name: str) -> bool:
    """Let a query begin anew; return whether there was anything to forget."""
    on.execute(delete(progress).where(progress.c.job == name))
    return on.execute(delete(queries).where(queries.c.name == name)).rowcount > 0


def _insert_first(on: Connection, step: Step, now: Instant) -> None:
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    on.execute(
        dialect.insert(queries)
        .values(
            name=step.name,
            lineage=step.lineage,
            batch=0,
            plan="",
            released=None,
            finished=False,
            totals="",
            updated_at=now,
        )
        .on_conflict_do_nothing()
    )


def _move(on: Connection, step: Step, now: Instant) -> None:
    on.execute(
        update(queries)
        .where(queries.c.name == step.name)
        .values(
            batch=step.batch,
            plan=step.plan,
            released=None if step.released is UNKNOWN else step.released,
            finished=step.finished,
            updated_at=now,
        )
    )


def _row(row: Any) -> QueryRow:
    return QueryRow(
        row.name,
        row.lineage,
        row.batch,
        row.plan,
        UNKNOWN if row.released is None else row.released,
        row.finished,
        json.loads(row.totals) if row.totals else {},
        row.updated_at,
    )
