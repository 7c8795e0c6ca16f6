"""What a newcomer sees while the demo runs: a bar that fills, and a line for what is done."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

from rich.console import Console

from tidegate.cli.demo_screen import Steps

PROGRAM = """
import os, sys
from pathlib import Path
from tidegate.cli.demo_screen import Steps
from tidegate.cli.spark_output import spoken_into
from tidegate.cli.terminal import open_console

console = open_console(color=False)
with Steps(console, expected=4) as steps, steps.step("a Spark session starts", 2):
    with spoken_into(Path(sys.argv[1])):
        os.write(1, b"what a JVM says")
        console.print("meanwhile")
console.print("and after it")
"""


def _drawn(shown: str) -> list[str]:
    """The bar every time it was drawn: what it is about, and how full it is."""
    plain = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", shown)
    return [f"{name} {percent}" for name, percent in re.findall(r"(\w+) ━+ +(\d+%) 0:", plain)]


def _wait_for(bar: str, screen: StringIO) -> None:
    """Ten times a second the bar is drawn as it is."""
    began = time.monotonic()
    while bar not in _drawn(screen.getvalue()):
        assert time.monotonic() - began < 60, f"no {bar} among {set(_drawn(screen.getvalue()))}"
        time.sleep(0.01)


def test_on_a_terminal_a_bar_fills_with_the_parts_of_a_run() -> None:
    screen = StringIO()
    console = Console(force_terminal=True, color_system=None, file=screen, width=80)
    with Steps(console, expected=8) as steps:
        for name, full in (("writing", "25%"), ("counting", "75%")):
            with steps.step(name, 4) as tell:
                tell(0.5)
                _wait_for(f"{name} {full}", screen)
    shown = screen.getvalue()
    assert _drawn(shown)[-1] == "counting 100%"
    assert re.findall(r"\d+\.\d s  (\w+)", shown) == ["writing", "counting"]
    assert shown.endswith("\x1b[2K")  # at the end the bar is gone


def test_where_nobody_looks_there_are_only_the_lines() -> None:
    file = StringIO()
    console = Console(file=file, width=80)
    with Steps(console, expected=4) as steps, steps.step("writing", 4) as tell:
        tell(0.5)
    assert re.fullmatch(r" +\d+\.\d s  writing\n", file.getvalue())


def test_the_bar_stays_on_the_terminal_while_standard_output_leads_elsewhere(
    tmp_path: Path,
) -> None:
    ours, theirs = pty.openpty()
    said = tmp_path / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(said)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "PYTHONUTF8": "1"},
        timeout=120,
        check=False,
    )
    os.close(theirs)
    shown = _all_of(ours)
    assert done.returncode == 0, done.stderr
    assert said.read_text() == "what a JVM says"
    assert "meanwhile" in shown
    assert "and after it" in shown
    assert "starts 50%" in _drawn(shown)


def _all_of(terminal: int) -> str:
    """Everything that was written to a terminal whose other end is closed."""
    found = b""
    try:
        while part := os.read(terminal, 65536):
            found += part
    except OSError:  # which is how a terminal says that this was all
        pass
    os.close(terminal)
    return found.decode()
