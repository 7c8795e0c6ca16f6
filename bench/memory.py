"""The largest process that this one has started, directly or not: the JVM, its Python workers."""

from __future__ import annotations

import os
from pathlib import Path


def largest_descendant() -> float:
    """The highest resident memory of a living descendant so far, in MiB; Linux only."""
    parents: dict[int, int] = {}
    peaks: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue  # it has just ended
        pid = int(lines["Pid"])
        parents[pid] = int(lines["PPid"])
        peaks[pid] = int(lines.get("VmHWM", "0 kB").split()[0])
    return max((peaks[pid] for pid in parents if _descends(pid, parents)), default=0) / 1024


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == os.getpid():
            return True
    return False
