"""A stream of the store as a log, on both catalogs; the contract itself is in tests/contracts."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

from tidegate.errors import TidegateError
from tidegate.logs.log import facts_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import PlannerState, Policy, Query, plan
from tidegate.store import Store

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def rows(*times: int) -> pa.Table:
    at = pa.array(times, SCHEMA.field("at").type)
    return pa.table({"id": pa.array(range(len(times)), pa.int64()), "at": at})


def test_a_log_follows_its_stream_over_a_scale_and_sees_every_change(store: Store) -> None:
    store.create_stream("orders", SCHEMA, event_column="at", routing_key=("id",))
    log = StoreLog(store, "orders")
    seen = [log.version()]

    def changed() -> bool:
        seen.append(log.version())
        assert log.version() == seen[-1], "looking changes nothing"
        return seen[-1] not in seen[:-1]

    with store.writer("orders", "shop", notes_time=True, flush_age=None) as writer:
        assert changed(), "a writer was registered"
        writer.append(rows(10, 30, 20))
        writer.flush()
        assert changed(), "rows were appended"
        writer.note_time(15)
        assert changed(), "time was noted"
        half = Fraction(1, 2)
        store.scale("orders", ["0.e0"], [(Fraction(0), half), (half, Fraction(1))])
        assert changed(), "the stream was scaled"
        writer.append(rows(40, 50, 60, 70))
        writer.flush()
        assert changed(), "rows were appended to the successors"
    query, state = Query.stateless("orders"), PlannerState.fresh("q", ["orders"])
    read: list[tuple[str, int]] = []
    other = StoreLog.opened(log.describe())
    for _ in range(5):
        state, batch = plan(state, facts_of({"orders": log}, state), query, Policy(), 0)
        for name, (start, end) in batch.streams["orders"].ranges().items() if batch.moved else ():
            for part in other.read(name, start, end, ["_offset"]):
                read.extend((name, offset) for offset in part.column(0).to_pylist())
    other.close()
    assert len(read) == len(set(read)) == 7
    assert read[:3] == [("0.e0", 0), ("0.e0", 1), ("0.e0", 2)]


def test_what_is_not_there_is_refused(store: Store) -> None:
    store.create_stream("orders", SCHEMA, event_column="at")
    log = StoreLog(store, "orders")
    for partition, code in (("0.e0", "log-offsets-missing"), ("7.e0", "log-partition-unknown")):
        with pytest.raises(TidegateError) as refused:
            list(log.read(partition, 0, 1))
        assert refused.value.code == code
    with pytest.raises(TidegateError) as refused:
        StoreLog(store, "offers")
    assert refused.value.code == "unknown-stream"
