"""Event time and watermarks in one small graph.

Orders arrive out of order, one without a readable time and one far too late. Windows of a minute
close when their time is complete, no row is lost without a trace, and the frontier tells at every
moment how far the result is complete. It runs ahead of the watermark: the total of a minute carries
the time just before the minute's end, so no total before that can still come.

    python examples/event_time_watermark.py
"""

from __future__ import annotations

from datetime import timedelta

from tidegate.eventtime.generators import BoundedDisorder
from tidegate.eventtime.instants import format_instant, parse_instant
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.progress import (
    Aggregate,
    ExtractTime,
    Graph,
    InjectWatermarks,
    ProgressHandle,
    Tumbling,
)

MINUTE = timedelta(minutes=1)

ORDERS = [
    {"at": "2026-01-31T12:00:10Z", "price": 5},
    {"at": "2026-01-31T12:00:50Z", "price": 7},
    {"at": "2026-01-31T12:00:40Z", "price": 1},  # out of order, by less than the tolerance
    {"at": "lunch time", "price": 2},
    {"at": "2026-01-31T12:01:20Z", "price": 4},  # 12:01:00 is complete now: the first window closes
    {"at": "2026-01-31T12:00:20Z", "price": 9},  # too late for it
    {"at": "2026-01-31T12:02:30Z", "price": 3},
]


def build() -> Graph:
    graph = Graph()
    orders = graph.input("orders")
    timed = graph.add("timed", ExtractTime(lambda order: parse_instant(order["at"])), orders)
    tolerance = BoundedDisorder(timedelta(seconds=20))
    marked = graph.add("marked", InjectWatermarks(timedelta(seconds=10), tolerance), timed)
    total = Aggregate(Tumbling(MINUTE), into=lambda rows: sum(row["price"] for row in rows))
    totals = graph.add("totals", total, marked)
    graph.sink("totals per minute", totals)
    graph.sink("late", totals.output("late"))
    graph.sink("bad", timed.output("errors"))
    return graph


def clock_time(instant: int) -> str:
    return format_instant(instant).removeprefix("2026-01-31T").removesuffix("Z")


def shown(progress: ProgressHandle) -> str:
    frontier = progress.frontier()
    return "unknown" if frontier is UNKNOWN else clock_time(frontier)


def main() -> None:
    run, per_sink = build().execute_with_progress_per_sink()
    source, result = run.input("orders"), run.sink("totals per minute")
    known = 0

    def say(event: str) -> None:
        nonlocal known
        closed = [f"{clock_time(row.start)} = {row.value}" for row in result.items[known:]]
        known = len(result.items)
        marked, done = shown(run.progress("marked")), shown(per_sink["totals per minute"])
        print(f"{event:<22}{marked:<11}{done:<17}{', '.join(closed)}".rstrip())

    print(f"{'order':<22}{'watermark':<11}{'frontier':<17}closed minutes")
    for arrival, order in enumerate(ORDERS):
        source.send(order, time=arrival)
        at = str(order["at"])
        say(at[11:19] if at.startswith("2026") else f'"{at}"')
    source.end()
    say("end")

    late = [order["price"] for order in run.sink("late").items]
    bad = [row.item["at"] for row in run.sink("bad").items]
    print(f"late orders: {late}, bad orders: {bad}")


if __name__ == "__main__":
    main()
