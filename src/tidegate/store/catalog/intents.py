"""Questions about intents: uploads that are under way.

An upload is announced before it begins, and the announcement goes in the transaction that makes the
file visible. So the sweep knows every file: visible, announced, or left behind by a crash. An
announcement that nobody withdraws expires, and its file never becomes visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from tidegate import errors
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


def withdraw(on: Connection, paths: Iterable[str]) -> set[str]:
    """The files are known otherwise now, or not wanted any more; return those still announced."""
    given = list(paths)
    if not given:
        return set()
    gone = delete(intents).where(intents.c.path.in_(given)).returning(intents.c.path)
    return set(on.execute(gone).scalars())


def redeem(on: Connection, paths: Iterable[str]) -> None:
    """Withdraw announcements for good; an error if one of them has expired.

    Then the sweep may have come for the file already, or may be about to.
    """
    given = set(paths)
    lost = given - withdraw(on, given)
    if lost:
        raise errors.upload_expired(sorted(lost))
