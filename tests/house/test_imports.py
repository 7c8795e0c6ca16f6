"""The rooms import downwards only, and the pure ones stay pure."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tidegate"

HEAVY = {
    *("pyspark", "sqlalchemy", "duckdb", "confluent_kafka"),
    *("typer", "rich", "matplotlib", "pandas"),
}


def contracts() -> dict[str, dict[str, Any]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return {contract["type"]: contract for contract in listed}


def pure_rooms() -> list[str]:
    rooms: list[str] = contracts()["forbidden"]["source_modules"]
    return rooms


def loaded_by(*modules: str) -> set[str]:
    """The packages that a fresh interpreter has loaded after importing these."""
    program = f"import sys, {', '.join(modules)}; print(*{{n.split('.')[0] for n in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_a_fresh_interpreter_has_nothing_heavy_loaded_with_the_pure_rooms() -> None:
    loaded = loaded_by("tidegate", *pure_rooms(), "tidegate.testing")
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_import_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_every_room_has_its_place_in_the_contracts() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {"errors"}
    layers: list[str] = contracts()["layers"]["layers"]
    assert {layer.removeprefix("tidegate.") for layer in layers} == rooms


def test_the_public_door_has_only_pure_names() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    sources = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert sources <= {*pure_rooms(), "importlib.metadata"}


# What the contracts cannot see, because it needs no import of its own.
IMPURE_CALLS = {"open", "print", "input", "breakpoint", "exec", "eval"}
CLOCKS = {"now", "utcnow", "today", "fromtimestamp"}


def impure_calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in IMPURE_CALLS:
                yield f"{called.id}() in line {node.lineno}"
            if isinstance(called, ast.Attribute) and called.attr in CLOCKS:
                yield f".{called.attr}() in line {node.lineno}"


def pure_files() -> list[Path]:
    rooms = [ROOT / "src" / room.replace(".", "/") for room in pure_rooms()]
    return [file for room in rooms for file in (*room.rglob("*.py"), room.with_suffix(".py"))]


def test_pure_rooms_open_nothing_print_nothing_and_ask_no_clock() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {call}"
        for path in pure_files()
        if path.exists()
        for call in impure_calls(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


def test_that_check_would_see_a_clock_and_a_file() -> None:
    tree = ast.parse("at = datetime.now()\nwith open('x') as file: pass")
    assert list(impure_calls(tree)) == [".now() in line 1", "open() in line 2"]
