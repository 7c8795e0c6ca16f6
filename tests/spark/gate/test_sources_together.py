"""The sources of a query, asked as Spark asks them, killed between any two steps: without Spark.

Laws that hold in every run: a row is given out once, or routed once; none that Spark would drop is
given out; what Spark has as its watermark, when all is quiet, is W, exactly; a window comes out
once, with every row that was given out; and no result is behind a frontier that was told before.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL
from tests.conftest import fresh_catalog
from tests.spark.gate.loop import MS, Checkpoint, Killed, Loop, gate, resumed, sent
from tests.spark.jobs.world import S, World

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.spark.gate.siblings import Said, said, sources_of
from tidegate.spark.progress import JobProgress
from tidegate.store.catalog import progress, queries
from tidegate.store.steps import listening

COLUMNS = "k,v,at,_partition,_offset"


def two(world: World, *names: str, **settings: Any) -> Loop:
    """A query over streams, one for each name."""
    for name in names:
        if name not in world.store.list_streams():
            world.stream(name)
    sources = {name: gate(world, name, columns=COLUMNS, **settings) for name in names}
    return Loop(world, sources, Checkpoint())


def given(loop: Loop) -> list[tuple[int, int]]:
    """What came out: the end of each window in seconds, and the count."""
    return [(end // S, n) for _, end, n in loop.kept.given]


def check(loop: Loop, tops: dict[str, list[int]], tolerance: int = 0) -> None:
    """The laws, when all is quiet; `tops` are the largest times of all partitions."""
    kept, world = loop.kept, loop.world
    names = list(loop.sources)
    came = Counter(
        (name, row["_partition"], row["_offset"])
        for name in names
        for row in world.read(name, "_partition", "_offset")
    )
    used = Counter((name, row["_partition"], row["_offset"]) for _, name, row in kept.rows)
    assert not used - came, "a row was given out twice"
    left = Counter(
        (name, row["k"], row["v"], row["at"])
        for name in names
        for row in world.read(name, "_partition", "_offset")
        if not used[name, row["_partition"], row["_offset"]] and row["at"] >= 0
    )
    routed = Counter(
        (name, row["k"], row["v"], row["late_time"])
        for name in names
        for row in world.read(f"{name}.late")
    )
    assert routed == left, f"too many: {routed - left}, missing: {left - routed}"
    ends = [end for _, end, _ in kept.given]
    assert len(ends) == len(set(ends)), "a window came out twice"
    assert sum(n for _, _, n in kept.given) + kept.state.total() == len(kept.rows)
    reached = [top for name in names for top in tops[name]]
    assert loop.watermark == max(sent(reached, tolerance), 0)
    assert not any(end <= loop.watermark for end in kept.state), "a window was not closed"


def test_two_streams_of_very_different_speed(bare: World) -> None:
    bare.stream("slow")
    bare.stream("fast")
    bare.append([("a", 1, 5), ("a", 2, 15)], "slow")
    for t in (1, 100, 1000):
        bare.append([("a", t, t), ("a", t + 1, t + 11)], "fast")
    loop = two(bare, "slow", "fast", max_rows=2)
    loop.run()
    check(loop, {"slow": [15 * S], "fast": [1011 * S]})
    assert given(loop) == [(10, 2)]
    # The slow one goes on: nothing of the fast one was given up meanwhile.
    bare.append([("a", 3, 25), ("a", 4, 14)], "slow")
    loop = resumed(loop)
    loop.run()
    check(loop, {"slow": [25 * S], "fast": [1011 * S]})
    assert given(loop) == [(10, 2), (20, 3)]
    assert loop.watermark == 25 * S


def test_what_a_source_says_of_a_batch_that_is_never_logged_does_not_count(bare: World) -> None:
    loop = two(bare, "one", "two")
    bare.append([("a", 1, 5)], "one")
    bare.append([("a", 1, 5)], "two")
    loop = resumed(loop)
    loop.run()
    bare.append([("a", 2, 1000)], "one")
    loop = resumed(loop)
    loop.step()  # who belongs to the query is known after this
    with pytest.raises(Killed):
        loop.step(kill="asked")
    # Nothing of that plan has happened; the other stream is where it was, and what comes there now
    # is judged by what is durable.
    bare.append([("a", 2, 6), ("a", 3, 20)], "two")
    loop = resumed(loop)
    loop.run()
    check(loop, {"one": [1000 * S], "two": [20 * S]})
    assert given(loop) == [(10, 3)]
    assert bare.read("two.late") == []


@pytest.mark.parametrize("kill", ["asked", "logged", "ran"])
def test_late_rows_are_routed_once_wherever_it_is_killed(bare: World, kill: str) -> None:
    loop = two(bare, "one", "two")
    for name in ("one", "two"):
        bare.append([("a", 1, 5), ("a", 2, 35)], name)
    loop = resumed(loop)
    loop.run()
    for name in ("one", "two"):
        bare.append([("b", 3, 6), ("b", 4, 36), ("b", 5, 29)], name)
    # Killed at every step, one after the other, and each time begun again.
    for _ in range(6):
        loop = resumed(loop)
        try:
            while loop.step(kill=kill):
                pass
        except Killed:
            continue
        break
    loop = resumed(loop)
    loop.run()
    check(loop, {"one": [36 * S], "two": [36 * S]})
    assert len(bare.read("one.late")) == len(bare.read("two.late")) == 2
    # Asked again and again: nothing is routed a second time.
    for _ in range(2):
        loop = resumed(loop)
        loop.run()
    check(loop, {"one": [36 * S], "two": [36 * S]})


def _killed_at(world: World, number: int) -> str:
    """A life with late rows in two streams that is killed at a step, and checked at its end.

    Gives the name of the step; there were fewer, if it is empty.
    """
    loop = two(world, "one", "two", tolerance="1 s", max_rows=2)
    for name in ("one", "two"):
        world.append([("a", 1, 5), ("a", 2, 35)], name)
    loop = resumed(loop)
    loop.run()
    for name, top in (("one", 58), ("two", 47)):
        world.append([("b", 3, 6), ("b", 4, -8), ("b", 5, 29)], name)
        world.append([("b", 6, 33), ("b", 7, top)], name)
    reached: list[str] = []

    def kill(step: str) -> None:
        reached.append(step)
        if len(reached) == number:
            raise Killed

    with listening(kill), contextlib.suppress(Killed):
        loop = resumed(loop)
        loop.run()
    at = reached[number - 1] if len(reached) >= number else ""
    loop = resumed(loop)
    loop.run()
    check(loop, {"one": [58 * S], "two": [47 * S]}, tolerance=S)
    for name in ("one", "two"):
        assert sorted(row["v"] for row in world.read(f"{name}.late")) == [3, 5]
        assert [row["reason"] for row in world.read(f"{name}.errors")] == ["before 1970"]
    told = JobProgress(world.store, "q").figures()
    assert (told["lost"], told["bad"], told["rows_in"]) == (4, 2, 14)
    return at


@pytest.mark.parametrize("number", [3, 14, 25, 36, 47])
def test_killed_at_a_step_it_goes_on_as_if_nothing_had_been(bare: World, number: int) -> None:
    assert _killed_at(bare, number)


@pytest.mark.parametrize("number", [9, 31])
def test_killed_at_a_step_it_goes_on_on_a_server_too(
    tmp_path: Path, postgres: URL, number: int
) -> None:
    with fresh_catalog(postgres) as catalog:
        world = World(None, tmp_path, catalog)  # type: ignore[arg-type]
        assert _killed_at(world, number)
        world.close()


@pytest.mark.faults
def test_killed_at_every_step_it_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    seen = set()
    for number in itertools.count(1):
        (tmp_path / str(number)).mkdir()
        world = World(None, tmp_path / str(number))  # type: ignore[arg-type]
        at = _killed_at(world, number)
        world.close()
        if not at:
            break
        seen.add(at)
    assert {"gate: asked", "gate: planned", "gate: settled"} <= seen
    assert {"catalog: before commit", "catalog: after commit"} <= seen


def test_a_restart_with_a_quiet_stream_has_w_at_once(bare: World) -> None:
    loop = two(bare, "busy", "quiet")
    bare.append([("a", 1, 5), ("a", 1, 50)], "busy")
    bare.append([("a", 1, 5), ("a", 1, 40)], "quiet")
    loop = resumed(loop)
    loop.run()
    assert loop.watermark == 40 * S
    bare.append([("a", 2, 60)], "busy")
    loop = resumed(loop)
    assert loop.watermark == 40 * S
    bare.append([("a", 2, 55)], "quiet")
    loop = resumed(loop)
    loop.run()
    assert loop.watermark == 55 * S
    check(loop, {"busy": [60 * S], "quiet": [55 * S]})
    # And where nothing at all has come: one batch that repeats W, and quiet.
    again = resumed(loop)
    assert again.run() <= 3
    assert again.watermark == 55 * S


def test_a_stream_that_is_idle_holds_nobody(bare: World) -> None:
    for name in ("busy", "quiet", "empty"):
        bare.stream(name)
    bare.append([("a", 1, 5)], "quiet")
    loop = two(bare, "busy", "quiet", "empty", idle_after="1 ms")
    for n in range(1, 4):
        bare.append([("a", n, 5), ("a", n, 30 * n)], "busy")
        loop = resumed(loop, available_now=False)
        for _ in range(400):
            loop.step()
            if loop.watermark >= 30 * n * S - MS:
                break
    assert loop.watermark in (90 * S, 90 * S - MS)
    # The one that was idle comes back behind W: late, and routed.
    bare.append([("a", 7, 8)], "quiet")
    bare.append([("a", 8, 8)], "empty")
    loop = resumed(loop)
    loop.run()
    assert [end for end, _ in given(loop)] == [10, 40, 70]
    assert [row["v"] for row in bare.read("quiet.late")] == [7]
    assert [row["v"] for row in bare.read("empty.late")] == [8]


def test_a_source_of_a_run_with_other_sources_is_not_waited_for(bare: World) -> None:
    loop = two(bare, "one", "gone")
    bare.append([("a", 1, 5)], "one")
    bare.append([("a", 1, 5)], "gone")
    loop = resumed(loop)
    loop.run()
    # A new checkpoint over one of them only, after its records were forgotten.
    bare.append([("a", 1, 100)], "one")

    def left_over(on: Any) -> None:
        for record in ("q", "q/one", "q/gone"):
            queries.forget(on, record)
        words = Said(start=5 * S, start_sent=5 * S, end=5 * S).to_json()
        progress.tell(on, "q", "source:gone", 5 * S, {"gate": words, "opened": 1, "spoke": 1}, 1)

    bare.store.database.write(left_over)
    alone = two(bare, "one")
    alone.run()
    assert alone.watermark == 100 * S
    nodes = bare.store.database.read(lambda on: progress.told(on, "q"))
    assert list(sources_of(nodes)) == ["source:one"]
    # Nor are rows judged by it.
    bare.append([("a", 2, 20), ("a", 3, 110)], "one")
    alone = resumed(alone)
    alone.run()
    check(alone, {"one": [110 * S]})
    assert [row["v"] for row in bare.read("one.late")] == [2]


def test_two_runs_of_one_query_are_fenced(bare: World) -> None:
    loop = two(bare, "one")
    bare.append([("a", 1, 5), ("a", 1, 50)], "one")
    loop = resumed(loop)
    loop.run()
    anew = Loop(bare, loop.sources, Checkpoint())
    with pytest.raises(TidegateError) as fenced:
        anew.run()
    assert fenced.value.code == "query-fenced"
    # A checkpoint from yesterday, too.
    bare.append([("a", 1, 60)], "one")
    old = Checkpoint(list(loop.kept.logged), loop.kept.committed)
    loop = resumed(loop)
    loop.run()
    bare.append([("a", 1, 70)], "one")
    loop = resumed(loop)
    loop.run()
    with pytest.raises(TidegateError) as behind:
        Loop(bare, loop.sources, old).run()
    assert behind.value.code == "query-fenced"


def test_a_throttled_partition_is_never_idle(bare: World) -> None:
    """Its timer counts only while it is read to its end."""
    bare.stream("orders", segments=2)
    fast, slow = bare.key(0), bare.key(1)
    bare.append([(fast, 1, 1), (slow, 1, 1)])
    for n in range(2, 22):
        bare.append([(slow, n, n)])
    bare.append([(fast, 2, 500)])
    source = gate(bare, columns=COLUMNS, idle_after="1 ms", max_rows=1)
    loop = Loop(bare, {"orders": source}, Checkpoint(), available_now=False)
    while len(loop.kept.rows) < 23:
        loop.step()
        times = [row["at"].timestamp() for _, _, row in loop.kept.rows if row["k"] == slow]
        if len(times) < 21:
            assert loop.watermark <= max([*times, 0]) * S, "it was taken for idle while behind"
    assert bare.read("orders.late") == []


@pytest.mark.parametrize("seed", range(5))
def test_the_laws_hold_whatever_comes_and_wherever_it_is_killed(bare: World, seed: int) -> None:
    _any_life(bare, seed)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(100, 200))
def test_the_laws_hold_in_many_lives(bare: World, seed: int) -> None:
    _any_life(bare, seed)


def _any_life(world: World, seed: int) -> None:
    random_ = random.Random(seed)
    names = ["one", "two", "three"][: random_.randint(1, 3)]
    segments = {name: random_.randint(1, 3) for name in names}
    tolerance = random_.choice([0, 3])
    for name in names:
        world.stream(name, segments=segments[name])
    settings = {"tolerance": f"{tolerance} s", "max_rows": random_.choice([1, 3, 1000])}
    loop = two(world, *names, **settings)
    tops: dict[tuple[str, int], float] = {}
    ids = 0
    for _ in range(6):
        for name in random_.sample(names, random_.randint(1, len(names))):
            for _ in range(random_.randint(1, 3)):
                rows = []
                for _ in range(random_.randint(1, 4)):
                    place = random_.randrange(segments[name])
                    top = tops.get((name, place), 20.0)
                    t = max(top + random_.choice([-25, -9, -3, 0, 0.0005, 1, 4, 30]), 0)
                    if random_.random() < 0.4:
                        t = t // 10 * 10 - random_.choice([0, 0.000001])
                    t = max(round(t * S) / S, 0)
                    tops[name, place] = max(t, tops.get((name, place), t))
                    ids += 1
                    rows.append((world.key(place, name), ids, t))
                world.append(rows, name)
        loop = resumed(loop, available_now=random_.random() < 0.8)
        kill = random_.choice([None, "asked", "logged", "ran"])
        try:
            for _ in range(random_.randint(1, 5)):
                loop.step(kill=kill if random_.random() < 0.5 else None)
        except Killed:
            loop = resumed(loop)
        if random_.random() < 0.6:
            loop = resumed(loop)
            loop.run()
    for name in names:  # who has had no row yet would hold W, and be unknown
        for place in range(segments[name]):
            t = tops.get((name, place), 20.0) + 40
            tops[name, place] = t
            ids += 1
            world.append([(world.key(place, name), ids, t)], name)
    loop = resumed(loop)
    loop.run()
    reached = {n: [round(t * S) for (name, _), t in tops.items() if name == n] for n in names}
    check(loop, reached, tolerance * S)
    assert loop.kept.given


def test_what_a_source_says_reads_back() -> None:
    words = Said(1, 0, 5, idle=True, ended=False, closing=9, finished=False)
    assert Said.from_json(words.to_json()) == words
    assert Said.from_json(Said().to_json()) == Said()
    assert Said().start is UNKNOWN
    node = progress.NodeProgress("q", "source:a", UNKNOWN, {"opened": 3}, 3)
    assert said(node) == Said()


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_a_row_is_judged_by_w_as_its_batch_begins_whoever_is_asked_first(
    bare: World, order: tuple[str, str]
) -> None:
    for name, top in (("one", 57), ("two", 87)):
        bare.stream(name)
        bare.append([("a", 1, 5), ("a", 2, top)], name)
    loop = two(bare, *order)
    loop.run()
    # In one batch: rows that move W past a window, and a row of the other stream that is in it.
    bare.append([("a", 3, 65)], "one")
    bare.append([("a", 4, 52), ("a", 5, 88), ("a", 6, 45)], "two")
    loop = resumed(loop)
    loop.run()
    check(loop, {"one": [65 * S], "two": [88 * S]})
    assert given(loop)[-1] == (60, 2)
    assert [row["v"] for row in bare.read("two.late")] == [6]


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_what_another_stream_sent_in_the_batch_before_counts(
    bare: World, order: tuple[str, str]
) -> None:
    for name, top in (("one", 57), ("two", 87)):
        bare.stream(name)
        bare.append([("a", 1, 5), ("a", 2, top)], name)
    loop = two(bare, *order)
    loop.run()
    loop = resumed(loop, available_now=False)
    loop.step()
    bare.append([("a", 3, 65)], "one")
    while loop.watermark < 65 * S:
        loop.step()
    # At once, before anybody has been asked again: Spark has W = 65 s in the next batch.
    bare.append([("a", 4, 52), ("a", 5, 88), ("a", 6, 61)], "two")
    for _ in range(3):
        loop.step()
    check(loop, {"one": [65 * S], "two": [88 * S]})
    assert [row["v"] for row in bare.read("two.late")] == [4]
