"""Marks: what they claim is true, they never go back, and they keep coming."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.lineages import covers_exactly_once, steps
from tests.laws.marked_log import MarkedLog

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks import (
    Cut,
    Generation,
    Lineage,
    Mark,
    MarkPolicy,
    TimeIndex,
    TimeWindow,
    WriterMark,
    WriterMarks,
    cycle,
    time_at,
    time_window,
)

names = st.sampled_from(["a", "b", "c"])
keys = st.integers(0, 11).map(lambda n: Fraction(n, 12))
ahead = st.integers(0, 6)
which = st.integers(0, 3)
commit_times = st.none() | st.integers(-6, 6)
inner_bounds = st.sets(st.integers(1, 5), max_size=2)

Act = Callable[[MarkedLog], None]


# How often each thing happens, out of one round of them all.
ACTS: list[tuple[int, st.SearchStrategy[Act]]] = [
    (6, st.builds(lambda w, k, t: lambda log: log.append(w, k, t), names, keys, ahead)),
    (6, st.builds(lambda w, t: lambda log: log.note(w, t), names, ahead)),
    (4, st.builds(lambda passed: lambda log: log.cycle(passed), st.integers(0, 2))),
    (1, st.builds(lambda w: lambda log: log.register(w), names)),
    (1, st.builds(lambda w: lambda log: log.begin(w), names)),
    (2, st.builds(lambda w, k, t, n: lambda log: log.put(w, k, t, n), names, keys, ahead, which)),
    (2, st.builds(lambda w, n, t: lambda log: log.commit(w, n, t), names, which, commit_times)),
    (1, st.builds(lambda w, n: lambda log: log.abort(w, n), names, which)),
    (1, st.builds(lambda w: lambda log: log.goodbye(w), names)),
    (1, st.builds(lambda n, inner: lambda log: log.scale(n, inner), which, inner_bounds)),
]


@st.composite
def marked_logs(draw: st.DrawFn) -> MarkedLog:
    """A log after a random schedule, long enough for a few marks."""
    log = MarkedLog(draw(st.integers(1, 3)), timeout=draw(st.integers(0, 5)))
    kinds = st.sampled_from([kind for weight, kind in ACTS for _ in range(weight)])
    for _ in range(draw(st.integers(40, 80))):
        log.step += 1
        draw(draw(kinds))(log)
    return log


@st.composite
def places(draw: st.DrawFn, log: MarkedLog) -> Cut:
    """A place in the log that a reader can come to."""
    done = draw(st.sets(st.sampled_from(sorted(log.lineage.segments))))
    return Cut(
        {
            name: draw(st.integers(0, log.tails.get(name, 0)))
            for name in log.lineage.frontier(done.__contains__)
        }
    )


some = settings(max_examples=100, deadline=None)


@some
@given(marked_logs())
def test_every_row_before_a_marks_lower_number_lies_before_its_cut(log: MarkedLog) -> None:
    # All rows of the whole run, so also those that came after the mark.
    for mark in log.marks:
        for row in log.rows:
            if row.writer in mark.writers and row.time < mark.lower:
                assert row.lies_before(mark.cut, log.lineage)


@some
@given(marked_logs())
def test_marks_never_go_back_and_their_cuts_cover_the_key_space_exactly_once(
    log: MarkedLog,
) -> None:
    for mark in log.marks:
        assert mark.lower <= mark.upper
        assert covers_exactly_once(log.lineage, mark.cut)
    for before, after in pairwise(log.marks):
        assert before.lower < after.lower
        assert before.upper <= after.upper
        assert steps(log.lineage, before.cut) <= steps(log.lineage, after.cut)


@some
@given(marked_logs(), st.data())
def test_the_window_of_a_reader_holds_at_every_place(log: MarkedLog, data: st.DataObject) -> None:
    place = data.draw(places(log))
    lower, upper = time_window(place, log.marks, log.lineage)
    if lower is not None and upper is not None:
        assert lower <= upper
    if lower is not None:
        latest = {writer: number for _, writer, number in log.counted}
        mark = next(mark for mark in log.marks if mark.lower == lower)
        assert all(lower <= latest[writer] for writer in mark.writers)
        assert all(
            row.time >= lower
            for row in log.rows
            if row.writer in mark.writers and not row.lies_before(place, log.lineage)
        )
    if upper is not None:
        read = [row.step for row in log.rows if row.lies_before(place, log.lineage)]
        assert all(
            number <= upper for step, _, number in log.counted if step < max(read, default=0)
        )


@some
@given(marked_logs(), st.data())
def test_windows_and_times_are_what_looking_at_every_mark_says(
    log: MarkedLog, data: st.DataObject
) -> None:
    place = data.draw(places(log))
    here = steps(log.lineage, place)
    passed = [mark.lower for mark in log.marks if steps(log.lineage, mark.cut) <= here]
    to_come = [mark.upper for mark in log.marks if here < steps(log.lineage, mark.cut)]
    assert time_window(place, log.marks, log.lineage) == TimeWindow(
        max(passed, default=None), min(to_come, default=None)
    )
    assert time_at(place, log.marks, log.lineage) == max(passed, default=UNKNOWN)


# ---- marks keep coming ----

deeds = st.sampled_from(["silence", "silence", "ahead", "behind", "register", "goodbye"])


@some
@given(
    st.lists(st.tuples(st.integers(1, 3), deeds, deeds, deeds), min_size=12, max_size=40),
    st.integers(0, 7),
    st.booleans(),
)
def test_while_one_writer_keeps_noting_a_mark_comes_within_the_timeout_unless_a_sink_holds_it(
    rounds: list[tuple[int, str, str, str]], timeout: int, with_sink: bool
) -> None:
    lineage, policy = Lineage.start(1), MarkPolicy(timedelta(microseconds=timeout))
    writers, state, now = WriterMarks(), Generation(), 0
    if with_sink:
        writers.register("w0", sink=True)
    waits_since: int | None = None
    for number, (passed, *others) in enumerate(rounds, start=1):
        now += passed
        writers.note("busy", number, Cut(), lineage)
        for place, deed in enumerate(others):
            name = f"w{place}"
            known = writers.get(name)
            if deed == "register":
                writers.register(name)
            elif deed == "goodbye" and known is not None:
                writers.goodbye(name)
            elif deed in ("ahead", "behind"):
                noted = 0 if known is None or known.time is UNKNOWN else known.time
                writers.note(name, number if deed == "ahead" else noted, Cut(), lineage)
        if waits_since is None:
            waits_since = now
        done = cycle(state, writers, lineage, now=now, policy=policy)
        state = Generation.from_json(json.loads(json.dumps(done.state.to_json())))
        for seen in done.dropped:
            assert not seen.sink or not seen.alive
            writers.remove(seen)
        if done.mark is not None:
            assert not done.held_by
            assert "busy" in done.mark.writers
            waits_since = None
        elif any(mark.sink and mark.writer in done.held_by for mark in writers):
            waits_since = None
        else:
            assert now - waits_since < timeout


# ---- the time index ----

spans = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=6)


@some
@given(st.lists(spans, min_size=1, max_size=3), st.integers(-1, 10))
def test_every_row_at_or_after_a_time_lies_behind_its_cut_and_the_first_span_has_one(
    partitions: list[list[list[int]]], time: int
) -> None:
    index = TimeIndex()
    for number, batches in enumerate(partitions):
        index.add(str(number))
        start = 0
        for batch in batches:
            index.append(str(number), start, start + len(batch), latest=max(batch))
            start += len(batch)
    cut = index.cut_at(time)
    for number, batches in enumerate(partitions):
        rows = [t for batch in batches for t in batch]
        starts = [sum(len(batch) for batch in batches[:n]) for n in range(len(batches))]
        hits = [at for at, batch in zip(starts, batches, strict=True) if max(batch) >= time]
        assert cut[str(number)] == min(hits, default=len(rows))
        assert all(t < time for t in rows[: cut[str(number)]])


# ---- what is written is what is read ----


@some
@given(marked_logs())
def test_everything_that_must_last_survives_json(log: MarkedLog) -> None:
    assert Lineage.from_json(json.loads(json.dumps(log.lineage.to_json()))) == log.lineage
    for mark in log.registry:
        assert WriterMark.from_json(json.loads(json.dumps(mark.to_json()))) == mark
    for emitted in log.marks:
        assert Mark.from_json(json.loads(json.dumps(emitted.to_json()))) == emitted
    state = Generation.from_json(json.loads(log.state))
    assert json.loads(json.dumps(state.to_json())) == json.loads(log.state)
