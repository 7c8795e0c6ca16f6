"""Laws of progress: nothing goes back, and no row comes before what a sink was told.

The small graph has branches, nodes with two inputs, two sinks of different speed and two workers.
After every message the frontier of every node is compared with an oracle that knows nothing but the
history of the inputs and four one-line rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.progress import (
    Aggregate,
    Collect,
    Data,
    Ending,
    Filter,
    Graph,
    InjectWatermarks,
    Map,
    Plan,
    Run,
    Session,
    Sliding,
    Tumbling,
    Union,
    WindowRow,
)
from tidegate.progress.windows import Windows


def us(number: int) -> timedelta:
    return timedelta(microseconds=number)


TEN, GAP, SIZE, SLIDE = 10, 7, 12, 5

WINDOWS = st.sampled_from(
    [Tumbling(us(TEN)), Sliding(us(SIZE), us(SLIDE)), Sliding(us(10), us(5)), Session(us(GAP))]
)


def small_graph() -> Graph:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    graph.sink("raw", a)
    even = graph.add("even", Filter(lambda item: item % 2 == 0), a)
    both = graph.add("both", Union(), even, b)
    tens = graph.add("tens", Aggregate(Tumbling(us(TEN))), both)
    graph.sink("slow", tens, config=Collect(at_once=False))
    graph.sink("late", tens.output("late"))
    visits = graph.add("visits", Aggregate(Session(us(GAP))), a)
    names = graph.add("names", Map(lambda row: row.start), visits)
    hops = graph.add("hops", Aggregate(Sliding(us(SIZE), us(SLIDE))), names, b)
    graph.sink("hopping", hops)
    return graph


# ---- the oracle: what each node may say, from the history of the inputs alone ----


@dataclass
class Said:
    """What has been said at one place of the graph."""

    number: int | None = None
    idle: bool = False
    ending: Ending | None = None


def least(previous: int | None, parts: list[Said]) -> Said:
    """The rule for several inputs: the minimum over those one waits for, and never back."""
    waited = [part for part in parts if part.ending is not Ending.GRACEFUL]
    active = [part for part in waited if not part.idle]
    known = [part.number for part in active or waited if part.number is not None]
    if active:
        number = min(known) if len(known) == len(active) else None
    else:
        number = max(known, default=None)
    if previous is not None:
        number = previous if number is None else max(previous, number)
    ending = None
    if all(part.ending for part in parts):
        quick = any(part.ending is Ending.QUICK for part in parts)
        ending = Ending.QUICK if quick else Ending.GRACEFUL
    return Said(number, not active, ending)


def first_after(number: int | None, ends: range) -> int | None:
    """What a window node says: just before the first end after the number, by trying them all."""
    return None if number is None else next(end for end in ends if end > number) - 1


FAR = 1000
TENS = range(-FAR, FAR, TEN)
HOPS = range(-FAR * SLIDE + SIZE, FAR, SLIDE)


@dataclass
class Oracle:
    a: Said = field(default_factory=Said)
    b: Said = field(default_factory=Said)
    _heard: dict[str, int | None] = field(default_factory=dict)

    def _hear(self, name: str, *parts: Said) -> Said:
        said = least(self._heard.get(name), list(parts))
        self._heard[name] = said.number
        return said

    def frontiers(self) -> dict[str, int | None]:
        even = self._hear("even", self.a)
        both = self._hear("both", even, self.b)
        visits = self._hear("visits", self.a)
        mixed = self._hear("hops", visits, self.b)
        tens, hops = first_after(both.number, TENS), first_after(mixed.number, HOPS)
        return {
            "a": self.a.number,
            "b": self.b.number,
            "raw": self.a.number,
            "even": even.number,
            "both": both.number,
            "tens": tens,
            "told slow": tens,
            "late": both.number,
            "visits": visits.number,
            "names": visits.number,
            "hops": hops,
            "hopping": hops,
        }


# ---- what happens: (worker, what) ----

TIMES = st.integers(-20, 60)
SENDS = st.tuples(st.just("send"), st.sampled_from("ab"), TIMES)
ADVANCES = st.tuples(st.just("advance"), st.sampled_from("ab"), st.integers(0, 25))
IDLES = st.tuples(st.just("idle"), st.sampled_from("ab"), st.just(0))
ENDS = st.tuples(st.sampled_from(["end", "quick"]), st.sampled_from("ab"), st.just(0))
TAKES = st.tuples(st.just("take"), st.just("slow"), st.just(0))

Happening = tuple[str, str, int]


def happenings(*kinds: st.SearchStrategy[Happening]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(st.integers(0, 1), st.one_of(*kinds)), max_size=40)


def happen(run: Run, oracle: Oracle, happening: Happening) -> None:
    """Do one thing to the run, and note it for the oracle."""
    what, name, amount = happening
    if what == "take":
        run.sink(name).take()
        return
    source, said = run.input(name), oracle.a if name == "a" else oracle.b
    if said.ending is not None:
        return
    if what == "send":
        source.send(amount, amount)
        said.idle = False
    elif what == "advance":
        said.number = amount - 20 if said.number is None else said.number + amount
        source.advance_to(said.number)
        said.idle = False
    elif what == "idle":
        source.idle()
        said.idle = True
    else:
        said.ending = Ending.GRACEFUL if what == "end" else Ending.QUICK
        source.end(said.ending)


def plain(value: Known) -> int | None:
    return None if value is UNKNOWN else value


@settings(max_examples=150, deadline=None)
@given(happenings(SENDS, SENDS, ADVANCES, ADVANCES, ADVANCES, IDLES, ENDS, TAKES))
def test_after_every_message_every_frontier_is_what_the_oracle_says(
    script: list[tuple[int, Happening]],
) -> None:
    workers, progress = small_graph().execute_on_workers(2)
    oracles = [Oracle(), Oracle()]
    taken: list[int | None] = [None, None]
    for worker, happening in script:
        run, oracle = workers[worker], oracles[worker]
        happen(run, oracle, happening)
        expected = oracle.frontiers()
        told = expected.pop("told slow")
        if happening[0] == "take" and run.progress("slow").ending is not Ending.QUICK:
            taken[worker] = told
        found = {name: plain(run.progress(name).frontier()) for name in expected}
        assert found == expected
        assert plain(run.progress("slow").frontier()) == taken[worker]

        everywhere = [
            plain(each.progress(sink).frontier()) for each in workers for sink in each.sinks
        ]
        known = [number for number in everywhere if number is not None]
        lowest = min(known) if len(known) == len(everywhere) else None
        assert plain(progress.frontier()) == lowest


@settings(max_examples=150, deadline=None)
@given(happenings(SENDS, SENDS, ADVANCES, IDLES, ENDS, TAKES))
def test_time_goes_back_on_no_path(script: list[tuple[int, Happening]]) -> None:
    run = small_graph().execute()
    oracle = Oracle()
    names = [name for name in oracle.frontiers() if name != "told slow"] + ["slow"]
    before = {name: run.progress(name).frontier() for name in names}
    for _, happening in script:
        happen(run, oracle, happening)
        after = {name: run.progress(name).frontier() for name in names}
        for name in names:
            old, new = before[name], after[name]
            assert old is UNKNOWN or (new is not UNKNOWN and old <= new), name
        before = after


@settings(max_examples=150, deadline=None)
@given(happenings(SENDS, SENDS, SENDS, ADVANCES, ADVANCES, ENDS, TAKES))
def test_no_row_comes_before_what_its_sink_was_told_unless_it_was_late_at_the_input(
    script: list[tuple[int, Happening]],
) -> None:
    run = small_graph().execute()
    oracle = Oracle()
    late = {"a": 0, "b": 0, "slow": 0}
    for _, happening in [
        *script,
        (0, ("end", "a", 0)),
        (0, ("end", "b", 0)),
        (0, ("take", "slow", 0)),
    ]:
        what, name, time = happening
        told = {sink: run.progress(sink).frontier() for sink in run.sinks}
        known = {sink: len(run.sink(sink).rows) for sink in run.sinks}
        said = oracle.a if name == "a" else oracle.b
        behind = said.number is not None and time < said.number
        late[name] += what == "send" and said.ending is None and behind
        happen(run, oracle, happening)
        for sink in ("slow", "hopping"):
            number = told[sink]
            for row in run.sink(sink).rows[known[sink] :]:
                assert number is UNKNOWN or row.time >= number
    assert run.counts("slow")["late"] == run.counts("hopping")["late"] == 0
    assert run.counts("raw")["late"] == late["a"]
    # What a window gives out is on time for the next: only rows late at `b` are late there.
    assert run.counts("hops")["late"] <= late["b"]


@settings(max_examples=150, deadline=None)
@given(WINDOWS, st.integers(-40, 40))
def test_what_a_window_node_says_is_the_smallest_time_it_may_still_give_out(
    windows: Windows, number: int
) -> None:
    reached = []
    for time in range(number - 30, number + 30):
        node = Aggregate(windows).build(Plan())
        said = next(emit.message for emit in node.on_watermark(number))
        node.on_data(Data("x", time))
        reached += [emit.message.time for emit in node.on_end(Ending.GRACEFUL)]  # type: ignore[union-attr]
    assert said == min(reached)


# ---- what windows give out ----


def batches(windows: Windows, rows: list[tuple[int, int]]) -> list[tuple[int, int, int, list[int]]]:
    """The windows of all rows (key, time) at once: (end, start, key, sorted times)."""
    found: dict[tuple[int, int, int], list[int]] = {}
    if isinstance(windows, Sliding):
        size, slide = windows.size // us(1), windows.slide // us(1)
        for start in range(-40 * slide, 80 * slide, slide):
            for key, time in rows:
                if start <= time < start + size:
                    found.setdefault((start + size, start, key), []).append(time)
    else:
        for key in {key for key, _ in rows}:
            session: list[int] = []
            for time in [*sorted(t for k, t in rows if k == key), FAR]:
                if session and time - session[-1] >= GAP:
                    found[(session[-1] + GAP, session[0], key)] = session
                    session = []
                session.append(time)
    return [(*place, sorted(times)) for place, times in sorted(found.items())]


def as_batches(rows: list[WindowRow]) -> list[tuple[int, int, int, list[int]]]:
    return sorted((row.end, row.start, row.key, sorted(t for _, t in row.value)) for row in rows)  # type: ignore[misc]


def keyed(windows: Windows) -> Run:
    graph = Graph()
    sums = graph.add("sums", Aggregate(windows, by=lambda item: item[0]), graph.input("in"))
    graph.sink("out", sums)
    graph.sink("late", sums.output("late"))
    return graph.execute()


ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(-20, 60)), max_size=25)


@settings(max_examples=200, deadline=None)
@given(WINDOWS, ROWS, st.lists(st.booleans(), min_size=25, max_size=25))
def test_without_late_rows_windows_are_those_of_the_whole_however_time_advances(
    windows: Windows, rows: list[tuple[int, int]], advance: list[bool]
) -> None:
    run = keyed(windows)
    for place, (key, time) in enumerate(rows):
        run.input("in").send((key, time), time)
        still = [time for _, time in rows[place + 1 :]]
        if still and advance[place]:
            run.input("in").advance_to(min(still))
    run.end()
    assert as_batches(run.sink("out").items) == batches(windows, rows)
    ends = [row.end for row in run.sink("out").items]
    assert ends == sorted(ends)
    assert run.sink("late").rows == []


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([Tumbling(us(TEN)), Session(us(GAP))]),
    st.lists(st.one_of(st.integers(-20, 60), st.tuples(st.integers(0, 15))), max_size=30),
)
def test_with_late_rows_every_row_is_given_out_once_or_lost_once(
    windows: Windows, script: list[Any]
) -> None:
    run = keyed(windows)
    number = -20
    run.input("in").advance_to(number)
    sent: list[int] = []
    lost: list[int] = []
    for step in script:
        if isinstance(step, tuple):
            number += step[0]
            run.input("in").advance_to(number)
            continue
        run.input("in").send((0, step), step)
        last_use = step + GAP if isinstance(windows, Session) else step // TEN * TEN + TEN
        (sent if last_use > number else lost).append(step)
    run.end()
    given_out = [time for row in run.sink("out").items for _, time in row.value]
    assert sorted(given_out) == sorted(sent)
    assert [time for _, time in run.sink("late").items] == lost
    counts = run.counts("sums")
    assert (counts["rows"], counts["lost"]) == (len(sent) + len(lost), len(lost))


# ---- where numbers come from ----


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TIMES, max_size=20),
    st.one_of(st.none(), st.integers(1, 15)),
    st.integers(0, 10),
)
def test_injected_numbers_rise_and_never_pass_the_maximum_less_the_tolerance(
    times: list[int], every: int | None, tolerance: int
) -> None:
    period = None if every is None else us(every)
    node = InjectWatermarks(period, BoundedDisorder(us(tolerance))).build(Plan())
    said: list[int] = []
    for place, time in enumerate(times):
        row, *rest = [emit.message for emit in node.on_data(Data("x", time))]
        assert row == Data("x", time)
        most = max(times[: place + 1]) - tolerance
        assert rest in ([], [most])
        said += [number for number in rest if isinstance(number, int)]
        if every is None:
            assert said == []
        else:  # what is not said yet is less than a period behind
            assert most // every == said[-1] // every
    assert said == sorted(set(said))
    at_end = [emit.message for emit in node.on_end(Ending.GRACEFUL)]
    assert at_end == ([max(times) - tolerance] if times else [])


@settings(max_examples=100, deadline=None)
@given(WINDOWS, st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=25))
def test_on_processing_time_no_row_is_late_whatever_the_clock_does(
    windows: Windows, script: list[tuple[str, int]]
) -> None:
    now = [0]
    graph = Graph()
    sums = graph.add("sums", Aggregate(windows), graph.input("a"), graph.input("b"))
    graph.sink("out", sums)
    run = graph.execute(Plan("processing", clock=lambda: now[0]))
    for name, clock in script:
        now[0] = clock
        run.input(name).send(clock)
    run.end()
    assert run.counts("sums") == {"rows": len(script), "late": 0, "lost": 0, "dropped": 0}
    assert run.counts("out")["late"] == 0
