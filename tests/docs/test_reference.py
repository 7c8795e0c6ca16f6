"""The reference is what the code says; the guide and the model keep up with it."""

from __future__ import annotations

import runpy
from dataclasses import fields
from pathlib import Path

from tests.docs.markdown import ROOT, Page

from tidegate.eventtime.watermark import IDLE, UNKNOWN
from tidegate.planning.batch import Reason
from tidegate.planning.policy import Policy


def test_the_reference_is_up_to_date() -> None:
    pages: dict[Path, str] = runpy.run_path(str(ROOT / "scripts" / "reference"))["pages"]()
    stale = [
        path.name
        for path, text in pages.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run: .venv/bin/python scripts/reference"
    assert set(pages) == set((ROOT / "docs" / "reference").glob("*.md"))


def test_the_guide_speaks_of_every_setting() -> None:
    spans = set(Page(ROOT / "docs" / "guide" / "choose-a-policy.md").code_spans())
    assert {field.name for field in fields(Policy)} <= spans


def test_the_model_defines_the_words_that_are_values() -> None:
    text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    for word in (UNKNOWN, IDLE):
        assert f"\n| {word.name} |" in text


def test_the_model_has_every_reason_a_partition_is_not_read_for() -> None:
    text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    (hindrance,) = [line for line in text.splitlines() if line.startswith("| hindrance |")]
    hindered = (
        Reason.BEHIND,
        Reason.THROTTLED,
        Reason.ALIGNED,
        Reason.PAUSED,
        Reason.UNREADABLE,
    )
    assert all(reason.value in hindrance for reason in hindered)


def test_the_architecture_has_every_room() -> None:
    rooms = {path.parent.name for path in ROOT.glob("src/tidegate/*/__init__.py")}
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert {room for room in rooms if f"\n| `tidegate.{room}` |" not in text} == set()


def test_decisions_are_numbered_without_gaps_and_have_three_parts() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{n:03}-" for n in range(1, len(pages) + 1)]
    for page in pages:
        assert Page(page).anchors() >= {"context", "decision", "consequence"}, page.name
