"""The packages: what the project asks for beside what is installed, here and in a Python worker.

What is asked for is read from the metadata of the installed project, so it stands in one place. A
worker is started as Spark would start it, and asked the same.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any, Final, NamedTuple

from tidegate.cli.doctor.checks import Check, State
from tidegate.cli.doctor.machine import PATIENCE

PROJECT: Final = "tidegate"
CONNECT: Final = "connect"
IN_A_WORKER: Final = ("pyarrow", "pandas", "tidegate")

_REQUIREMENT: Final = re.compile(
    r"""([\w.-]+) \s* (?:\[[^]]*\])? \s* \(? ([^;()]*) \)? \s*
        (?: ; .* extra \s* == \s* ['"] ([\w-]+) ['"] )? """,
    re.VERBOSE,
)
_BOUND: Final = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*([\w.*]+)")
_PROBE: Final = """
import importlib, json, sys
missing = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as failure:
        missing[name] = f"{type(failure).__name__}: {failure}"
print(json.dumps({"version": list(sys.version_info[:3]), "missing": missing}))
"""


class Requirement(NamedTuple):
    """A package, the versions that will do, and the extra that asks for it."""

    package: str
    bounds: str
    extra: str | None

    @staticmethod
    def of(text: str) -> Requirement:
        """From a line of metadata.

        >>> Requirement.of("grpcio>=1.76; extra == 'connect'")
        Requirement(package='grpcio', bounds='>=1.76', extra='connect')
        """
        found = _REQUIREMENT.match(text)
        assert found is not None, text
        return Requirement(found[1], found[2].strip(), found[3])

    def allows(self, version: str) -> bool:
        """Whether a version will do.

        >>> pandas = Requirement.of("pandas<3,>=2.2")
        >>> pandas.allows("2.2"), pandas.allows("2.10.1"), pandas.allows("3.0.0")
        (True, True, False)
        """
        return all(_holds(version, sign, bound) for sign, bound in _BOUND.findall(self.bounds))


def _holds(version: str, sign: str, bound: str) -> bool:
    exact = bound.removesuffix(".*")
    length = max(len(_numbers(version)), len(_numbers(exact)))
    ours, theirs = (_padded(_numbers(text), length) for text in (version, exact))
    if sign in ("==", "!="):
        places = len(_numbers(exact)) if bound.endswith(".*") else length
        return (ours[:places] == theirs[:places]) is (sign == "==")
    if sign == "~=":
        places = len(_numbers(exact)) - 1
        return ours >= theirs and ours[:places] == theirs[:places]
    return {">=": ours >= theirs, "<=": ours <= theirs, ">": ours > theirs, "<": ours < theirs}[
        sign
    ]


def _numbers(version: str) -> list[int]:
    """The release as numbers; what follows them (`rc1`, `+local`) does not count here."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return [int(part) for part in found[0].split(".")] if found else []


def _padded(parts: list[int], length: int) -> list[int]:
    return parts + [0] * (length - len(parts))


# ---- here ----


def requirements() -> list[Requirement]:
    """What the installed project asks for."""
    return [Requirement.of(line) for line in metadata.requires(PROJECT) or ()]


def check_packages() -> list[Check]:
    """A check per package that is needed, and one for those of Spark Connect together."""
    asked = requirements()
    checks = [_package(needed) for needed in asked if needed.extra is None]
    return [*checks, _connect([needed for needed in asked if needed.extra == CONNECT])]


def _package(needed: Requirement) -> Check:
    installed = _installed(needed.package)
    install = f"pip install '{needed.package}{needed.bounds}'"
    if installed is None:
        return Check(needed.package, State.FAILED, f"missing, {needed.bounds} is needed", install)
    if not needed.allows(installed):
        found = f"{installed}, {needed.bounds} is needed"
        return Check(needed.package, State.FAILED, found, install)
    return Check(needed.package, State.OK, installed)


def _connect(needed: list[Requirement]) -> Check:
    name = "Spark Connect"
    found = {one: _installed(one.package) for one in needed}
    missing = [one.package for one, version in found.items() if version is None]
    install = f"pip install '{PROJECT}[{CONNECT}]'"
    wrong = [
        f"{one.package} is {version}, {one.bounds} is needed"
        for one, version in found.items()
        if version is not None and not one.allows(version)
    ]
    if wrong and not missing:
        return Check(name, State.FAILED, "; ".join(wrong), install)
    if missing:
        told = f"not installed: {', '.join(missing)}; needed for remote sessions only ({install})"
        return Check(name, State.UNUSED, told)
    told = ", ".join(f"{one.package} {version}" for one, version in found.items())
    return Check(name, State.OK, told)


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# ---- in a worker ----


def check_worker() -> list[Check]:
    """The Python that Spark starts for tasks; and the one that a session of the user's own would.

    A session of `tidegate.spark.session` takes PYSPARK_PYTHON, or else this very interpreter; any
    other takes PYSPARK_PYTHON, or else `python3` from the path.
    """
    named = os.environ.get("PYSPARK_PYTHON")
    where = "PYSPARK_PYTHON" if named else "this interpreter"
    checks = [_worker("Python worker", named or sys.executable, where)]
    if not named:
        checks += _other_sessions()
    return checks


def _worker(name: str, python: str, where: str) -> Check:
    found = shutil.which(python)
    repair = f"set PYSPARK_PYTHON={sys.executable}"
    if found is None:
        return Check(name, State.FAILED, f"{python}, from {where}, is not there", repair)
    shown = f"{found}, from {where}"
    told = ask_worker(found)
    if isinstance(told, str):
        return Check(name, State.FAILED, f"{shown}, does not answer: {told}", repair)
    version = ".".join(str(part) for part in told["version"])
    if tuple(told["version"][:2]) != sys.version_info[:2]:
        ours = ".".join(str(part) for part in sys.version_info[:2])
        return Check(name, State.FAILED, f"{version} ({shown}); the driver is {ours}", repair)
    if told["missing"]:
        reasons = "; ".join(f"{package}: {why}" for package, why in told["missing"].items())
        install = f"{found} -m pip install {PROJECT}, or {repair}"
        return Check(name, State.FAILED, f"{version} ({shown}) cannot import {reasons}", install)
    return Check(name, State.OK, f"{version} ({shown}) imports {', '.join(IN_A_WORKER)}")


def ask_worker(python: str) -> dict[str, Any] | str:
    """The version of an interpreter and what it cannot import; or why it does not answer."""
    try:
        done = subprocess.run(
            [python, "-c", _PROBE, *IN_A_WORKER],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
            cwd=os.sep,  # a folder of the user's may hold files named like packages
        )
        told: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        return told
    except (OSError, subprocess.TimeoutExpired) as failure:
        return str(failure)
    except ValueError:
        return next(_last_lines(done.stderr), f"it ended with {done.returncode}")


def _last_lines(text: str) -> Iterator[str]:
    return (line for line in reversed(text.strip().splitlines()) if line)


def _other_sessions() -> list[Check]:
    """Only where it differs: a warning, as nobody may ever start such a session."""
    python = shutil.which("python3")
    if python is not None and os.path.samefile(python, sys.executable):
        return []
    told = _worker("Python worker, own sessions", "python3", "the path")
    if told.state is State.OK:
        return []
    advice = f"for sessions that tidegate.spark.session does not make: {told.advice}"
    return [Check(told.name, State.WARNING, told.found, advice)]
