"""What a user sees when something is wrong: words and an exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate.cli import app, demo_headline
from tidegate.testing import Headline


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Headline(rows=120, traders=5, symbols=10, partitions=4)
    monkeypatch.setattr(demo_headline, "Headline", lambda: small)


def test_an_error_is_its_text_on_stderr_and_the_exit_code_two(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "taken" / "demo")])
    assert result.exit_code == 2
    assert result.stderr == (
        "output cannot be written\n"
        f'Detail: "{tmp_path}/taken/demo": Not a directory.\n'
        "Hint: choose another folder, or make this one writable.\n"
    )


def test_on_a_terminal_an_error_is_red(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": None}
    result = CliRunner().invoke(
        app, ["demo", "--out", str(tmp_path / "taken" / "demo")], env=terminal
    )
    assert result.stderr.startswith("\x1b[31moutput cannot be written")


def test_an_unknown_command_is_refused_with_the_exit_code_two() -> None:
    result = CliRunner().invoke(app, ["dmo"])
    assert result.exit_code == 2
    assert "dmo" in result.stderr


def test_help_lists_the_commands_in_plain_words() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "Show stock Spark beside Tidegate, on the same rows" in result.output
    assert "Tell which version this is" in result.output


def test_the_module_is_the_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tidegate", "version"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, f"tidegate {version('tidegate')}\n")
