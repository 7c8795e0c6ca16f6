"""A stream of the store behind the protocol of logs.

What a planner asks is one consistent read of the catalog; rows come from chunks. Where the store
lies goes with the description, so an executor opens the same stream again.

    log = StoreLog(store, "orders")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, func, select

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import Known
from tidegate.logs.log import (
    Description,
    Times,
    bad_schema,
    check_partition,
    check_range,
    open_log,
    read_schema,
)
from tidegate.planning.facts import Offsets, Spans, StreamFacts
from tidegate.store.catalog import chunk_rows, spans, streams, time_index
from tidegate.store.catalog.schema import marks, segments, writers
from tidegate.store.catalog.schema import streams as stream_table
from tidegate.store.reading import SYSTEM_COLUMNS
from tidegate.store.reading import read as read_segment
from tidegate.store.shared import shared_store
from tidegate.store.store import Store


class StoreLog:
    """One stream of a store. As thread safe as the store.

    Those that were opened from a description use the store that their process has open for it.
    """

    bounded = False
    """A stream of the store has no end: somebody may write to it again."""

    system = SYSTEM_COLUMNS
    """It also knows the partition of a row, and when it was committed."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self.schema: pa.Schema = store.describe(name).config.schema
        self._shared = False

    # ---- what a planner asks ----

    def snapshot(self, after: Offsets) -> StreamFacts:
        """The segments, and the spans and marks behind a cut, at one moment of the catalog.

        Whoever plans also sees to the marks: a silent writer is dropped by a cycle, and where all
        are silent nobody notes who would run one.
        """
        self.store.see_to_marks(self.name)
        return self.store.database.read(lambda on: spans.snapshot(on, self.name, after))

    def checked(self, facts: StreamFacts) -> StreamFacts:
        """The same facts, with the segments unreadable whose new chunks have lost their file.

        For stores in a folder only: on object storage to ask for every file would cost more than
        to read it. What is there and damaged is found when it is read.
        """
        if not self.store.files.is_local or not len(facts.spans):
            return facts
        spans = facts.spans
        first = np.unique(spans.partition, return_index=True)[1].tolist()
        last = [*(place - 1 for place in first[1:]), len(spans) - 1]
        ranges = [
            (spans.names[spans.partition[i]], int(spans.start[i]), int(spans.end[j]))
            for i, j in zip(first, last, strict=True)
        ]
        gone = self.store.database.read(lambda on: self._lost_files(on, ranges))
        if not gone:
            return facts
        unreadable = {**facts.partitions.unreadable, **gone}
        return replace(facts, partitions=replace(facts.partitions, unreadable=unreadable))

    def _lost_files(self, on: Connection, ranges: list[tuple[str, int, int]]) -> dict[str, str]:
        record = streams.get(on, self.name)
        numbers = {r.name: r.segment.id.number for r in streams.segment_records(on, record.id)}
        found = {}
        for name, start, end in ranges:
            for chunk in chunk_rows.between(on, record.id, numbers[name], start, end):
                if not self.store.files.exists(chunk.path):
                    found[name] = (
                        f"the file of offsets {chunk.start} to {chunk.end} is missing: {chunk.path}"
                    )
                    break
        return found

    def overlapping(self, a: Known, b: Instant, start: Offsets, below: Offsets) -> Spans:
        """The spans between two cuts that can hold a time in [a, b)."""
        return self.store.database.read(
            lambda on: spans.overlapping(on, self.name, a, b, start, below)
        )

    def cut_at(self, time: Instant) -> Offsets:
        """A whole cut that has every row at or after `time` behind it."""
        return dict(self.store.database.read(lambda on: time_index.cut_at(on, self.name, time)))

    def version(self) -> int:
        """A sum over the counters of the stream: rows, truncations, marks, writers, scales."""
        return self.store.database.read(self._counted)

    def _counted(self, on: Connection) -> int:
        found = streams.get(on, self.name).id
        told = [
            on.execute(
                select(stream_table.c.revision, stream_table.c.epoch).where(
                    stream_table.c.id == found
                )
            ).one(),
            on.execute(
                select(
                    func.count(),
                    func.sum(segments.c.next_offset),
                    func.sum(segments.c.start_offset),
                ).where(segments.c.stream_id == found)
            ).one(),
            on.execute(select(func.max(marks.c.number)).where(marks.c.stream_id == found)).one(),
            on.execute(
                select(func.count(), func.sum(writers.c.version), func.sum(writers.c.token)).where(
                    writers.c.stream_id == found
                )
            ).one(),
        ]
        return crc32(repr([[int(n or 0) for n in row] for row in told]).encode())

    # ---- rows ----

    def read(
        self,
        partition: str,
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
        times: Times | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a segment with offsets in [start, end)."""
        schema = read_schema(self.name, self.schema, columns, self.system)
        ends = {record.name: record for record in self.store.segments(self.name)}
        check_partition(self.name, partition, list(ends))
        check_range(
            self.name,
            partition,
            start,
            end,
            first=ends[partition].start,
            latest=ends[partition].end,
        )
        own = [name for name in schema.names if name not in self.system]
        system = [name for name in schema.names if name in self.system]
        for batch in read_segment(self.store, self.name, partition, start, end, own, times, system):
            if batch.num_rows:
                arrays = [batch.column(name) for name in schema.names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def bad_rows(self, partition: str, start: int, end: int) -> pa.Table:
        """None: the store's writers keep them out, and route them to a stream of their own."""
        return bad_schema(self.schema).empty_table()

    # ---- to be opened elsewhere ----

    def describe(self) -> Description:
        """What `open_log` needs; with the two addresses go whatever secrets they have."""
        catalog, data = self.store.addresses
        return {"kind": "store", "name": self.name, "catalog": catalog, "data": data}

    @staticmethod
    def opened(description: Mapping[str, Any]) -> StoreLog:
        """The stream that was described, in the store that this process has open for it."""
        log = StoreLog(
            shared_store(description["catalog"], description["data"]), description["name"]
        )
        log._shared = True
        return log

    def close(self) -> None:
        """Close the store, unless others of this process use it too."""
        if not self._shared:
            self.store.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (self.describe(),)
