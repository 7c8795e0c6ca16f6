"""The sweep: files that nobody knows any more are deleted, and never a live one.

Known is what is visible, what an open transaction holds, an upload that was announced, and what was
replaced a short while ago. Files are listed before the catalog is asked: an upload is announced
before it begins, and its file is visible before the announcement goes, so whatever is listed and
alive is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, delete, select

from tidegate.eventtime.instants import Instant, micros
from tidegate.store.catalog.schema import (
    chunks,
    intents,
    replaced,
    transaction_chunks,
    transactions,
)

if TYPE_CHECKING:
    from tidegate.store.store import Store

GRACE: Final = timedelta(hours=1)
"""How long a replaced file lives on: a reader may have just looked it up."""
_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Sweep:
    """How many announcements expired, and how many files went: replaced ones, and orphans."""

    expired: int
    replaced: int
    orphans: int


def sweep(store: Store, stream: str | None = None, *, grace: timedelta = GRACE) -> Sweep:
    """Delete the files of one stream, or of all, that nobody needs."""
    now = store.clock()
    expired = store.database.write(lambda on: _expire_intents(on, now))
    aged = _sweep_replaced(store, now - micros(grace))
    under = "" if stream is None else stream
    listed = list(store.files.list(under))
    known = store.database.read(_known) if listed else set()
    orphans = [path for path in listed if path not in known]
    for path in orphans:
        store.files.delete(path)
    return Sweep(expired, aged, len(orphans))


def _expire_intents(on: Connection, now: Instant) -> int:
    """Drop announcements whose time is over; who publishes afterwards finds none, and fails."""
    return on.execute(delete(intents).where(intents.c.expires_at <= now)).rowcount


def _sweep_replaced(store: Store, before: Instant) -> int:
    """Delete replaced files whose grace is over: the file first, so that no crash forgets it."""
    question = select(replaced.c.path).where(replaced.c.replaced_at <= before)
    old = store.database.read(lambda on: list(on.execute(question).scalars()))
    for first in range(0, len(old), _AT_ONCE):
        some = old[first : first + _AT_ONCE]
        for path in some:
            store.files.delete(path)
        store.database.write(partial(_forget_replaced, some))
    return len(old)


def _forget_replaced(paths: list[str], on: Connection) -> None:
    on.execute(delete(replaced).where(replaced.c.path.in_(paths)))


def _known(on: Connection) -> set[str]:
    """Every path that somebody still speaks of."""
    staged = (
        select(transaction_chunks.c.path)
        .join(transactions, transactions.c.id == transaction_chunks.c.transaction_id)
        .where(transactions.c.status == "open")
    )
    questions = (select(chunks.c.path), select(intents.c.path), select(replaced.c.path), staged)
    return {path for question in questions for path in on.execute(question).scalars()}
