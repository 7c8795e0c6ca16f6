"""The desk: what was planned in the driver is what Spark runs, and strangers are not answered."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from typing import Any

import pytest
from pyspark.sql import DataFrame
from tests.spark.jobs.truth import Truth
from tests.spark.jobs.world import Both, S, World

from tidegate.errors import ConflictError
from tidegate.spark import batches, desk
from tidegate.spark.batches import plan_of
from tidegate.spark.plan_door import PlanRow, Plans
from tidegate.spark.plan_source import BEGINNING
from tidegate.spark.spec import Job


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each plan was known here; every one is compared with the row that Spark has."""
    found: list[bool] = []

    def looked(rows: DataFrame, number: int, known: PlanRow | None) -> PlanRow:
        used = plan_of(rows, number, known)
        assert used == plan_of(rows, number, None)
        found.append(used is known)
        return used

    monkeypatch.setattr(batches, "plan_of", looked)
    return found


def test_what_was_planned_here_is_what_spark_runs(world: World, compared: list[bool]) -> None:
    world.stream(segments=2)
    job = world.windows(size=10, max_rows=3)
    both = Both(world, job, Truth(10 * S))
    for life in range(2):
        for n in range(3):
            top = 100 * life + 30 * n
            world.append([(f"k{n}", n, top + at) for n, at in enumerate((1, 2, 13, 19, 25))])
            both.go()
        both.stop()
    both.check()
    assert len(compared) > 6
    assert all(compared)


def test_a_batch_of_an_earlier_run_is_fetched_from_spark(
    world: World, compared: list[bool]
) -> None:
    world.stream()
    both = Both(world, world.windows(size=10), Truth(10 * S))
    world.append([("a", 1, 5), ("a", 2, 15)])
    both.fail("batch: before commit")
    assert compared == [True]
    both.go()
    both.stop()
    both.check()
    assert compared[:2] == [True, False]


def test_a_planner_that_fails_says_so_to_its_source(world: World) -> None:
    world.stream()
    job: Job = world.windows(size=10).job
    address, key, name = _place(world, job)
    with Client(address, authkey=key) as asking:
        asking.send(name)
        ask = _asker(asking)
        done, answer = ask("after", dict(BEGINNING))
        assert done
        assert answer != BEGINNING
        done, answer = ask("after", {})
        assert not done
        assert "the planner failed" in str(answer)
        assert "Traceback" in str(answer)


def test_a_planner_that_cannot_be_opened_says_so_to_its_source(world: World) -> None:
    def away() -> Plans:
        raise ConflictError("away", "the catalog is away")

    place = desk.place_for(world.spark, away)
    assert place is not None
    address, key, name = place
    with Client(address, authkey=key) as asking:
        asking.send(name)
        for _ in range(2):
            done, answer = _asker(asking)("after", dict(BEGINNING))
            assert not done
            assert isinstance(answer, ConflictError)
            assert str(answer) == "the catalog is away"


def test_a_stranger_is_not_answered_and_disturbs_nobody(world: World) -> None:
    world.stream()
    address, key, name = _place(world, world.windows(size=10).job)
    with pytest.raises(AuthenticationError):
        Client(address, authkey=b"guessed")
    with Client(address, authkey=key) as asking:
        asking.send("nobody")
        with pytest.raises(EOFError):
            asking.recv()
    with Client(address, authkey=key) as asking:
        asking.send(name)
        done, _ = _asker(asking)("after", dict(BEGINNING))
        assert done


def test_where_there_is_no_desk_the_source_plans_by_itself(
    world: World, compared: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(desk, "Listener", full)
    monkeypatch.setattr(desk, "_desk", desk._desk.__wrapped__)
    world.stream()
    world.append([("a", 1, 5), ("a", 2, 15)])
    assert world.windows(size=10).run(tell=False)["rows_out"] == 1
    assert compared == [False]


def _place(world: World, job: Job) -> desk.Place:
    place = desk.place_for(world.spark, lambda: Plans(job))
    assert place is not None
    return place


def _asker(asking: Any) -> Callable[..., tuple[bool, Any]]:
    def ask(*question: Any) -> tuple[bool, Any]:
        asking.send(question)
        done, answer = asking.recv()
        return done, answer

    return ask
