"""Maintenance: everything that keeps a store in shape, in one call that can be repeated.

First what jobs no longer hold and what retention gives up, then the joining of small chunks, last
the files that nobody needs. Run by the mark controller's cycle and by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from tidegate.eventtime.instants import micros
from tidegate.store.catalog import holds
from tidegate.store.compaction import compact
from tidegate.store.retention import Truncation, truncate
from tidegate.store.sweep import Sweep, sweep

if TYPE_CHECKING:
    from tidegate.store.store import Store

HOLD_LIFE: Final = timedelta(days=1)
"""How long a hold stands that its job does not renew: a job that is gone keeps nothing for ever."""

GROUPS_AT_ONCE: Final = 64
"""Joins per stream and call, so that one call does not take for ever."""


@dataclass(frozen=True)
class Maintenance:
    """What was done: truncations, chunks joined, files swept, holds dropped, and what failed."""

    truncations: tuple[Truncation, ...]
    chunks_joined: int
    sweep: Sweep
    holds_dropped: tuple[tuple[str, str], ...]
    failures: tuple[str, ...]


def maintain(store: Store, stream: str | None = None) -> Maintenance:
    """Do for one stream, or for all, what is due."""
    names = store.list_streams() if stream is None else [store.describe(stream).name]
    truncations: list[Truncation] = []
    dropped: list[tuple[str, str]] = []
    failures: list[str] = []
    joined = 0
    for name in names:
        found = store.describe(name)
        old = store.database.write(
            partial(holds.expire, stream_id=found.id, before=store.clock() - micros(HOLD_LIFE))
        )
        dropped.extend((name, holder) for holder in old)
        kept = found.config.retention
        if kept.age is not None:
            truncations.append(truncate(store, name, age=kept.age))
        if kept.size is not None:
            truncations.append(truncate(store, name, size=kept.size))
        count, failed = compact(store, name, most=GROUPS_AT_ONCE)
        joined += count
        failures.extend(failed)
    return Maintenance(
        tuple(done for done in truncations if done.rows or done.held_by),
        joined,
        sweep(store, stream),
        tuple(dropped),
        tuple(failures),
    )
