"""One suite for every log: what a planner is told must be true of the rows that are read.

Each log is opened with rows, and says how to append and how to end it. The oracle is naive: it
reads every row there is and counts.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contracts.log_makers import MAKERS, Made

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import Log, facts_of, open_log
from tidegate.logs.store_log import StoreLog
from tidegate.planning import PlannerState, Policy, Query, Release, Spans, plan

Row = tuple[str, int]


@pytest.fixture(params=sorted(MAKERS))
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    maker: Callable[[Path], Made] = MAKERS[request.param]
    made = maker(tmp_path)
    yield made
    made.close()


# ---- the naive oracle ----


def times_of(log: Log) -> dict[str, dict[int, int]]:
    """Per partition the event time of every good row, by offset."""
    partitions = log.snapshot({}).partitions
    found: dict[str, dict[int, int]] = {}
    for name, latest in zip(partitions.names, partitions.latest.tolist(), strict=True):
        rows: dict[int, int] = {}
        for batch in log.read(name, 0, latest, ["_offset", "_event_time"]):
            offsets = batch.column("_offset").to_pylist()
            times = batch.column("_event_time").cast("int64").to_pylist()
            rows |= dict(zip(offsets, times, strict=True))
        found[name] = rows
    return found


def disorder_of(rows: dict[int, int], start: int, end: int) -> int:
    highest, worst = None, 0
    for offset, time in sorted(rows.items()):
        if offset >= end:
            break
        if highest is not None and offset >= start:
            worst = max(worst, highest - time)
        highest = time if highest is None else max(highest, time)
    return worst


def listed(spans: Spans) -> list[tuple[str, int, int]]:
    return [
        (spans.names[place], int(start), int(end))
        for place, start, end in zip(spans.partition, spans.start, spans.end, strict=True)
    ]


def cut_of(log: Log) -> dict[str, int]:
    partitions = log.snapshot({}).partitions
    return dict(zip(partitions.names, partitions.latest.tolist(), strict=True))


# ---- the planner's questions ----


def test_the_statistics_of_a_span_are_those_of_its_rows(made: Made) -> None:
    spans, times = made.log.snapshot({}).spans, times_of(made.log)
    assert len(spans) > 1
    for i, (name, start, end) in enumerate(listed(spans)):
        inside = [time for offset, time in times[name].items() if start <= offset < end]
        assert spans.rows[i] == end - start
        bad = made.log.bad_rows(name, start, end)
        assert len(inside) + len(bad) == end - start
        assert spans.timed[i] == bool(inside)
        if inside:
            assert (spans.min_time[i], spans.max_time[i]) == (min(inside), max(inside))
            assert spans.disorder[i] == disorder_of(times[name], start, end)


def test_the_spans_behind_a_cut_cover_it_without_gaps(made: Made) -> None:
    latest = cut_of(made.log)
    for share in (0.0, 0.3, 0.5, 1.0):
        after = {name: int(end * share) for name, end in latest.items()}
        position = dict(after)
        for name, start, end in listed(made.log.snapshot(after).spans):
            assert start <= position[name] < end
            position[name] = end
        assert position == latest


def test_a_partition_that_the_cut_does_not_have_is_told_from_its_beginning(made: Made) -> None:
    name, *_ = cut_of(made.log)
    spans = listed(
        made.log.snapshot({n: e for n, e in cut_of(made.log).items() if n != name}).spans
    )
    assert {span[0] for span in spans} == {name}
    assert min(span[1] for span in spans) == 0


def test_overlapping_gives_every_span_with_a_time_inside_and_none_wholly_outside(
    made: Made,
) -> None:
    times = times_of(made.log)
    latest = cut_of(made.log)
    ordered = sorted(time for rows in times.values() for time in rows.values())
    some = [ordered[0], ordered[len(ordered) // 3], ordered[len(ordered) // 2], ordered[-1]]
    cuts = [
        ({}, latest),
        ({n: e // 3 for n, e in latest.items()}, {n: e * 2 // 3 for n, e in latest.items()}),
    ]
    for start, below in cuts:
        moments: list[Known] = [UNKNOWN, *some]
        for a in moments:
            for b in (*some, ordered[-1] + 1):
                spans = made.log.overlapping(a, b, start, below)
                covered = {
                    (name, offset)
                    for name, first, last in listed(spans)
                    for offset in range(first, last)
                }
                wanted = {
                    (name, offset)
                    for name, rows in times.items()
                    for offset, time in rows.items()
                    if start.get(name, 0) <= offset < below[name]
                    and time < b
                    and (a is UNKNOWN or time >= a)
                }
                assert wanted <= covered
                assert all(start.get(n, 0) <= offset < below[n] for n, offset in covered)
                assert (spans.min_time < b).all()
                assert a is UNKNOWN or (spans.max_time >= a).all()


def test_every_row_at_or_after_a_time_lies_behind_the_cut_at_it(made: Made) -> None:
    times = times_of(made.log)
    ordered = sorted(time for rows in times.values() for time in rows.values())
    for moment in (ordered[0] - 1, ordered[len(ordered) // 2], ordered[-1], ordered[-1] + 1):
        cut = made.log.cut_at(moment)
        for name, rows in times.items():
            assert all(offset >= cut[name] for offset, t in rows.items() if t >= moment)
    assert dict(made.log.cut_at(ordered[-1] + 1)) == cut_of(made.log)


# ---- rows ----


def test_any_range_and_any_columns_can_be_read_and_twice_gives_the_same(made: Made) -> None:
    log = made.log
    column = log.schema.names[0]
    for name, latest in cut_of(log).items():
        whole = [
            row for b in log.read(name, 0, latest, [column, "_offset"]) for row in b.to_pylist()
        ]
        for start, end in ((0, latest), (latest // 3, latest * 2 // 3), (latest, latest), (1, 2)):
            for order in (["_offset", column], [column, "_offset"]):
                batches = list(log.read(name, start, end, order))
                assert all(batch.schema.names == order for batch in batches)
                rows = [row for batch in batches for row in batch.to_pylist()]
                assert rows == [row for row in whole if start <= row["_offset"] < end]
        for batch in log.read(name, 0, latest):
            assert batch.schema == log.schema


def test_rows_are_filtered_by_time(made: Made) -> None:
    times = times_of(made.log)
    ordered = sorted(time for rows in times.values() for time in rows.values())
    low, high = ordered[len(ordered) // 4], ordered[len(ordered) // 2]
    for a, b in ((low, high), (UNKNOWN, high), (high, high)):
        for name, rows in times.items():
            read = made.log.read(name, 0, cut_of(made.log)[name], ["_offset"], times=(a, b))
            found = [offset for batch in read for offset in batch.column(0).to_pylist()]
            assert found == [
                o for o, t in sorted(rows.items()) if t < b and (a is UNKNOWN or t >= a)
            ]


@pytest.mark.parametrize(
    ("columns", "code"), [(["nonesuch"], "unknown-column"), (["_offset", "x y"], "unknown-column")]
)
def test_a_column_nobody_has_is_refused(made: Made, columns: list[str], code: str) -> None:
    name = next(iter(cut_of(made.log)))
    with pytest.raises(TidegateError) as refused:
        list(made.log.read(name, 0, 1, columns))
    assert refused.value.code == code


# ---- change ----


def test_the_version_changes_when_rows_are_appended_and_not_otherwise(made: Made) -> None:
    before, rows = made.log.version(), times_of(made.log)
    assert made.log.version() == before
    if made.append is None:  # it has all its rows from the beginning
        return
    made.append()
    assert made.log.version() != before
    after = times_of(made.log)
    grown = {name: {o: t for o, t in after[name].items() if o in old} for name, old in rows.items()}
    assert grown == rows, "an offset never changes its row"
    assert sum(map(len, after.values())) > sum(map(len, rows.values()))
    latest = {name: max(old, default=-1) + 1 for name, old in rows.items()}
    behind = listed(made.log.snapshot(latest).spans)
    assert sum(end - start for _, start, end in behind) > 0


def test_the_same_log_is_opened_from_its_description(made: Made) -> None:
    for copy in (open_log(made.log.describe()), pickle.loads(pickle.dumps(made.log))):
        assert copy.name == made.log.name
        assert copy.schema == made.log.schema
        assert copy.describe() == made.log.describe()
        for name, latest in cut_of(made.log).items():
            mine = [b.to_pydict() for b in made.log.read(name, 0, latest)]
            assert [b.to_pydict() for b in copy.read(name, 0, latest)] == mine
        if isinstance(copy, StoreLog):
            copy.close()


# ---- a whole job ----


# Law 9: with a tolerance of the true disorder no row is late, so all are released.
@pytest.mark.parametrize("release", list(Release))
def test_a_job_over_the_log_gives_every_row_once(made: Made, release: Release) -> None:
    assert not made.log.bounded or made.ends_itself
    if made.end is not None:
        made.end()
        assert made.log.bounded
    log, times = made.log, times_of(made.log)
    worst = int(log.snapshot({}).spans.disorder.max())
    query = Query.windows([log.name], timedelta(seconds=1))
    policy = Policy(
        release=release,
        tolerance=timedelta(microseconds=worst),
        idle_after=None,
        max_rows=sum(map(len, times.values())) // 5,
    )
    state, given = PlannerState.fresh("contract", [log.name]), Counter[Row]()
    for _ in range(200):
        state, batch = plan(state, facts_of({log.name: log}, state), query, policy, 0)
        if batch.slice is not None:
            for task in batch.slice.tasks:
                bounds = (task.interval.a, task.interval.b)
                for name, start, end in listed(task.reads[log.name]):
                    for part in log.read(name, start, end, ["_offset"], times=bounds):
                        given.update((name, o) for o in part.column(0).to_pylist())
        elif batch.moved and release is Release.ARRIVAL:
            for name, (start, end) in batch.streams[log.name].ranges().items():
                for part in log.read(name, start, end, ["_offset"]):
                    given.update((name, o) for o in part.column(0).to_pylist())
        if batch.finished or not batch.moved:
            break
    assert batch.finished == (made.end is not None), batch.holds
    closed = state.released
    given_out = release is Release.ARRIVAL or batch.finished
    assert given_out or closed is not UNKNOWN
    assert given == Counter(
        (name, offset)
        for name, rows in times.items()
        for offset, time in rows.items()
        if given_out or (closed is not UNKNOWN and time < closed)
    )
    assert given
