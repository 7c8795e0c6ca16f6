"""The headline workload: what one global watermark loses, and the planner does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.testing.headline import (
    TWO_HOURS,
    Chunk,
    Headline,
    OneGlobalWatermark,
    Outcome,
    Planned,
    Way,
    deliver,
)

HEADLINE = Headline()
SMALL = Headline(rows=120, traders=5, symbols=10, partitions=4)


@cache
def outcomes(headline: Headline) -> dict[str, Outcome]:
    ways: dict[str, Way] = {
        "global": OneGlobalWatermark(headline),
        "delayed": OneGlobalWatermark(headline, TWO_HOURS),
        "tidegate": Planned(headline),
    }
    for _ in deliver(headline, *ways.values()):
        pass
    return {name: way.finish() for name, way in ways.items()}


def kept_by_one_maximum(chunks: list[Chunk], delay: timedelta, lag: int) -> int:
    """Rows kept, in seconds and by hand; `lag` is how many batches ago the judge was asked."""
    watermarks = [0.0] * (lag + 1)
    highest, kept = 0.0, 0
    for chunk in chunks:
        seconds = [row.time / 1_000_000 for row in chunk.rows]
        kept += sum((second // 60 + 1) * 60 > watermarks[-1 - lag] for second in seconds)
        highest = max(highest, *seconds)
        watermarks.append(highest - delay.total_seconds())
    return kept


def test_the_workload_is_ten_thousand_rows_a_second_apart() -> None:
    rows = list(HEADLINE.all_rows())
    assert len(rows) == 10_000
    assert rows[0].time == 1_000_000 * 1000
    assert rows[9_999].time == (1_000_000 + 1000 * 9_999) * 1000
    assert rows[137].key == (37, 37)
    assert rows[160].key == (10, 60)


def test_it_is_delivered_partition_after_partition_and_in_order_within_each() -> None:
    chunks = HEADLINE.chunks()
    visited = list(dict.fromkeys(chunk.partition for chunk in chunks))
    assert visited == HEADLINE.partition_names()
    assert sorted(chunks, key=lambda c: (int(c.partition), c.rows[0].time)) == chunks
    assert sum(len(chunk.rows) for chunk in chunks) == 10_000
    homes: dict[tuple[int, int], set[str]] = {}
    for chunk in chunks:
        for row in chunk.rows:
            homes.setdefault(row.key, set()).add(chunk.partition)
    assert all(len(home) == 1 for home in homes.values())


def test_one_global_watermark_keeps_a_few_hundred_rows() -> None:
    outcome = outcomes(HEADLINE)["global"]
    assert (outcome.kept, outcome.lost) == (319, 9_681)
    assert outcome.windows_right(HEADLINE.truth()) == 1


def test_two_hours_of_delay_still_lose_a_quarter() -> None:
    outcome = outcomes(HEADLINE)["delayed"]
    assert (outcome.kept, outcome.lost) == (7_303, 2_697)
    assert outcome.windows_right(HEADLINE.truth()) == 121


def test_the_minimum_over_partitions_keeps_every_row() -> None:
    outcome = outcomes(HEADLINE)["tidegate"]
    assert (outcome.kept, outcome.lost) == (10_000, 0)
    assert outcome.results == HEADLINE.truth()
    assert outcome.windows_right(HEADLINE.truth()) == 168


@pytest.mark.parametrize("way", ["global", "delayed", "tidegate"])
def test_every_row_is_kept_or_lost_and_none_counted_twice(way: str) -> None:
    outcome = outcomes(HEADLINE)[way]
    assert outcome.kept + outcome.lost == HEADLINE.rows
    assert not outcome.results - HEADLINE.truth()


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize(("way", "delay"), [("global", timedelta(0)), ("delayed", TWO_HOURS)])
def test_the_global_watermark_counts_as_by_hand_whichever_batch_it_judges_by(
    way: str, delay: timedelta, lag: int
) -> None:
    assert kept_by_one_maximum(HEADLINE.chunks(), delay, lag) == outcomes(HEADLINE)[way].kept


@pytest.mark.parametrize("poll", [7, 100, 10_000])
def test_the_size_of_a_poll_changes_nothing(poll: int) -> None:
    headline = replace(HEADLINE, poll=poll)
    spark = OneGlobalWatermark(headline)
    assert len(list(deliver(headline, spark))) == len(headline.chunks())
    assert spark.finish().kept == 319


def test_the_small_case_closes_what_the_document_says() -> None:
    truth, found = SMALL.truth(), outcomes(SMALL)
    assert len(truth) == 30
    assert (found["global"].lost, found["global"].closed) == (64, 4)
    assert (found["tidegate"].lost, found["tidegate"].closed) == (0, 20)
    assert found["tidegate"].results == truth


def test_the_planner_waits_for_the_last_partition_before_it_claims_anything() -> None:
    tidegate = Planned(SMALL)
    delivered = [chunk.partition for chunk in deliver(SMALL, tidegate)]
    last = delivered.index(SMALL.partition_names()[-1])
    assert all(moment.watermark is UNKNOWN for moment in tidegate.history[:last])
    claims = [moment.watermark for moment in tidegate.history[last:]]
    numbers = [min(n for n in m.numbers if n is not UNKNOWN) for m in tidegate.history[last:]]
    assert claims == [number - 1 for number in numbers]


def test_a_window_with_a_missing_or_an_extra_row_is_not_right() -> None:
    truth = Counter({(0, (1, 1)): 2, (60, (1, 1)): 1})
    assert Outcome(3, 0, truth, 0).windows_right(truth) == 2
    assert Outcome(2, 1, Counter({(0, (1, 1)): 1, (60, (1, 1)): 1}), 0).windows_right(truth) == 1
    assert Outcome(2, 1, Counter({(0, (1, 1)): 2}), 0).windows_right(truth) == 1
    assert Outcome(4, 0, truth + Counter({(0, (2, 2)): 1}), 0).windows_right(truth) == 1
