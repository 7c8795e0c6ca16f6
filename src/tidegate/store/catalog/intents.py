"""Questions about intents: uploads that are under way.

An upload is announced before it begins, and the announcement goes in the transaction that makes the
file visible. So the sweep knows every file: visible, announced, or left behind by a crash. An
announcement that nobody withdraws expires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from tidegate.eventtime.instants import Instant, micros
from tidegate.store.catalog.schema import intents

LIFE: Final = timedelta(hours=1)
"""How long an upload may take, by default."""


def announce(on: Connection, paths: Sequence[str], now: Instant, life: timedelta = LIFE) -> None:
    """Say that these files are about to be written; saying it again changes nothing."""
    if not paths:
        return
    known = set(on.execute(select(intents.c.path).where(intents.c.path.in_(paths))).scalars())
    fresh = [
        {"path": path, "announced_at": now, "expires_at": now + micros(life)}
        for path in paths
        if path not in known
    ]
    if fresh:
        on.execute(insert(intents), fresh)


def withdraw(on: Connection, paths: Iterable[str]) -> None:
    """The files are visible now, or not wanted any more."""
    gone = list(paths)
    if gone:
        on.execute(delete(intents).where(intents.c.path.in_(gone)))
