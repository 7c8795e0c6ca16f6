from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.progress import (
    Aggregate,
    Collect,
    Data,
    Emit,
    Emits,
    Ending,
    ExtractTime,
    Filter,
    Graph,
    InjectWatermarks,
    Map,
    Node,
    NodeConfig,
    Passing,
    Plan,
    Run,
    Session,
    Sliding,
    Stream,
    Tumbling,
    Union,
)
from tidegate.progress.windows import Windows


def us(number: int) -> timedelta:
    return timedelta(microseconds=number)


def windowed(windows: Windows, **options: Any) -> Graph:
    """An input, a window node, a sink for each of its outputs."""
    graph = Graph()
    sums = graph.add("sums", Aggregate(windows, **options), graph.input("in"))
    graph.sink("out", sums)
    graph.sink("late", sums.output("late"))
    return graph


def two_inputs() -> Run:
    graph = Graph()
    graph.sink("out", graph.add("both", Union(), graph.input("left"), graph.input("right")))
    return graph.execute()


def code_of(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(TidegateError) as caught:
        call(*arguments, **options)
    return caught.value.code


# ---- rows and numbers through the graph ----


def test_branches_all_see_every_row_with_its_time() -> None:
    graph = Graph()
    source = graph.input("in")
    graph.sink("even", graph.add("is even", Filter(lambda n: n % 2 == 0), source))
    graph.sink("twice", graph.add("doubled", Map(lambda n: n * 2), source))
    run = graph.execute()
    for number in range(4):
        run.input("in").send(number, time=100 + number)
    assert run.sink("even").rows == [Data(0, 100), Data(2, 102)]
    assert run.sink("twice").rows == [Data(2 * n, 100 + n) for n in range(4)]


def test_a_frontier_is_about_event_time_and_not_about_messages() -> None:
    run = windowed(Tumbling(us(10))).execute()
    source = run.input("in")
    for time in range(9):
        source.send("x", time)
    assert run.progress("out").frontier() is UNKNOWN
    source.advance_to(3)
    assert run.progress("out").frontier() == 9
    assert run.sink("out").rows == []


def test_every_node_has_a_frontier() -> None:
    run = windowed(Tumbling(us(10))).execute()
    run.input("in").advance_to(12)
    frontiers = {name: run.progress(name).frontier() for name in ("in", "sums", "out", "late")}
    assert frontiers == {"in": 12, "sums": 19, "out": 19, "late": 12}
    assert run.progress().frontier() == 12


def test_progress_is_given_for_the_run_or_per_sink() -> None:
    graph = windowed(Tumbling(us(10)))
    run, progress = graph.execute_with_progress()
    run.input("in").advance_to(12)
    assert progress.frontier() == 12
    run, per_sink = graph.execute_with_progress_per_sink()
    assert per_sink["out"].frontier() is UNKNOWN
    run.input("in").advance_to(12)
    assert {name: handle.frontier() for name, handle in per_sink.items()} == {"out": 19, "late": 12}


def test_the_progress_of_several_workers_is_their_minimum() -> None:
    workers, progress = windowed(Session(us(10))).execute_on_workers(2)
    workers[0].input("in").send("x", 1)
    workers[0].input("in").advance_to(30)
    assert progress.frontier() is UNKNOWN
    workers[1].input("in").advance_to(20)
    assert progress.frontier() == 20
    assert workers[1].sink("out").rows == []
    assert len(workers[0].sink("out").rows) == 1
    workers[0].end()
    assert progress.ending is None
    workers[1].end()
    assert progress.ending is Ending.GRACEFUL


def test_a_node_with_two_inputs_takes_their_minimum() -> None:
    run = two_inputs()
    run.input("left").advance_to(10)
    assert run.progress().frontier() is UNKNOWN
    run.input("right").advance_to(4)
    assert run.progress().frontier() == 4
    run.input("right").advance_to(12)
    assert run.progress().frontier() == 10


def test_an_idle_input_frees_the_other_and_holds_it_again_when_it_returns() -> None:
    run = two_inputs()
    left, right = run.input("left"), run.input("right")
    left.advance_to(10)
    assert right.idle()
    assert not right.idle()
    assert run.progress().frontier() == 10
    right.send("back", time=3)
    assert run.counts("out") == {"rows": 1, "late": 1, "dropped": 0}
    left.advance_to(20)
    assert run.progress().frontier() == 10
    right.advance_to(15)
    assert run.progress().frontier() == 15


def test_an_input_returns_from_idle_also_when_its_rows_are_filtered_out() -> None:
    graph = Graph()
    none = graph.add("none", Filter(lambda item: False), graph.input("left"))
    graph.sink("out", none, graph.input("right"))
    run = graph.execute()
    run.input("left").idle()
    run.input("right").advance_to(10)
    assert run.progress().frontier() == 10
    run.input("left").send("x", time=3)
    run.input("right").advance_to(20)
    assert run.progress().frontier() == 10


def test_repeating_the_number_returns_from_idle() -> None:
    run = two_inputs()
    run.input("left").advance_to(5)
    run.input("left").idle()
    run.input("right").advance_to(10)
    assert not run.input("left").advance_to(5)
    run.input("right").advance_to(20)
    assert run.progress().frontier() == 10


def test_when_all_inputs_are_idle_the_furthest_number_stands() -> None:
    run = two_inputs()
    run.input("left").advance_to(10)
    run.input("right").advance_to(4)
    run.input("left").idle()
    run.input("right").idle()
    assert run.progress().frontier() == 10


def test_chained_windows_see_what_the_first_gives_out_as_on_time() -> None:
    graph = Graph()
    minutes = graph.add("minutes", Aggregate(Tumbling(us(10)), into=len), graph.input("in"))
    halves = graph.add("halves", Aggregate(Tumbling(us(30)), into=len), minutes)
    graph.sink("out", halves)
    run = graph.execute()
    for time in (1, 2, 11, 29, 30):
        run.input("in").send("x", time)
        run.input("in").advance_to(time)
    assert [row.value for row in run.sink("out").items] == [3]
    assert run.counts("halves")["late"] == 0
    run.end()
    assert [(row.end, row.value) for row in run.sink("out").items] == [(30, 3), (60, 1)]


class Wavering(NodeConfig):
    """A node of one's own whose numbers go up and down."""

    def build(self, plan: Plan) -> Node:
        class Running(Passing):
            def on_watermark(self, number: int) -> Emits:
                return [Emit(number), Emit(number - 5), Emit(number)]

        return Running()


def test_a_number_that_goes_back_reaches_nobody_whatever_a_node_says() -> None:
    graph = Graph()
    graph.sink(
        "out", graph.add("wavering", Wavering(), graph.input("in")), config=Collect(at_once=False)
    )
    run = graph.execute()
    run.input("in").advance_to(10)
    run.input("in").advance_to(12)
    assert run.progress("wavering").frontier() == 12
    assert run.sink("out").waiting == 2
    run.sink("out").take(1)
    assert run.progress("out").frontier() == 10
    run.sink("out").take(1)
    assert run.progress("out").frontier() == 12


# ---- the input handle ----


def test_time_at_an_input_cannot_go_back() -> None:
    source = two_inputs().input("left")
    assert source.advance_to(10)
    assert not source.advance_to(10)
    with pytest.raises(TidegateError) as caught:
        source.advance_to(9)
    assert str(caught.value) == (
        "time cannot go back\n"
        "Detail: input 'left' is at 10, asked to go to 9.\n"
        "Hint: advance to an equal or later time; rows before it are late rows."
    )
    assert source.progress.frontier() == 10


def test_a_row_before_the_number_flows_on_and_windows_judge_it() -> None:
    graph = windowed(Tumbling(us(10)))
    graph.sink("raw", Stream("in"))
    run = graph.execute()
    run.input("in").advance_to(15)
    for time in (3, 12):
        run.input("in").send(time, time)
    assert run.sink("raw").items == [3, 12]
    assert run.sink("late").items == [3]
    assert run.counts("sums") == {"rows": 2, "late": 2, "lost": 1, "dropped": 0}


def test_on_event_time_a_row_needs_a_time() -> None:
    source = two_inputs().input("left")
    assert code_of(source.send, "x") == "row-without-time"
    assert code_of(source.send, "x", 1 << 62) == "instant-out-of-range"
    assert code_of(source.advance_to, 1 << 62) == "instant-out-of-range"


def test_nothing_comes_after_the_end_of_an_input() -> None:
    source = two_inputs().input("left")
    source.end()
    for call in (
        lambda: source.send("x", 1),
        lambda: source.advance_to(1),
        source.idle,
        source.end,
    ):
        assert code_of(call) == "input-ended"


# ---- ends ----


def test_a_graceful_end_flushes_in_order_and_moves_no_number() -> None:
    run = windowed(Sliding(us(10), us(5))).execute()
    for time in (22, 3, 14):
        run.input("in").send(time, time)
    run.input("in").advance_to(1)
    before = run.progress("out").frontier()
    run.input("in").end()
    times = [row.time for row in run.sink("out").rows]
    assert times == sorted(times) == [4, 9, 14, 19, 24, 29]
    assert run.progress("out").frontier() == before == 4
    assert run.progress().ending is Ending.GRACEFUL
    assert run.progress().complete_before(10**9)


def test_a_quick_end_flushes_nothing_and_moves_no_number() -> None:
    run = windowed(Tumbling(us(10))).execute()
    run.input("in").send("x", 3)
    run.input("in").advance_to(5)
    run.input("in").end(Ending.QUICK)
    assert run.sink("out").rows == []
    assert run.progress("out").frontier() == 9
    assert run.progress().ending is Ending.QUICK
    assert not run.progress().complete_before(10)
    assert run.counts("sums")["dropped"] == 1


def test_an_input_that_ends_frees_the_other_and_the_last_one_ends_the_node() -> None:
    run = two_inputs()
    run.input("left").send("x", 1)
    run.input("left").advance_to(2)
    run.input("right").advance_to(10)
    run.input("left").end()
    assert run.progress().frontier() == 10
    assert run.progress().ending is None
    run.end()
    assert run.progress().ending is Ending.GRACEFUL


def test_an_input_that_ends_quickly_holds_the_other_and_makes_the_whole_end_quick() -> None:
    run = two_inputs()
    run.input("left").advance_to(2)
    run.input("right").advance_to(10)
    run.input("left").end(Ending.QUICK)
    assert run.progress().frontier() == 2
    run.end()
    assert run.progress().frontier() == 2
    assert run.progress().ending is Ending.QUICK


def test_the_injector_closes_what_the_maximum_completes_before_the_end_flushes_the_rest() -> None:
    graph = Graph()
    timed = graph.add("timed", ExtractTime(lambda row: row), graph.input("in"))
    marked = graph.add("marked", InjectWatermarks(), timed)
    graph.sink("out", graph.add("sums", Aggregate(Tumbling(us(10))), marked))
    graph.sink("bad", timed.output("errors"))
    run = graph.execute()
    for arrival, row in enumerate([3, 25, "noon", 12]):
        run.input("in").send(row, time=arrival)
    run.input("in").advance_to(4)
    assert run.progress("out").frontier() is UNKNOWN
    assert run.progress("bad").frontier() == 4
    run.end()
    assert [row.value for row in run.sink("out").items] == [[3], [12], [25]]
    assert run.progress("marked").frontier() == 25
    assert run.progress("out").frontier() == 29
    assert [row.item for row in run.sink("bad").items] == ["noon"]
    assert run.counts("timed") == {"bad": 1}


# ---- two sinks of different speed, and holding a source ----


def slow_and_fast() -> Run:
    graph = Graph()
    source = graph.input("in")
    graph.sink("fast", source)
    graph.sink("slow", source, config=Collect(at_once=False))
    return graph.execute()


def test_a_slow_sink_is_complete_only_up_to_what_it_has_taken() -> None:
    run = slow_and_fast()
    source, slow = run.input("in"), run.sink("slow")
    source.send("a", 1)
    source.advance_to(5)
    source.send("b", 6)
    source.advance_to(10)
    assert run.progress("fast").frontier() == 10
    assert run.progress("slow").frontier() is UNKNOWN
    assert slow.take(1) == [Data("a", 1)]
    assert run.progress("slow").frontier() is UNKNOWN
    assert slow.take(2) == [Data("b", 6)]
    assert run.progress().frontier() == 5
    assert slow.waiting == 1
    assert slow.take() == []
    assert run.progress().frontier() == 10


def test_a_slow_sink_has_ended_when_it_has_taken_the_end() -> None:
    run = slow_and_fast()
    run.input("in").send("a", 1)
    run.end()
    assert run.progress("fast").ending is Ending.GRACEFUL
    assert run.progress().ending is None
    assert run.sink("slow").take() == [Data("a", 1)]
    assert run.progress().ending is Ending.GRACEFUL


def test_a_quick_end_drops_what_a_slow_sink_has_not_taken() -> None:
    run = slow_and_fast()
    run.input("in").send("a", 1)
    run.input("in").advance_to(5)
    run.end(Ending.QUICK)
    slow = run.sink("slow")
    assert (slow.take(), slow.waiting) == ([], 0)
    assert run.progress("slow").frontier() is UNKNOWN
    assert run.progress("slow").ending is Ending.QUICK
    assert run.counts("slow") == {"rows": 0, "late": 0, "dropped": 1}


def test_a_source_is_held_until_a_node_has_advanced() -> None:
    run = slow_and_fast()
    source, slow = run.input("in"), run.sink("slow")
    source.send("a", 1)
    source.hold_until("slow", 5)
    assert not source.may_send()
    with pytest.raises(TidegateError) as caught:
        source.send("b", 6)
    assert caught.value.code == "input-held"
    assert caught.value.retryable
    assert source.advance_to(5)
    assert not source.may_send()
    slow.take()
    assert source.may_send()
    source.send("b", 6)
    assert run.sink("fast").items == ["a", "b"]


def test_a_source_can_be_held_by_a_node_and_the_hold_ends_with_it() -> None:
    graph = Graph()
    graph.sink("a", graph.add("sums", Aggregate(Tumbling(us(10))), graph.input("left")))
    graph.sink("b", graph.input("right"))
    run = graph.execute()
    left, right = run.input("left"), run.input("right")
    right.hold_until("sums", 19)
    left.advance_to(9)
    assert not right.may_send()
    left.advance_to(10)
    assert right.may_send()
    right.hold_until("sums", 1000)
    assert not right.may_send()
    left.end()
    assert right.may_send()
    assert code_of(right.hold_until, "nowhere", 5) == "unknown-node"


# ---- processing time ----


class Clock:
    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_on_processing_time_a_row_has_the_time_of_its_arrival_and_none_is_late() -> None:
    clock = Clock(100)
    run = windowed(Tumbling(us(10))).execute(Plan("processing", clock=clock))
    source = run.input("in")
    source.send("a", time=999)
    clock.now = 105
    source.send("b", time=-5)
    clock.now = 103  # a clock that steps back makes nothing late
    source.send("c")
    assert run.progress("in").frontier() == 105
    clock.now = 110
    assert source.advance_to(0)
    assert not source.advance_to(10**9)
    assert [row.value for row in run.sink("out").items] == [["a", "b", "c"]]
    assert run.counts("sums") == {"rows": 3, "late": 0, "lost": 0, "dropped": 0}


def test_on_processing_time_a_quiet_input_does_not_hold_the_others() -> None:
    clock = Clock(5)
    graph = Graph()
    graph.sink("out", graph.input("left"), graph.input("right"), graph.input("idle"))
    run = graph.execute(Plan("processing", clock=clock))
    run.input("idle").idle()
    run.input("left").send("a")
    assert run.progress().frontier() == 5
    clock.now = 8
    run.input("right").send("b")
    assert run.progress().frontier() == 8
    assert run.progress("idle").frontier() is UNKNOWN
    clock.now = 9
    run.input("idle").send("c")
    assert run.progress().frontier() == 9
    assert run.sink("out").rows == [Data("a", 5), Data("b", 8), Data("c", 9)]
    assert run.counts("out")["late"] == 0


def test_the_same_graph_runs_on_event_time_and_on_processing_time() -> None:
    graph = Graph()
    timed = graph.add("timed", ExtractTime(lambda row: row), graph.input("in"))
    marked = graph.add("marked", InjectWatermarks(us(10)), timed)
    graph.sink("out", graph.add("sums", Aggregate(Tumbling(us(10))), marked))
    found = []
    for plan in (Plan(), Plan("processing", clock=lambda: 50)):
        run = graph.execute(plan)
        for row in (12, 3, 25):
            run.input("in").send(row, time=0)
        run.end()
        found.append([(row.start, row.value) for row in run.sink("out").items])
    assert found == [[(10, [12]), (20, [25])], [(50, [12, 3, 25])]]


def test_a_plan_must_fit_its_clock() -> None:
    assert code_of(Plan, "lunch") == "unknown-plan-time"
    assert code_of(Plan, "processing") == "clock-missing"
    assert code_of(Plan, "event", clock=lambda: 0) == "clock-not-used"


# ---- mistakes ----


def test_a_name_is_taken_once() -> None:
    graph = Graph()
    graph.input("in")
    assert code_of(graph.input, "in") == "node-exists"


def test_a_node_reads_only_what_is_there() -> None:
    graph = Graph()
    source = graph.input("in")
    assert code_of(graph.sink, "out", Stream("nowhere")) == "unknown-node"
    assert code_of(graph.sink, "out", source.output("late")) == "unknown-output"


def test_a_sink_has_no_output() -> None:
    graph = Graph()
    graph.sink("out", graph.input("in"))
    assert code_of(graph.sink, "behind", Stream("out")) == "unknown-output"


def test_a_graph_needs_a_sink() -> None:
    graph = Graph()
    graph.input("in")
    assert code_of(graph.execute) == "graph-without-sink"


def test_handles_are_asked_for_by_name() -> None:
    run = two_inputs()
    assert code_of(run.input, "out") == "unknown-node"
    assert code_of(run.sink, "left") == "unknown-node"
    assert code_of(run.progress, "nowhere") == "unknown-node"
    assert code_of(run.counts, "nowhere") == "unknown-node"


def test_after_an_error_in_a_node_the_run_is_over() -> None:
    graph = Graph()
    source = graph.input("in")
    graph.sink("out", graph.add("inverse", Map(lambda n: 1 // n), source))
    run = graph.execute()
    run.input("in").send(1, 1)
    with pytest.raises(ZeroDivisionError):
        run.input("in").send(0, 2)
    assert code_of(run.input("in").send, 1, 3) == "run-failed"
    assert code_of(run.input("in").advance_to, 3) == "run-failed"
    assert code_of(run.end) == "run-failed"
