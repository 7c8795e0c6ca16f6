"""The Nexmark log: a seeded stream of people, auctions and bids whose true watermark is known.

Events are dealt to partitions in rounds of 50, so every partition has the same mix. A row follows
from the seed, its partition and its offset alone: any range can be read at any time, nothing is
kept. `true_watermark` says what no estimator can know: the smallest event time from an offset on.

>>> log = NexmarkLog("bids", "bid", total=1000, partitions=2, shuffle=10)
>>> log.snapshot({}).partitions.latest.tolist()
[460, 460]
>>> batch = next(log.read("0", 0, 3, ["auction", "_offset"]))
>>> batch.num_rows, batch.schema.names
(3, ['auction', '_offset'])
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.draws import Draws
from tidegate.logs.log import (
    EVENT_TIME,
    OFFSET,
    Description,
    Times,
    bad_schema,
    check_partition,
    check_range,
    instants,
    open_log,
    read_schema,
)
from tidegate.logs.nexmark_deal import KINDS, Deal, Options
from tidegate.logs.nexmark_events import (
    AUCTION,
    BID,
    COLUMNS,
    IN_FLIGHT,
    MIX,
    PERSON,
    ROUND,
    SIZES,
    Events,
    Hot,
    kind_of,
)
from tidegate.logs.span_table import SpanTable, Stretch, inner_disorder
from tidegate.planning.facts import Numbers, Offsets, Partitions, Spans, StreamFacts, numbers

NAMES: Final = {PERSON: "person", AUCTION: "auction", BID: "bid"}
DEFAULT_START: Final = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z: a constant, so that the same options give the same rows."""

_BATCH: Final = 65_536


