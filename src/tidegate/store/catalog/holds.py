"""Questions about holds: what running jobs still need of a stream.

Nothing behind a hold's cut is truncated. Holding and truncating take the stream's row first, so
that a hold either comes before a truncation or learns that it is too late.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, delete, insert, select, update

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.marks.cut import Cut
from tidegate.marks.lineage import Lineage
from tidegate.planning.facts import Offsets
from tidegate.store.catalog import streams
from tidegate.store.catalog.schema import holds
from tidegate.store.catalog.schema import streams as stream_rows
from tidegate.store.catalog.streams import StreamRecord
from tidegate.store.catalog.time_index import first_readable


def lock(on: Connection, stream_id: int) -> None:
    """Let holds and truncations of a stream come one after the other; appends go on."""
    on.execute(
        select(stream_rows.c.id)
        .where(stream_rows.c.id == stream_id)
        .with_for_update(key_share=True)
    )


def hold(on: Connection, stream: StreamRecord, holder: str, cut: Offsets, now: Instant) -> None:
    """Keep everything behind a cut, instead of what the holder kept before.

    An error when something behind it is truncated already.
    """
    lock(on, stream.id)
    records = streams.segment_records(on, stream.id)
    lineage = Lineage(record.segment for record in records)
    passed = lineage.ancestors_of(cut)
    for record in records:
        wanted = cut.get(record.name, record.end if record.name in passed else 0)
        if wanted < record.start:
            readable = first_readable(records, lineage)
            raise errors.rows_truncated(
                stream.name, record.name, wanted, record.start, cut=readable
            )
    values = {"cut": json.dumps(Cut(cut).to_json()), "updated_at": now}
    mine = (holds.c.stream_id == stream.id, holds.c.holder == holder)
    if on.execute(update(holds).where(*mine).values(values)).rowcount == 0:
        on.execute(insert(holds).values(stream_id=stream.id, holder=holder, **values))


def release(on: Connection, stream: StreamRecord, holder: str) -> bool:
    """Let go; return whether there was anything to let go."""
    mine = (holds.c.stream_id == stream.id, holds.c.holder == holder)
    return on.execute(delete(holds).where(*mine)).rowcount > 0


def held(on: Connection, stream_id: int) -> dict[str, Cut]:
    """The cuts that are held, by holder."""
    rows = on.execute(
        select(holds.c.holder, holds.c.cut)
        .where(holds.c.stream_id == stream_id)
        .order_by(holds.c.holder)
    )
    return {holder: Cut.from_json(json.loads(cut)) for holder, cut in rows}


def expire(on: Connection, stream_id: int, before: Instant) -> list[str]:
    """Drop the holds that were not renewed since an instant; return whose they were."""
    old = (holds.c.stream_id == stream_id, holds.c.updated_at < before)
    names = list(on.execute(select(holds.c.holder).where(*old)).scalars())
    if names:
        on.execute(delete(holds).where(*old))
    return sorted(names)
