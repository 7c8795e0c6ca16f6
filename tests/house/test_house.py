"""The rules of the house that no other tool checks."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tidegate"

LONGEST = 430
LONGER_FOR_A_REASON = {
    "errors.py": "every error a user can meet stands in one file, so that each text stands once"
}

# Written in two parts, so that this file does not find itself.
REGISTRY = re.compile(
    "|".join(("index" + "-url", "find" + "-links", "pypi" + r"\.org", "python" + "hosted"))
)
MADE_HERE = {"build", "dist", "__pycache__"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def texts() -> Iterator[tuple[str, str]]:
    """Every text file of the repository, without what is made in it."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in MADE_HERE and (f == ".ci" or f[0] != ".")]
        for name in names:
            path = Path(folder, name)
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


# ---- files ----


def test_no_file_is_too_long_to_hold_one_idea() -> None:
    longer = {
        path.relative_to(SOURCE).as_posix()
        for path in modules()
        if path.read_text(encoding="utf-8").count("\n") > LONGEST
    }
    assert longer == set(LONGER_FOR_A_REASON)


def test_no_file_is_named_after_nothing() -> None:
    nothing = {"utils", "util", "helpers", "helper", "common", "misc"}
    paths = [path.relative_to(SOURCE).with_suffix("") for path in modules()]
    assert {part.strip("_") for path in paths for part in path.parts}.isdisjoint(nothing)


def test_every_file_begins_by_saying_what_it_is() -> None:
    for path in modules():
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert said, path
        assert said.splitlines()[0].endswith((".", "?")), path


def test_what_a_room_exports_is_there_and_named_once() -> None:
    for path in SOURCE.rglob("__init__.py"):
        room = import_module(".".join(path.parent.relative_to(SOURCE.parent).parts))
        exported: list[str] = getattr(room, "__all__", [])
        assert len(exported) == len(set(exported)), room
        assert [name for name in exported if not hasattr(room, name)] == [], room


def test_scripts_can_be_run() -> None:
    for path in [*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run"]:
        if path.is_file():
            assert path.read_text(encoding="utf-8").startswith("#!"), path
            assert os.access(path, os.X_OK), path


# ---- what is installed ----


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    for line in pinned:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
    return {canonicalize_name(name): version for name, version in (p.split("==") for p in pinned)}


def requirements() -> list[Requirement]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(text) for group in (project["dependencies"], *extras) for text in group]


@pytest.mark.parametrize("needed", requirements(), ids=str)
def test_what_the_project_asks_for_is_pinned_to_a_version_that_will_do(needed: Requirement) -> None:
    assert needed.specifier.contains(pins()[canonicalize_name(needed.name)])


def test_constraints_are_names_and_versions_and_nothing_else() -> None:
    assert pins()
    assert "http" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_no_file_names_a_package_registry() -> None:
    assert [name for name, text in texts() if REGISTRY.search(text)] == []


# ---- the Makefile ----


def test_every_make_target_that_the_documents_name_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE))
    named = {
        target
        for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
        for target in re.findall(
            r"(?:^|`)make ([a-z0-9-]+)", path.read_text(encoding="utf-8"), re.M
        )
    }
    assert {"demo", "test"} <= named <= targets
