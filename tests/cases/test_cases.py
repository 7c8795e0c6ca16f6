"""Every case with numbers, replayed by one runner.

The cases stand in `cases.yaml`. Where a newer file of the same name lies in the folder shared by
those who work on the project, its cases are replayed too. What a family of cases does stands in the
modules `families_*`; where the convention of a case differs from ours, in `conventions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.cases import (
    families_generators,
    families_headline,
    families_marks,
    families_progress,
    families_release,
    families_tracker,
)
from tests.cases.conventions import CONVENTIONS
from tests.cases.family import Case, Family, fail

HERE: Final = Path(__file__).resolve().parent
FILES: Final = (HERE / "cases.yaml", HERE.parents[2] / "shared" / "cases.yaml")

FAMILIES: Final[Mapping[str, type[Family]]] = {
    **families_tracker.FAMILIES,
    **families_generators.FAMILIES,
    **families_marks.FAMILIES,
    **families_progress.FAMILIES,
    **families_release.FAMILIES,
    **families_headline.FAMILIES,
}


def read_all(files: Iterable[Path] = FILES) -> list[Case]:
    """The cases of all files that are there, each once."""
    cases: list[Case] = []
    for file in files:
        if file.exists():
            entries = yaml.safe_load(file.read_text(encoding="utf-8"))
            cases += [case for case in map(Case.read, entries) if case not in cases]
    return cases


def replay(case: Case) -> None:
    """Replay one case; a family nobody knows fails it."""
    if case.family not in FAMILIES:
        fail(case, f"no such family; there are: {', '.join(FAMILIES)}")
    FAMILIES[case.family].replay(case)


@pytest.mark.parametrize("case", read_all(), ids=lambda case: case.id)
def test_case(case: Case) -> None:
    replay(case)


# ---- the runner itself: what it does not know, it does not pass ----


def one(family: str, *steps: Mapping[str, Any], **init: Any) -> Case:
    return Case("X-1", family, init, list(steps))


REGISTER = {"do": "register", "s": 0, "n": 1}


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        (one("weather", REGISTER), "no such family"),
        (one("partition_tracker"), "is told by its steps"),
        (Case("X-1", "partition_tracker", {}, [REGISTER], {"n": 3}), "is told by its steps"),
        (one("partition_tracker", {"do": "fly"}), "no do 'fly'; there are: active, add"),
        (one("partition_tracker", {"check": "fly", "is": 1}), "no check 'fly'; there are: active"),
        (one("partition_tracker", {"fly": 1}), "no do None"),
        (one("partition_tracker", {**REGISTER, "m": 1}), "unexpected keyword argument 'm'"),
        (one("partition_tracker", {"do": "register"}), "missing a required argument: 's'"),
        (one("partition_tracker", REGISTER, colour=1), "unexpected keyword argument 'colour'"),
        (one("partition_tracker", {"check": "current"}), "a check without `is`"),
        (
            one("partition_tracker", REGISTER, {"do": "update", "p": "0:0", "wm": 5, "ret": None}),
            "step 2, do update .* expected None, got 5",
        ),
        (
            one("partition_tracker", REGISTER, {"check": "current", "is": 0}),
            "step 2, check current .* expected 0, got UNKNOWN",
        ),
        (
            one("partition_tracker", REGISTER, {"check": "metrics", "is": {"colour": 1}}),
            "check metrics",
        ),
        (
            one("partition_tracker", REGISTER, {"do": "add", "p": "0:0", "ret": "ok"}),
            "expected 'ok', got Refusal",
        ),
        (
            one("partition_tracker", REGISTER, {"do": "add", "p": "0:1", "ret": "error:exists"}),
            "expected 'error:exists', got None",
        ),
        (
            one("partition_tracker", REGISTER, {"do": "idle", "p": "0:9", "ret": "error:exists"}),
            "expected 'error:exists', got Refusal",
        ),
        (one("partition_batched", {"do": "run"}), "without steps and init"),
    ],
)
def test_what_the_runner_does_not_know_or_find_fails_the_case_by_name(
    case: Case, problem: str
) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"case X-1 of .*{problem}"):
        replay(case)


def test_an_error_that_no_step_expects_is_not_swallowed() -> None:
    with pytest.raises(Exception, match="unknown source"):
        replay(one("partition_tracker", {"do": "idle", "p": "0:0"}))


def test_the_same_case_in_two_files_is_replayed_once_and_a_changed_one_again(
    tmp_path: Path,
) -> None:
    ours, theirs = tmp_path / "ours.yaml", tmp_path / "theirs.yaml"
    ours.write_text("[{id: A, family: f, steps: [{do: x}]}, {id: B, family: f, n: 1}]")
    theirs.write_text("[{id: B, family: f, n: 2}, {id: A, family: f, steps: [{do: x}]}]")
    found = read_all([ours, tmp_path / "nowhere.yaml", theirs])
    assert [case.id for case in found] == ["A", "B", "B"]
    assert [case.facts for case in found] == [{}, {"n": 1}, {"n": 2}]


def test_every_family_of_the_cases_and_of_the_conventions_is_there() -> None:
    assert {case.family for case in read_all()} <= FAMILIES.keys()
    named = {family for convention in CONVENTIONS for family in convention.families}
    assert named - {"all"} <= FAMILIES.keys()
