"""Questions about controllers and their leases: who runs the cycles of which bucket.

A lease has an owner, an end, and a token that every new owner raises. Whatever an owner changes
begins with `hold`, which locks the lease's row: so an owner whose lease was taken over changes
nothing, and finds out. Everything here is a conditional update; nobody looks and then writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import ColumnElement, Connection, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tidegate.eventtime.instants import Instant
from tidegate.store.catalog.schema import controllers, leases
from tidegate.store.catalog.streams import BUCKETS

Tokens = dict[int, int]
"""The token of every bucket that is owned."""


# ---- controllers ----


def announce(on: Connection, owner: str, now: Instant, expires_at: Instant) -> None:
    """Be a live controller until then; those whose time is over are forgotten."""
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    on.execute(
        dialect.insert(controllers)
        .values(name=owner, expires_at=expires_at)
        .on_conflict_do_update(index_elements=[controllers.c.name], set_={"expires_at": expires_at})
    )
    on.execute(delete(controllers).where(controllers.c.expires_at <= now))


def retire(on: Connection, owner: str) -> None:
    """Be no controller any more, and give every lease back."""
    on.execute(delete(controllers).where(controllers.c.name == owner))
    on.execute(update(leases).where(leases.c.owner == owner).values(owner=None, expires_at=0))


def owned_by(on: Connection, now: Instant) -> dict[str, int]:
    """How many buckets each live controller owns."""
    question = (
        select(controllers.c.name, func.count(leases.c.bucket))
        .outerjoin(leases, leases.c.owner == controllers.c.name)
        .where(controllers.c.expires_at > now)
        .group_by(controllers.c.name)
    )
    return {name: count for name, count in on.execute(question)}


# ---- leases ----


def ensure(on: Connection) -> None:
    """Have a row for every bucket."""
    dialect = postgresql if on.dialect.name == "postgresql" else sqlite
    rows = [
        {"bucket": bucket, "owner": None, "token": 0, "expires_at": 0} for bucket in range(BUCKETS)
    ]
    on.execute(dialect.insert(leases).values(rows).on_conflict_do_nothing())


def missing(on: Connection) -> bool:
    """Whether some bucket has no row yet."""
    return on.execute(select(func.count()).select_from(leases)).scalar_one() < BUCKETS


def renew(on: Connection, owner: str, expires_at: Instant) -> Tokens:
    """Keep all that is still owned, and return it."""
    kept = on.execute(
        update(leases)
        .where(leases.c.owner == owner)
        .values(expires_at=expires_at)
        .returning(leases.c.bucket, leases.c.token)
    )
    return {bucket: token for bucket, token in kept}


def free(on: Connection, now: Instant) -> list[int]:
    """The buckets that nobody owns, or whose owner's time is over."""
    question = select(leases.c.bucket).where(_is_free(now)).order_by(leases.c.bucket)
    return list(on.execute(question).scalars())


def take(
    on: Connection, owner: str, buckets: Iterable[int], now: Instant, expires_at: Instant
) -> Tokens:
    """Take buckets that are still free; return those that were."""
    taken: Tokens = {}
    for bucket in sorted(buckets):
        token = on.execute(
            update(leases)
            .where(leases.c.bucket == bucket, _is_free(now))
            .values(owner=owner, token=leases.c.token + 1, expires_at=expires_at)
            .returning(leases.c.token)
        ).scalar_one_or_none()
        if token is not None:
            taken[bucket] = token
    return taken


def release(on: Connection, owner: str, buckets: Collection[int]) -> None:
    """Give buckets back."""
    on.execute(
        update(leases)
        .where(leases.c.owner == owner, leases.c.bucket.in_(buckets))
        .values(owner=None, expires_at=0)
    )


def hold(on: Connection, owner: str, bucket: int, token: int) -> bool:
    """Lock a lease until the transaction ends; return whether it is still owned.

    A lease whose time is over and that nobody has taken is still its owner's.
    """
    held = on.execute(
        update(leases)
        .where(leases.c.bucket == bucket, leases.c.owner == owner, leases.c.token == token)
        .values(token=token)
    )
    return held.rowcount == 1


def owners(on: Connection) -> Mapping[int, str | None]:
    """Who owns what."""
    question = select(leases.c.bucket, leases.c.owner).order_by(leases.c.bucket)
    return {bucket: owner for bucket, owner in on.execute(question)}


def _is_free(now: Instant) -> ColumnElement[bool]:
    return or_(leases.c.owner.is_(None), leases.c.expires_at <= now)
