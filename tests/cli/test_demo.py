"""`tidegate demo`, as a newcomer runs it: a process of its own, with a session of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate.cli import app

ROWS = 40_000


@dataclass(frozen=True)
class Run:
    shown: str
    said: str
    out: Path
    folder: Path

    def row(self, name: str) -> list[list[str]]:
        """The cells of every line of the table that begins with a name."""
        lines = [line for line in self.shown.splitlines() if line.startswith("│")]
        cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]
        return [found[1:] for found in cells if found[0] == name]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("demo")
    options = ["--rows", str(ROWS), "--seconds", "10", "--folder", "here", "--out", "pictures"]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", "demo", *options],
        capture_output=True,
        cwd=place,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        encoding="utf-8",
        timeout=600,  # a minute, unless the machine is busy with something else
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return Run(done.stdout, done.stderr, place / "pictures", place / "here")


def test_tidegate_loses_nothing_and_gets_every_window_right(run: Run) -> None:
    beside, alone = run.row("Tidegate")
    assert beside[:2] == alone[:2] == ["0", "90 of 90"]
    assert re.fullmatch(r"\d+\.\d s after", beside[2])
    assert re.fullmatch(r"\d+\.\d s in all", alone[2])
    assert re.fullmatch(r"[\d,]+", alone[3])


def test_stock_spark_loses_rows_of_the_same_backlog(run: Run) -> None:
    assert [row[:2] for row in run.row("truth")] == [[f"of {ROWS:,}", "90 of 90"]]
    for row in run.row("stock Spark"):
        lost, (right, windows) = int(row[0].replace(",", "")), row[1].split(" of ")
        assert 0 < lost < ROWS
        assert int(right) < int(windows) == 90


def test_the_screen_is_eighty_columns_wide_and_spark_says_nothing_on_it(run: Run) -> None:
    assert run.said == ""
    assert all(len(line) <= 80 or line.startswith("The same") for line in run.shown.splitlines())
    assert "WARN" not in run.shown
    assert (run.out / "spark.log").exists()


def test_the_chart_has_a_line_for_every_partition_for_w_and_for_stock_spark(run: Run) -> None:
    chart = [line for line in run.shown.splitlines() if re.match(r"[ \w:]{7} │", line)]
    assert len(chart) == 17
    drawn = "".join(line[9:] for line in chart)
    assert {"━", "█"} < set(drawn)
    assert set(drawn) & set("12345")


def test_the_picture_is_written_and_a_named_folder_stays(run: Run) -> None:
    assert (run.out / "live.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (run.out / "live.svg").read_text()
    assert {"store", "files"} <= {path.name for path in run.folder.iterdir()}


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear reader")
    call = ["demo", "--folder", str(tmp_path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2
    assert result.stderr.startswith("folder is not empty\n")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "java is not there"),
        ("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is of version 11"),
        ("#!/bin/sh\nexit 1", "is of no version"),
    ],
)
def test_without_a_java_that_will_do_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, told: str
) -> None:
    java = tmp_path / "bin" / "java"
    if script is not None:
        java.parent.mkdir()
        java.write_text(script)
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert result.stderr.startswith("no Java runtime, 17 or newer\n")
    assert told in result.stderr
    assert "apt-get install openjdk-17-jre-headless" in result.stderr
