"""A million chunks in a catalog, straight into its tables: what a large stream looks like.

Most chunks are two seconds long; one in a thousand is an hour, one in a hundred thousand a day: the
few long ones are what makes a plain pair of conditions scan half the table.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from tidegate.store import Store

CHUNKS = 1_000_000
SEGMENTS = 4
SECOND = 1_000_000
ROWS = 1_000

_INSERT = text(
    """
    INSERT INTO chunks (stream_id, segment, start_offset, end_offset, skip, bytes, min_time,
                        max_time, running_max, disorder, width_class, path, committed_at)
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
    SELECT :stream, i - (i / :segments) * :segments, (i / :segments) * :rows,
           (i / :segments) * :rows + :rows, 0, 50000, CAST(i AS BIGINT) * :second,
           CAST(i AS BIGINT) * :second + CASE WHEN i - (i / 100000) * 100000 = 0 THEN 86400000000
                                              WHEN i - (i / 1000) * 1000 = 0 THEN 3600000000
                                              ELSE 2000000 END,
           CAST(i AS BIGINT) * :second + 2000000, 0,
           CASE WHEN i - (i / 100000) * 100000 = 0 THEN 37
                WHEN i - (i / 1000) * 1000 = 0 THEN 32
                ELSE 21 END,
           'p', 0
    FROM n
    """
)


def fill(store: Store, stream: str, chunks: int = CHUNKS) -> None:
    """Put the chunks into a stream that has `SEGMENTS` segments."""
    stream_id = store.describe(stream).id

    def work(on: Connection) -> None:
        on.execute(
            _INSERT,
            {
                "stream": stream_id,
                "count": chunks,
                "segments": SEGMENTS,
                "rows": ROWS,
                "second": SECOND,
            },
        )
        on.execute(
            text("UPDATE segments SET next_offset = :end, min_time = 0 WHERE stream_id = :stream"),
            {"end": chunks // SEGMENTS * ROWS, "stream": stream_id},
        )

    store.database.write(work)
    # As the servers do by themselves after a while.
    store.database.write(lambda on: on.execute(text("ANALYZE")).close())
