"""What the documents show is what happens, and what they name is there."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.markdown import PAGES, ROOT, Block, Page

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
"""One test per page, so that a failure names it."""

SHOWN = ("src", "tests", "docs", "examples", "scripts", "bench")
_PATH = re.compile(rf"(?:(?:{'|'.join(SHOWN)})/[\w./-]*|[\w./-]+\.(?:py|md|toml))(?:::\w+)?")
_MODULE = re.compile(r"tidegate(?:\.\w+)+")


# ---- what runs ----


@every_page
def test_every_block_says_what_it_is(page: Page) -> None:
    blocks = list(page.blocks())
    assert page.text.count("```") == 2 * len(blocks)
    assert {block.language for block in blocks} <= {"python", "text", "console", "bash"}


def run_python(block: Block, page: Page, names: dict[str, Any]) -> str:
    """Run a block in the names of its page; return what it prints."""
    # The lines above it are put back, so that a traceback points into the page.
    source = "\n" * (block.line - 1) + block.text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, page.name, "exec"), names)
    return printed.getvalue()


@every_page
def test_python_blocks_run_and_print_what_the_page_says(page: Page) -> None:
    names: dict[str, Any] = {"__name__": page.name}
    printed = ""
    shown = True
    for block in page.blocks():
        if block.language == "text" and block.follows_on and not shown:
            assert printed == block.text, f"{page.name}:{block.line}"
            shown = True
        if block.language == "python":
            assert shown, (
                f"{page.name}: what the block before line {block.line} prints is not shown"
            )
            printed = run_python(block, page, names)
            shown = not printed
    assert shown, f"{page.name}: the last block prints what the page does not show:\n{printed}"


def commands(page: Page) -> list[tuple[str, list[str]]]:
    """The calls of `tidegate` on a page, each with the lines of output that are quoted after it."""
    found: list[tuple[str, list[str]]] = []
    for block in page.blocks():
        if block.language not in ("console", "bash"):
            continue
        for line in block.text.splitlines():
            command = line.removeprefix("$ ")
            if block.language == "bash" or line.startswith("$ "):
                found.append((command.partition(" #")[0].strip(), []))
            elif found:
                found[-1][1].append(line.rstrip())
    return [(command, quoted) for command, quoted in found if command.startswith("tidegate ")]


def output_of(command: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        capture_output=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return [line.rstrip() for line in done.stdout.splitlines()]


CALLS = [(page.name, command, quoted) for page in PAGES for command, quoted in commands(page)]


@pytest.mark.parametrize(("name", "command", "quoted"), CALLS)
def test_commands_run_and_print_the_lines_that_are_quoted(
    name: str, command: str, quoted: list[str], tmp_path: Path
) -> None:
    rest = iter(output_of(command, tmp_path))
    for line in quoted:  # each `in` goes on where the last one stopped
        assert line in rest, f"{name}: `{command}` does not print, in this order: {line}"


def test_the_readme_shows_the_demo_with_its_figures() -> None:
    (quoted,) = [quoted for name, command, quoted in CALLS if command == "tidegate demo --pure"]
    figures = " ".join(quoted)
    assert re.search(r"one global watermark\D+\d+\D+9,\d{3}", figures)
    assert re.search(r"Tidegate\D+10,000\D+0\D", figures)


# ---- what is named ----


def files() -> set[str]:
    """Every file of the repository that a page may name."""
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.iterdir() if path.is_file()}
    for folder in SHOWN:
        found |= {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*")}
    return found


@every_page
def test_every_path_that_is_named_is_there(page: Page) -> None:
    known = files()
    for span in page.code_spans():
        if not _PATH.fullmatch(span):
            continue
        path, _, test = span.partition("::")
        ends = [name for name in known if name == path.rstrip("/") or name.endswith(f"/{path}")]
        assert ends, f"{page.name} names `{path}`, which is not there"
        if test:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"^def {test}\(", source, re.MULTILINE), f"{page.name}: `{span}`"


@every_page
def test_every_module_that_is_named_can_be_imported(page: Page) -> None:
    for span in page.code_spans():
        if not _MODULE.fullmatch(span):
            continue
        try:
            importlib.import_module(span)
        except ModuleNotFoundError:
            module, _, name = span.rpartition(".")
            assert hasattr(importlib.import_module(module), name), f"{page.name} names `{span}`"


@every_page
def test_every_link_leads_somewhere(page: Page) -> None:
    for link in page.links():
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in Page(target).anchors(), f"{page.name} links to {link}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    todo, reached = [ROOT / "README.md"], set[Path]()
    while todo:
        at = todo.pop()
        if at in reached:
            continue
        reached.add(at)
        links = [link.partition("#")[0] for link in Page(at).links()] if at.suffix == ".md" else []
        todo += [(at.parent / link).resolve() for link in links if link]
        todo += at.glob("*.md") if at.is_dir() else []
    assert {page.name for page in PAGES if page.path not in reached} == set()
