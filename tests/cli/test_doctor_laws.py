"""What the doctor says of an input, held against judges that look at one row after the other."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.cli.doctor.arrivals import Arrivals, Batching
from tidegate.cli.doctor.planned import largest_disorder, planned
from tidegate.cli.doctor.stock import stock_spark
from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.instants import micros
from tidegate.eventtime.lateness import InWindows
from tidegate.eventtime.tracker import PartitionedWatermarkTracker, PartitionId
from tidegate.eventtime.watermark import UNKNOWN, Known, claim

NAMES = ["a", "b", "c"]
MINUTE = timedelta(minutes=1)
Pieces = list[tuple[str, list[int | None]]]

times = st.integers(min_value=1, max_value=600_000_000)
files = st.tuples(st.sampled_from(NAMES), st.lists(st.none() | times, max_size=6))
inputs: st.SearchStrategy[Pieces] = st.lists(files, min_size=1, max_size=12)
delays = st.integers(min_value=0, max_value=300_000).map(lambda ms: timedelta(milliseconds=ms))
batchings = st.builds(
    Batching, st.integers(min_value=1, max_value=3), st.none() | st.integers(1, 5)
)
many = settings(max_examples=50, deadline=None)


def naive_batches(pieces: Pieces, batching: Batching) -> list[list[tuple[str, int]]]:
    """Rows one by one into batches; those without a time take a place, and are then left out."""
    batches: list[list[tuple[str, int | None]]] = []
    if batching.rows is not None:
        rows = [(name, time) for name, found in pieces for time in found]
        size = batching.rows
        batches = [rows[i : i + size] for i in range(0, len(rows), size)]
    else:
        for start in range(0, len(pieces), batching.files):
            taken = pieces[start : start + batching.files]
            batches.append([(name, time) for name, found in taken for time in found])
    return [[(name, time) for name, time in batch if time is not None] for batch in batches]


def naive_stock(
    batches: list[list[tuple[str, int]]], window: timedelta | None, delay: timedelta, live: bool
) -> list[bool]:
    """Spark's rule in Spark's words: watermarks of batches, in milliseconds."""
    lost, watermarks, largest = [], [0], 0
    for number, batch in enumerate(batches):
        late_by = watermarks[number if live else max(number - 1, 0)]
        for _, time in batch:
            size = micros(window) if window else 0
            end = time // size * size + size if size else time
            lost.append(end <= late_by * 1000)
            largest = max(largest, time // 1000)
        moved = largest - micros(delay) // 1000 if largest else 0
        watermarks.append(max(watermarks[-1], moved))
    return lost


windows = st.sampled_from([None, timedelta(seconds=7), MINUTE])


@many
@given(inputs, batchings, windows, delays, st.booleans())
def test_one_watermark_loses_what_a_judge_of_single_rows_says(
    pieces: Pieces, batching: Batching, window: timedelta | None, delay: timedelta, live: bool
) -> None:
    arrivals = Arrivals.of(NAMES, pieces, batching)
    batches = naive_batches(pieces, batching)
    assert [len(arrivals.times[rows]) for rows in arrivals.batches()] == [len(b) for b in batches]
    told = stock_spark(arrivals, window, delay, live=live)
    assert told.lost.tolist() == naive_stock(batches, window, delay, live)


@many
@given(inputs, batchings, windows, st.booleans())
def test_the_delay_that_is_needed_loses_nothing_and_a_millisecond_less_does(
    pieces: Pieces, batching: Batching, window: timedelta | None, live: bool
) -> None:
    arrivals = Arrivals.of(NAMES, pieces, batching)
    needed = stock_spark(arrivals, window, timedelta(0), live=live).needed
    assert needed is not None
    assert not stock_spark(arrivals, window, needed, live=live).lost.any()
    if needed:
        less = needed - timedelta(milliseconds=1)
        assert stock_spark(arrivals, window, less, live=live).lost.any()


@many
@given(inputs.filter(lambda pieces: any(t for _, p in pieces for t in p)), batchings, windows)
def test_tidegate_loses_nothing_with_the_largest_disorder_as_tolerance(
    pieces: Pieces, batching: Batching, window: timedelta | None
) -> None:
    arrivals = Arrivals.of(NAMES, pieces, batching)
    assert not planned(arrivals, window, largest_disorder(arrivals)).lost.any()


@many
@given(inputs, batchings, delays)
def test_the_planner_is_fed_as_a_tracker_of_partitions_would_be(
    pieces: Pieces, batching: Batching, tolerance: timedelta
) -> None:
    """The same watermarks and losses from the tracker, row by row."""
    arrivals = Arrivals.of(NAMES, pieces, batching)
    told = planned(arrivals, MINUTE, tolerance)
    tracker = PartitionedWatermarkTracker()
    tracker.register_source(0, len(NAMES))
    generators = {name: BoundedDisorder(tolerance).build() for name in NAMES}
    lost, watermarks = [], []
    closed: Known = UNKNOWN
    for batch in naive_batches(pieces, batching):
        for name, time in batch:
            lost.append(InWindows(MINUTE).is_lost(time, closed))
            generators[name].on_event(time)
        for number, name in enumerate(NAMES):
            if isinstance(mark := generators[name].current(), int):
                tracker.update_partition(PartitionId(0, number), mark)
        closed = tracker.current_watermark()
        watermarks.append(claim(closed))
    assert told.watermarks == watermarks
    assert told.lost.tolist() == lost


def test_rows_before_1970_are_beyond_help() -> None:
    arrivals = Arrivals.of(["a"], [("a", [-120_000_000, 5])])
    told = stock_spark(arrivals, MINUTE, timedelta(hours=1))
    assert told.lost.tolist() == [True, False]
    assert told.needed is None


def test_heirs_of_a_sealed_partition_do_not_hold_the_watermark_before_they_begin() -> None:
    made = Arrivals.of(["a", "b"], [("a", [10, 20]), ("b", [30])])
    heirs = Arrivals(made.names, made.times, made.partition, made.ends, successors={"a": ("b",)})
    alone = planned(made, MINUTE, timedelta(0)).watermarks
    assert alone[0] is UNKNOWN
    assert planned(heirs, MINUTE, timedelta(0)).watermarks[-1] == 29
