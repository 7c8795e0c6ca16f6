"""The machine: what Spark and Tidegate need of it before anything runs.

Java, the room in memory and on disk, and the name of the host. Each is looked for where Spark looks
for it, and a failure to look is a finding, never a traceback.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from tidegate.cli.doctor.checks import Check, State
from tidegate.cli.java import OLDEST, version_in

MODULE: Final = "jdk.incubator.vector"
"""Spark starts its JVM with this module: without it there is no JVM."""
PATIENCE: Final = 60.0
"""Seconds for a process that is asked for its version."""

MIB: Final = 1 << 20
GIB: Final = 1 << 30
LITTLE_MEMORY: Final = 2 * GIB
NO_MEMORY: Final = 512 * MIB
LITTLE_DISK: Final = 5 * GIB
NO_DISK: Final = 512 * MIB

_INSTALL: Final = (
    f"as root: apt-get install openjdk-{OLDEST}-jre-headless, or set JAVA_HOME to one that is there"
)


def check_machine() -> list[Check]:
    """All checks of the machine, in order."""
    return [check_java(), check_memory(), *check_disk(), check_host()]


# ---- Java ----


def check_java() -> Check:
    """Where Java is, how old, and whether it has the module that Spark asks for."""
    home = os.environ.get("JAVA_HOME")
    asked = os.path.join(home, "bin", "java") if home else "java"
    where = f"in JAVA_HOME, {home}" if home else "on the path"
    java = shutil.which(asked)
    if java is None:
        return Check("Java", State.FAILED, f"none {where}", _INSTALL)
    told = _said([java, "-version"])
    version = version_in(told)
    if version is None:
        return Check("Java", State.FAILED, f"{java} tells no version: {_short(told)}", _INSTALL)
    found = f"version {version}, {java}, found {where}"
    if version < OLDEST:
        return Check("Java", State.FAILED, f"{found}; Spark needs {OLDEST} or newer", _INSTALL)
    if MODULE not in _said([java, "--list-modules"]):
        return Check(
            "Java",
            State.FAILED,
            f"{found}; it lacks the module {MODULE}, with which Spark starts its JVM",
            f"install a whole runtime: {_INSTALL}",
        )
    return Check("Java", State.OK, found)


def _said(command: list[str]) -> str:
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return str(failure)
    return told.stderr + told.stdout


def _short(text: str) -> str:
    return text.strip().partition("\n")[0] or "it says nothing"


# ---- room ----


def check_memory() -> Check:
    """How much memory a new process can have, in this container if it is one."""
    free = free_memory()
    if free is None:
        return Check("memory", State.WARNING, "this system does not tell how much is free")
    found = f"{size(free)} free"
    if free < NO_MEMORY:
        advice = "a JVM and a Python worker do not fit: end other processes, or raise the limit"
        return Check("memory", State.FAILED, found, advice)
    if free < LITTLE_MEMORY:
        advice = "small for Spark: set spark.driver.memory to less than this, or end others"
        return Check("memory", State.WARNING, found, advice)
    return Check("memory", State.OK, found)


def free_memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that are free: of the machine, or of the container where that is less."""
    free = _available(proc)
    limit, used = (_number(groups / name) for name in ("memory.max", "memory.current"))
    if limit is not None and used is not None:
        # Of what a container uses, pages of files are given back when somebody needs them.
        left = max(limit - used + _inactive_file(groups), 0)
        return left if free is None else min(free, left)
    return free


def _available(proc: Path) -> int | None:
    try:
        lines = (proc / "meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None


def _inactive_file(groups: Path) -> int:
    try:
        lines = (groups / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" is no limit


def check_disk() -> list[Check]:
    """The folders in which Spark puts what does not fit into memory."""
    named = os.environ.get("SPARK_LOCAL_DIRS")
    folders = named.split(",") if named else [tempfile.gettempdir()]
    return [_disk(folder.strip()) for folder in folders if folder.strip()]


def _disk(folder: str) -> Check:
    advice = "set SPARK_LOCAL_DIRS to a folder with room, or make room here"
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as failure:
        reason = failure.strerror or str(failure)
        return Check("disk", State.FAILED, f"{folder} cannot be written: {reason}", advice)
    found = f"{size(free)} free in {folder}"
    if free < NO_DISK:
        return Check("disk", State.FAILED, found, advice)
    if free < LITTLE_DISK:
        return Check("disk", State.WARNING, found, advice)
    return Check("disk", State.OK, found)


def size(count: int) -> str:
    """A number of bytes for people.

    >>> size(3 << 30), size(200 << 20)
    ('3.0 GiB', '200 MiB')
    """
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count // MIB} MiB"


# ---- the host ----


def check_host() -> Check:
    """Whether the name of this host leads to an address that others can use."""
    told = os.environ.get("SPARK_LOCAL_IP")
    if told:
        return Check("host name", State.OK, f"SPARK_LOCAL_IP says {told}")
    name = socket.gethostname()
    try:
        found = sorted({str(info[4][0]) for info in socket.getaddrinfo(name, None)})
    except OSError as failure:
        return Check(
            "host name",
            State.FAILED,
            f'"{name}" has no address: {failure.strerror or failure}',
            f'add a line "127.0.0.1 {name}" to /etc/hosts, or set SPARK_LOCAL_IP',
        )
    shown = f'"{name}" is {", ".join(found)}'
    if all(ip_address(address.partition("%")[0]).is_loopback for address in found):
        return Check(
            "host name",
            State.WARNING,
            f"{shown}: a loopback address, which Spark warns of",
            "on one machine this does no harm; in a cluster set SPARK_LOCAL_IP",
        )
    return Check("host name", State.OK, shown)
