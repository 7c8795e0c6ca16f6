"""Lives of drivers: processes of their own, killed at a named point or left to their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRIVER = "tests.restart.driver"
SAID, TOLD = "said", "told"
"""What a driver has printed, and what went beside it: Spark tells much."""


def environment_of(kills: Path, point: str | None, nth: int = 1) -> dict[str, str]:
    """What all processes of a driver are told."""
    hook = ROOT / "tests" / "restart" / "hook"
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(hook), *before, str(ROOT), str(ROOT / "src")]),
        "KILL_AT": point or "",
        "KILL_NTH": str(nth),
        "KILL_FOLDER": str(kills),
    }


def lived(
    folder: Path, *given: str, point: str | None = None, nth: int = 1, module: str = DRIVER
) -> bool:
    """Let a driver live; return whether it came to its end."""
    kills = folder / f"kills-{len(list(folder.glob('kills-*')))}"
    kills.mkdir(parents=True)
    code = ended(kills, environment_of(kills, point, nth), str(folder), *given, module=module)
    if code == -signal.SIGKILL and (kills / "killed").exists():
        return False
    assert code == 0, (kills / TOLD).read_text()[-4000:]
    assert bool(failures(folder)) == (point == "a task fails")
    return True


def ended(
    kills: Path,
    environment: Mapping[str, str],
    *given: str,
    module: str = DRIVER,
    patience: float = 600,
) -> int:
    """Run a driver, and tell how it ended; what it said is in the folder of its life."""
    with (kills / SAID).open("wb") as said, (kills / TOLD).open("wb") as told:
        driver = subprocess.Popen(
            [sys.executable, "-m", module, *given],
            cwd=ROOT,
            env=environment,
            stdout=said,
            stderr=told,
            start_new_session=True,
        )
    try:
        return driver.wait(patience)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def said_by(folder: Path) -> str:
    """What the last life has printed."""
    return (_last(folder) / SAID).read_text()


def failures(folder: Path) -> set[str]:
    """The steps at which tasks have failed in the last life."""
    return {path.name.removeprefix("failed ") for path in _last(folder).glob("failed *")}


def _last(folder: Path) -> Path:
    return folder / f"kills-{len(list(folder.glob('kills-*'))) - 1}"
