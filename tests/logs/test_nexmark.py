"""What is special to the Nexmark log: the mix, the ids, hot keys, and the true watermark."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.instants import micros
from tidegate.logs.nexmark import NexmarkLog
from tidegate.logs.nexmark_events import Hot
from tidegate.testing import ManualClock


def table(log: NexmarkLog, *columns: str, partitions: tuple[str, ...] | None = None) -> pa.Table:
    """All rows of a bounded log, partition after partition."""
    latest = log.snapshot({}).partitions.latest.tolist()
    names = partitions or log.partitions
    return pa.Table.from_batches(
        batch
        for name in names
        for batch in log.read(name, 0, latest[int(name)], list(columns) or None)
    )


def values(log: NexmarkLog, column: str) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = table(log, column).column(column).to_numpy()
    return found


# ---- the mix ----


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids(
    partitions: int,
) -> None:
    log = NexmarkLog("all", total=3000, partitions=partitions, shuffle=30)
    for name in log.partitions:
        kinds = table(log, "event_type", partitions=(name,)).column(0).to_numpy()
        assert np.bincount(kinds).tolist() == [
            60 // partitions, 180 // partitions, 2760 // partitions,
        ]  # fmt: skip


@pytest.mark.parametrize("total", [0, 1, 3, 49, 50, 51, 160, 999])
def test_the_streams_of_one_kind_together_hold_the_total(total: int) -> None:
    counts = {
        kind: sum(
            NexmarkLog("x", kind, total=total, partitions=3).snapshot({}).partitions.latest.tolist()
        )
        for kind in ("event", "person", "auction", "bid")
    }
    assert counts["event"] == total
    assert counts["person"] + counts["auction"] + counts["bid"] == total


def test_a_stream_of_one_kind_has_the_rows_of_the_stream_of_all() -> None:
    everything = table(NexmarkLog("all", total=1000, partitions=2))
    for number, kind in enumerate(("person", "auction", "bid")):
        alone = table(NexmarkLog(kind, kind, total=1000, partitions=2))
        mine = everything.filter(pc.equal(everything.column("event_type"), number))
        for column in alone.column_names:
            flat = column if column == "dateTime" else f"{kind}_{column}"
            assert mine.column(flat).to_pylist() == alone.column(column).to_pylist()
        others = everything.filter(pc.not_equal(everything.column("event_type"), number))
        for column in alone.column_names:
            if column != "dateTime":
                assert others.column(f"{kind}_{column}").null_count == len(others)


# ---- ids and keys ----


def test_ids_begin_at_a_thousand_and_have_no_gaps() -> None:
    for kind, count in (("person", 20), ("auction", 60)):
        log = NexmarkLog("x", kind, total=1000, partitions=2)
        assert sorted(values(log, "id")) == list(range(1000, 1000 + count))


def test_bidders_and_sellers_are_people_who_are_there_or_come_soon() -> None:
    people = set(values(NexmarkLog("p", "person", total=50_000), "id").tolist())
    soon = {max(people) + step for step in range(1, 11)}
    assert set(values(NexmarkLog("b", "bid", total=50_000), "bidder").tolist()) <= people | soon
    assert set(values(NexmarkLog("a", "auction", total=50_000), "seller").tolist()) <= people | soon


@pytest.mark.parametrize(
    ("kind", "column", "ratio", "first"),
    [("bid", "auction", "auctions", 0), ("bid", "bidder", "bidders", 1),
     ("auction", "seller", "sellers", 0)],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 2, 10])
def test_hot_ids_come_as_often_as_their_ratio_says(
    kind: str, column: str, ratio: str, first: int, times: int
) -> None:
    log = NexmarkLog("x", kind, total=200_000, hot=Hot(**{ratio: times}))
    hot = np.mean(values(log, column) % 100 == first)
    # A hundredth of the others is hot by chance, somewhat more while there are few.
    assert abs(hot - (1 - 1 / times)) < 0.03


def test_categories_prices_and_urls_are_what_the_queries_expect() -> None:
    auctions = table(NexmarkLog("a", "auction", total=20_000))
    assert set(auctions.column("category").to_pylist()) == {10, 11, 12, 13, 14}
    assert pc.all(pc.greater(auctions.column("expires"), auctions.column("dateTime"))).as_py()
    assert pc.all(pc.greater(auctions.column("reserve"), auctions.column("initialBid"))).as_py()
    bids = table(NexmarkLog("b", "bid", total=20_000))
    assert 100 <= pc.min(bids.column("price")).as_py() <= 1000
    page = re.compile(r"https://www\.nexmark\.com/\w+/\w+/\w+/item\.htm\?query=1(&channel_id=\d+)?")
    assert all(page.fullmatch(url) for url in bids.column("url").to_pylist())
    people = table(NexmarkLog("p", "person", total=20_000))
    assert set(people.column("state").to_pylist()) == {"AZ", "CA", "ID", "OR", "WA", "WY"}


def test_a_row_is_about_as_long_as_it_should_be() -> None:
    for kind, size in (("person", 200), ("auction", 500), ("bid", 115)):
        rows = table(NexmarkLog("x", kind, total=20_000))
        # Offsets of texts are not the row's.
        texts = sum(pc.sum(pc.binary_length(c)).as_py() for c in rows.columns if c.type == "string")
        numbers = 8 * len(rows) * sum(c.type != "string" for c in rows.columns)
        assert 0.95 * size < (texts + numbers) / len(rows) < 1.05 * size


# ---- seeds and random access ----


def test_a_seed_gives_the_same_rows_and_another_seed_others() -> None:
    def rows(seed: int) -> list[Any]:
        found: list[Any] = table(NexmarkLog("b", "bid", total=500, seed=seed)).to_pylist()
        return found

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_rows_are_pinned_across_versions() -> None:
    batch = next(NexmarkLog("b", "bid", total=500, seed=7).read("0", 100, 103))
    assert batch.column("auction").to_pylist() == [1003, 1000, 1000]
    assert batch.column("price").to_pylist() == [13690066, 124, 1427]


def test_shuffling_changes_the_order_of_rows_and_nothing_else() -> None:
    def rows(shuffle: int) -> list[str]:
        log = NexmarkLog("b", "bid", total=1234, partitions=2, shuffle=shuffle)
        return [str(row) for row in table(log).to_pylist()]

    assert rows(1) != rows(7)
    assert sorted(rows(1)) == sorted(rows(7)) == sorted(rows(50))


def test_without_shuffle_or_delay_times_rise_by_the_rate() -> None:
    log = NexmarkLog("all", total=300, rate=1000)
    times = table(log, "_event_time").column(0).cast("int64").to_numpy()
    assert (np.diff(times) == 1000).all()
    assert times[0] == log.start_at
    assert log.snapshot({}).spans.disorder.tolist() == [0]


def test_skew_moves_the_times_of_a_partition_and_a_pause_stops_it_for_a_while() -> None:
    def times(**options: Any) -> list[list[int]]:
        log = NexmarkLog("all", total=1000, partitions=2, rate=100, **options)
        return [
            table(log, "_event_time", partitions=(name,)).column(0).cast("int64").to_pylist()
            for name in log.partitions
        ]

    second = timedelta(seconds=1)
    plain, skewed = times(), times(skew=[0 * second, -2 * second])
    assert skewed[0] == plain[0]
    assert skewed[1] == [time - 2_000_000 for time in plain[1]]
    paused = times(pauses=[(1, 5 * second, 60 * second)])
    assert paused[0] == plain[0]
    start = plain[0][0]
    assert paused[1] == [t + 60_000_000 if t - start >= 5_000_000 else t for t in plain[1]]


# ---- the true watermark ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": 7},
        {"shuffle": 40, "delayed": 0.2, "delay": timedelta(milliseconds=700)},
        {"delayed": 1.0, "delay": timedelta(seconds=2), "kind": "auction"},
        {"shuffle": 13, "pauses": [(1, timedelta(seconds=2), timedelta(seconds=3))]},
    ],
)
def test_the_true_watermark_is_the_smallest_time_still_to_come(options: dict[str, Any]) -> None:
    log = NexmarkLog("x", total=1100, partitions=2, rate=200, **{"kind": "bid", **options})
    for name in log.partitions:
        times = table(log, "_event_time", partitions=(name,)).column(0).cast("int64").to_pylist()
        for offset in range(len(times)):
            assert log.true_watermark(name, offset) == min(times[offset:])
        with pytest.raises(TidegateError) as refused:
            log.true_watermark(name, len(times))
        assert refused.value.code == "log-offsets-missing"


# ---- live ----


def test_a_live_log_grows_with_its_clock_and_ends_at_its_total() -> None:
    clock = ManualClock(5_000_000)
    log = NexmarkLog(
        "all", total=400, rate=100, live=True, start_at=5_000_000, shuffle=10, clock=clock.now
    )
    seen = []
    for _ in range(6):
        partitions = log.snapshot({}).partitions
        seen.append((int(partitions.latest[0]), bool(partitions.ended[0])))
        assert not partitions.latest[0] or partitions.arrived_at[0] <= clock.now()
        clock.advance(timedelta(seconds=1, milliseconds=5))
    assert seen == [
        (0, False), (100, False), (200, False), (300, False), (400, True), (400, True),
    ]  # fmt: skip


def test_a_log_without_a_total_is_live_and_has_no_end() -> None:
    clock = ManualClock(7_300_000)
    log = NexmarkLog("b", "bid", rate=10_000, clock=clock.now)
    assert (log.bounded, log.start_at) == (False, 7_000_000)
    clock.advance(timedelta(seconds=9, milliseconds=700))
    partitions = log.snapshot({}).partitions
    assert abs(int(partitions.latest[0]) - 92_000) < 100
    assert not partitions.ended[0]
    assert micros(timedelta(seconds=10)) == clock.now() - log.start_at


@pytest.mark.parametrize(
    ("setting", "options"),
    [
        ("kind", {"kind": "bids"}),
        ("total", {"total": -1}),
        ("live", {"live": False}),
        ("partitions", {"total": 1, "partitions": 0}),
        ("delayed", {"total": 1, "delayed": 1.5}),
        ("skew", {"total": 1, "partitions": 2, "skew": [timedelta(0)]}),
        ("pauses", {"total": 1, "pauses": [(1, timedelta(0), timedelta(0))]}),
    ],
)
def test_options_that_cannot_be_are_refused(setting: str, options: dict[str, Any]) -> None:
    with pytest.raises(TidegateError) as refused:
        NexmarkLog("x", **options)
    assert (refused.value.code, refused.value.fields["name"]) == ("wrong-setting", setting)
