"""A controller is killed at every step of its work: another takes over, and nothing is lost."""

from __future__ import annotations

import random
import shutil
import signal
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.store.controller_scenario import live, prepare, take_over

SEED = 20260131

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.store.controller_scenario", "tests.store.kill_scenario"])


class Campaign:
    """The same life again and again, in a copy of the same store each time."""

    def __init__(self, tmp_path: Path) -> None:
        self.prepared = tmp_path / "prepared"
        self.tmp_path = tmp_path
        prepare(self.prepared)

    def run(self, kill_at: int) -> list[str]:
        """Let a child live and another take over; return what the child told."""
        folder, told = self.tmp_path / f"store-{kill_at}", self.tmp_path / f"told-{kill_at}"
        shutil.copytree(self.prepared, folder)
        told.touch()
        child = _CONTEXT.Process(target=live, args=(str(folder), str(told), kill_at))
        child.start()
        child.join(60)
        assert child.exitcode == (-signal.SIGKILL if kill_at else 0)
        take_over(folder, told)
        shutil.rmtree(folder)
        return told.read_text().splitlines()

    def steps(self) -> int:
        """How many steps there are when nobody is killed."""
        return int(self.run(kill_at=0)[-1].removeprefix("steps "))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


def test_a_killed_controller_is_followed_by_another(campaign: Campaign) -> None:
    for kill_at in random.Random(SEED).sample(range(1, campaign.steps() + 1), 3):
        campaign.run(kill_at)


@pytest.mark.faults
def test_a_controller_is_killed_at_every_step(campaign: Campaign) -> None:
    for kill_at in range(1, campaign.steps() + 1):
        campaign.run(kill_at)
