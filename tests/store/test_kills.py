"""A writer is killed at every step of its work: nothing answered is lost, nothing is doubled."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest
from tests.store.kill_scenario import START, live, recover
from tests.store.visible import all_of

from tidegate.store import Store

ORDERS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
SEED = 20260131

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.store.kill_scenario"])


class Campaign:
    """The same life again and again, in a fresh store each time."""

    def __init__(self, url: str, tmp_path: Path) -> None:
        self.url, self.tmp_path = url, tmp_path
        self.runs = 0

    def run(self, kill_at: int) -> Path:
        """Let a child live; return what it told."""
        self.runs += 1
        told = self.tmp_path / f"told-{self.runs}"
        told.touch()
        with Store.open(self.url, data=self.tmp_path / "data", clock=lambda: START) as store:
            for name in store.list_streams():
                store.delete_stream(name)
            store.create_stream(
                "orders", ORDERS, event_column="at", routing_key=("id",), segments=2
            )
        child = _CONTEXT.Process(
            target=live, args=(self.url, str(self.tmp_path / "data"), str(told), kill_at)
        )
        child.start()
        child.join(60)
        # How many steps there are differs a little: whether a mark cycle is due, for one.
        finished = told.read_text().splitlines()[-1:]
        if child.exitcode == 0 and finished:
            assert kill_at == 0 or int(finished[0].removeprefix("steps ")) < kill_at
        else:
            assert child.exitcode == -signal.SIGKILL
        with Store.open(self.url, data=self.tmp_path / "data", clock=lambda: START) as store:
            recover(store, told)
        return told

    def steps(self) -> int:
        """How many steps there are when nobody is killed."""
        told = self.run(kill_at=0).read_text().splitlines()
        return int(told[-1].split()[1])


@pytest.fixture
def campaign(catalog_url: str, tmp_path: Path) -> Campaign:
    return Campaign(catalog_url, tmp_path)


def test_a_killed_writer_loses_nothing_and_doubles_nothing(campaign: Campaign) -> None:
    steps = campaign.steps()
    for kill_at in random.Random(SEED).sample(range(1, steps + 1), 3):
        campaign.run(kill_at)


@pytest.mark.faults
def test_a_writer_is_killed_at_every_step(campaign: Campaign) -> None:
    steps = campaign.steps()
    everywhere = range(1, steps + 1)
    seeded = random.Random(SEED).sample(everywhere, 20)
    for kill_at in everywhere if campaign.url.startswith("sqlite") else seeded:
        campaign.run(kill_at)


def test_the_scenario_itself_leaves_rows(
    campaign: Campaign, open_store: Callable[..., Store]
) -> None:
    campaign.run(kill_at=0)
    assert len(all_of(open_store(), "orders", "n")) == 20
