"""Random schedules of everything at once, against a model that only keeps lists.

Whatever writers, overlapping transactions, scales, crashes, compactions, truncations and
controllers do: every row before a mark's lower number, from a writer in that mark, lies before its
cut; every acknowledged row keeps its place, is read once by a reader group, in order per key; and
every plan of every job reads each row that it should, once.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.schedule_world import NAMES, World

from tidegate.store import Store

ACTS = (
    *("append",) * 4,
    *("begin", "begin", "begin", "begin", "fill", "fill", "end", "end", "end", "expire"),
    *("note", "note", "all_note", "all_note", "all_note", "flush", "crash", "zombie", "close"),
    *("anonymous", "scale", "cycle", "cycle", "hand_over", "compact", "truncate", "truncate"),
    *("consume", "consume", "plan", "plan", "plan", "plan", "plan"),
)
Step = tuple[str, str, int, list[int]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(ACTS),
        st.sampled_from(NAMES),
        st.integers(0, 2),
        st.lists(st.integers(0, 9), min_size=1, max_size=3),
    ),
    min_size=30,
    max_size=90,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, to be copied: migrating one costs more than a schedule."""
    folder = tmp_path_factory.mktemp("template")
    Store.open(folder).close()
    return folder


def lived(template: Path, steps: list[Step]) -> None:
    """Let a schedule happen in a world of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        shutil.copytree(template, folder)
        world = World(folder)
        try:
            for act, who, which, times in steps:
                getattr(world, act)(who, which, times)
            world.finish()
        finally:
            for writer in (*world.writers.values(), *world.fenced):
                writer.abandon()
            world.store.close()


@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_no_schedule_loses_doubles_or_moves_a_row_or_breaks_a_mark(
    template: Path, steps: list[Step]
) -> None:
    lived(template, steps)


@pytest.mark.faults
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_no_schedule_does_in_many_more_of_them(template: Path, steps: list[Step]) -> None:
    lived(template, steps)
