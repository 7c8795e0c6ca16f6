"""A controller is killed at every step of its work: another takes over, and nothing is lost."""

from __future__ import annotations

import random
import shutil
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from tests.store.controller_scenario import live, prepare, take_over

SEED = 20260131

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.store.controller_scenario", "tests.store.kill_scenario"])


class Campaign:
    """The same life again and again, in a copy of the same store each time."""

    def __init__(self, url: str, tmp_path: Path) -> None:
        self.url = url
        self.prepared = tmp_path / "prepared"
        self.tmp_path = tmp_path
        prepare(url, self.prepared)

    def run(self, kill_at: int) -> list[str]:
        """Let a child live and another take over; return what the child told."""
        data, told = self.tmp_path / f"data-{kill_at}", self.tmp_path / f"told-{kill_at}"
        shutil.copytree(self.prepared, data)
        told.touch()
        with copied(self.url) as url:
            child = _CONTEXT.Process(target=live, args=(url, str(data), str(told), kill_at))
            child.start()
            child.join(60)
            assert child.exitcode == (-signal.SIGKILL if kill_at else 0)
            take_over(url, data, told)
        shutil.rmtree(data)
        return told.read_text().splitlines()

    def steps(self) -> int:
        """How many steps there are when nobody is killed."""
        return int(self.run(kill_at=0)[-1].removeprefix("steps "))


@contextmanager
def copied(url: str) -> Iterator[str]:
    """The address of a copy of a catalog that nobody is connected to."""
    name, original = f"t_{uuid.uuid4().hex}", make_url(url)
    if original.get_backend_name() == "sqlite":
        assert original.database is not None
        copy = Path(original.database).with_name(name)
        shutil.copy(original.database, copy)
        yield f"sqlite:///{copy}"
        copy.unlink()
        return
    server = create_engine(original.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as on:
        on.execute(text(f"CREATE DATABASE {name} TEMPLATE {original.database}"))
    yield original.set(database=name).render_as_string(hide_password=False)
    with server.connect() as on:
        on.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def campaign(catalog_url: str, tmp_path: Path) -> Campaign:
    return Campaign(catalog_url, tmp_path)


def test_a_killed_controller_is_followed_by_another(campaign: Campaign) -> None:
    for kill_at in random.Random(SEED).sample(range(1, campaign.steps() + 1), 3):
        campaign.run(kill_at)


@pytest.mark.faults
def test_a_controller_is_killed_at_every_step(campaign: Campaign) -> None:
    for kill_at in range(1, campaign.steps() + 1):
        campaign.run(kill_at)
