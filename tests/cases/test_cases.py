"""Every case with numbers, replayed by one runner.

A step is `{do: op, ..., ret: expected}` or `{check: what, ..., is: value}`; without `ret` nothing
is asserted. An op, a check or a family that nobody knows is a failure. Where a case writes
something otherwise than we do stands in `conventions.py`, and only there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cases import families_marks as marks
from tests.cases import families_progress as progress
from tests.cases import families_release as release
from tests.cases import families_tracker as tracker
from tests.cases.conventions import expected

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "cases.yaml"

FAMILIES: dict[str, Callable[..., Any]] = {
    "partition_tracker": tracker.Tracker,
    "core_state": tracker.Lane,
    "global_collector": tracker.Collector,
    "kafka_tracker": tracker.KafkaTracker,
    "alignment": tracker.Alignment,
    "generator": release.Generator,
    "veloflux_watermark": release.Release,
    "veloflux_pipeline": release.Pipeline,
    "writer_mark": marks.Writers,
    "watermark_client": marks.WatermarkClient,
    "pravega_controller": marks.Controller,
    "reader_compare": marks.ReaderCompare,
    "frontier": progress.Frontier,
    "injector": progress.Injector,
    "event_window": progress.EventWindow,
}


def load() -> list[Any]:
    """The cases of the repository, and those beside it that are not the same."""
    cases = yaml.safe_load((HERE / "cases.yaml").read_text())
    if SHARED.exists():
        cases += [c for c in yaml.safe_load(SHARED.read_text()) if c not in cases]
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", load())
def test_case(case: dict[str, Any]) -> None:
    if case["family"] == "partition_batched":
        progress.check_partition_batched(case)
        return
    assert case["family"] in FAMILIES, f"nobody knows the family {case['family']}"
    world = FAMILIES[case["family"]](**case.get("init", {}))
    for number, step in enumerate(case["steps"]):
        replay(world, dict(step), f"{case['id']}, step {number}: {step}")


def replay(world: Any, step: dict[str, Any], where: str) -> None:
    """Carry out one step, or check something."""
    if "do" in step:
        has_wish = "ret" in step
        name, wants = f"do_{step.pop('do')}", step.pop("ret", None)
    else:
        name, wants, has_wish = f"check_{step.pop('check')}", step.pop("is"), True
    act = getattr(world, name, None)
    assert act is not None, f"{where}: nobody knows {name}"
    found = act(**step)
    if not has_wish:
        return
    wants = None if wants == "MIN" else expected(wants)
    if isinstance(wants, dict) and isinstance(found, dict) and name == "check_metrics":
        found = {key: found[key] for key in wants}
    assert found == wants, where