class NexmarkLog:
    """Events by number, as one stream. Not thread safe; every reader opens its own.

    `kind`: "event" (all, tagged by `event_type`), "person", "auction" or "bid". `total` events of
    all kinds at `rate` per second of event time, dealt to `partitions`; without a total the log has
    no end and is `live`. Live: rows appear as the clock passes the moment they are generated.
    `shuffle`: rows are shuffled within groups of so many. `delayed`: so many of the rows carry a
    time up to `delay` before their place. `skew`: per partition, how far its times are ahead.
    `pauses`: (partition, after, length): it falls silent for a while, and goes on later.
    """

    def __init__(
        self,
        name: str,
        kind: str = "event",
        *,
        total: int | None = None,
        partitions: int = 1,
        seed: int = 1,
        rate: int = 10_000,
        start_at: Instant | None = None,
        shuffle: int = 1,
        delayed: float = 0.0,
        delay: timedelta = timedelta(seconds=3),
        skew: Sequence[timedelta] = (),
        pauses: Sequence[tuple[int, timedelta, timedelta]] = (),
        hot: Hot | None = None,
        span_rows: int = 10_000,
        live: bool | None = None,
        clock: Callable[[], Instant] = lambda: time.time_ns() // 1000,
    ) -> None:
        hot = hot or Hot()
        live = total is None if live is None else live
        _refuse("kind", kind, kind in KINDS, KINDS)
        _refuse("total", total, total is None or total >= 0, ["0 or more", "none"])
        _refuse("live", live, live or total is not None, ["true, for a log without a total"])
        for setting, value in (
            ("partitions", partitions), ("rate", rate), ("shuffle", shuffle),
            ("span_rows", span_rows), ("hot", min(hot.auctions, hot.sellers, hot.bidders)),
        ):  # fmt: skip
            _refuse(setting, value, value >= 1, ["1 or more"])
        _refuse("delayed", delayed, 0 <= delayed <= 1, ["0 to 1"])
        _refuse("delay", delay, delay >= timedelta(0), ["0 or longer"])
        _refuse("skew", skew, len(skew) in (0, partitions), ["one for each partition", "none"])
        for pause in pauses:
            _refuse("pauses", pause, 0 <= pause[0] < partitions, ["(partition, after, length)"])
        if start_at is None:
            start_at = clock() // 1_000_000 * 1_000_000 if live else DEFAULT_START
        self.name = name
        self._options = Options(
            kind=kind, total=total, partitions=partitions, seed=seed, rate=rate,
            start_at=start_at, shuffle=shuffle, delayed=delayed, delay=micros(delay),
            skew=tuple(micros(shift) for shift in skew) or (0,) * partitions,
            pauses=tuple((p, micros(after), micros(long)) for p, after, long in pauses),
            hot=(hot.auctions, hot.sellers, hot.bidders), span_rows=span_rows, live=live,
        )  # fmt: skip
        self._clock = clock
        draws = Draws(seed)
        self._deal = Deal(self._options, draws)
        self._events = Events(draws, hot, IN_FLIGHT * ROUND // MIX[1] * 1_000_000 // rate)
        self.schema: pa.Schema = _schema(KINDS[kind])
        self.partitions = tuple(str(p) for p in range(partitions))
        self._table = SpanTable()
        for partition in self.partitions:
            self._table.add(partition)

    # ---- what a planner asks ----

    @property
    def bounded(self) -> bool:
        """Whether there is a total."""
        return self._options.total is not None

    def snapshot(self, after: Offsets) -> StreamFacts:
        """The partitions, and the spans behind a cut."""
        self._grow()
        latest = {name: self._table.rows(name) for name in self.partitions}
        return StreamFacts(
            Partitions.of(
                latest,
                ended=[
                    n for n, end in latest.items() if self.bounded and end == self._deal.rows(n)
                ],
                arrived_at={
                    n: int(self._deal.generated(n, numbers([end - 1]))[0]) if end else self.start_at
                    for n, end in latest.items()
                },
            ),
            self._table.spans(after=after),
        )

    def overlapping(self, a: Known, b: Instant, start: Offsets, below: Offsets) -> Spans:
        """The spans between two cuts that can hold a time in [a, b)."""
        self._grow(below)
        return self._table.spans(after=start, below=below, times=(a, b))

    def cut_at(self, time: Instant) -> Offsets:
        """Per partition an offset that has every row at or after `time` behind it."""
        self._grow()
        return self._table.cut_at(time)

    def version(self) -> int:
        """How many rows there are."""
        return sum(self._latest(name) for name in self.partitions)

    def true_watermark(self, partition: str, offset: int) -> Instant:
        """The smallest event time of this row and all after it: what an estimator must not pass."""
        check_partition(self.name, partition, self.partitions)
        latest = self._deal.rows(partition) if self.bounded else offset + 1
        check_range(self.name, partition, offset, offset + 1, latest=latest)
        return self._deal.least_from(partition, offset)

    # ---- rows ----

    def read(
        self,
        partition: str,
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
        times: Times | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows with offsets in [start, end), those in [a, b) of event time if asked for."""
        schema = read_schema(self.name, self.schema, columns)
        check_partition(self.name, partition, self.partitions)
        # A live log's offsets are those of a plan: whoever reads need not have the same clock.
        latest = self._deal.rows(partition)
        check_range(self.name, partition, start, end, latest=latest)
        for first in range(start, end, _BATCH):
            offsets = np.arange(first, min(first + _BATCH, end), dtype=np.int64)
            moments = self._deal.times(partition, offsets)
            if times is not None:
                a, b = times
                inside = (moments < b) & (True if a is UNKNOWN else moments >= a)
                offsets, moments = offsets[inside], moments[inside]
            if len(offsets):
                yield self._batch(schema, self._deal.numbered(partition, offsets), moments, offsets)

    def bad_rows(self, partition: str, start: int, end: int) -> pa.Table:
        """None."""
        return bad_schema(self.schema).empty_table()

    # ---- to be opened elsewhere ----

    @property
    def start_at(self) -> Instant:
        """The time of the first event."""
        return self._options.start_at

    def describe(self) -> Description:
        """What `open_log` needs."""
        return {"name": self.name, **asdict(self._options), "kind": "nexmark",
                "events": self._options.kind}  # fmt: skip

    @staticmethod
    def opened(description: Mapping[str, Any]) -> NexmarkLog:
        """The log that was described; where it is live, by the clock of this machine."""
        options = dict(description)
        del options["kind"]

        def duration(length: int) -> timedelta:
            return timedelta(microseconds=length)

        options["delay"] = duration(options["delay"])
        options["skew"] = [duration(shift) for shift in options["skew"]]
        options["pauses"] = [(p, duration(a), duration(n)) for p, a, n in options["pauses"]]
        options["hot"] = Hot(*options["hot"])
        return NexmarkLog(options.pop("name"), options.pop("events"), **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_log, (self.describe(),)

    # ---- columns ----

    def _batch(
        self, schema: pa.Schema, events: Numbers, times: Numbers, offsets: Numbers
    ) -> pa.RecordBatch:
        chosen = KINDS[self._options.kind]
        arrays = []
        for name in schema.names:
            if name == EVENT_TIME:
                arrays.append(instants(times))
            elif name == OFFSET:
                arrays.append(pa.array(offsets))
            elif chosen is not None:
                arrays.append(self._events.column(chosen, name, events, times))
            else:
                arrays.append(self._flat(name, events, times))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _flat(self, name: str, events: Numbers, times: Numbers) -> pa.Array:
        """A column of the stream of all events: null where the event is of another kind."""
        kinds = kind_of(events)
        if name == "event_type":
            return pa.array(kinds.astype(np.int32))
        if name == "dateTime":
            return instants(times)
        prefix, _, column = name.partition("_")
        kind = KINDS[prefix]
        assert kind is not None
        mine = np.flatnonzero(kinds == kind)
        values = self._events.column(kind, column, events[mine], times[mine])
        where = np.zeros(len(events), dtype=np.int64)
        where[mine] = np.arange(len(mine))
        return values.take(pa.array(where, mask=kinds != kind))

    # ---- what is there ----

    def _latest(self, partition: str) -> int:
        rows = self._deal.rows(partition)
        if not self._options.live:
            return rows
        now = self._clock()
        low, high = 0, rows
        while low < high:  # the first row that is generated after now
            middle = (low + high) // 2
            later = int(self._deal.generated(partition, numbers([middle]))[0]) > now
            low, high = (low, middle) if later else (middle + 1, high)
        # Only whole groups are there: a row must not stand before one that is still to come.
        return low if low == rows else low // self._options.shuffle * self._options.shuffle

    def _grow(self, wanted: Offsets | None = None) -> None:
        """Bring the statistics up to what is there now, or at least to some offsets."""
        for name in self.partitions:
            start = self._table.rows(name)
            need = self._latest(name) if wanted is None else wanted.get(name, 0)
            if need > start:
                self._table.append(
                    name, self._stretch(name, start, min(need, self._deal.rows(name)))
                )

    def _stretch(self, partition: str, start: int, end: int) -> Stretch:
        bounds = [*range(start, end, self._options.span_rows), end]
        low, high, inner = [], [], []
        for first, last in pairwise(bounds):
            times = self._deal.times(partition, np.arange(first, last, dtype=np.int64))
            low.append(int(times.min()))
            high.append(int(times.max()))
            inner.append(inner_disorder(times))
        rows = np.diff(numbers(bounds))
        size = SIZES[KINDS[self._options.kind] or BID]
        timed = np.ones(len(rows), dtype=np.bool_)
        return Stretch(rows, rows * size, numbers(low), numbers(high), timed, numbers(inner))


def _schema(kind: int | None) -> pa.Schema:
    if kind is not None:
        return pa.schema(list(COLUMNS[kind].items()))
    flat = [
        pa.field(f"{NAMES[k]}_{name}", type_)
        for k, columns in COLUMNS.items()
        for name, type_ in columns.items()
        if name != "dateTime"
    ]
    time_type = COLUMNS[BID]["dateTime"]
    return pa.schema([pa.field("event_type", pa.int32()), pa.field("dateTime", time_type), *flat])


def _refuse(setting: str, value: object, valid: bool, choices: Any) -> None:
    if not valid:
        raise errors.wrong_setting(setting, value, choices)
