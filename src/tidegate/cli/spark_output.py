"""What Spark says: into a file, not over the screen.

The JVM inherits the standard output and error of the process that starts it, and talks before any
of its log settings holds. So it is started while both lead into a file, where they stay for it;
this process gets its own back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def spoken_into(file: Path) -> Iterator[None]:
    """Whatever process is started inside writes its output and errors to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    try:
        for number in (1, 2):
            os.dup2(target, number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, own in zip((1, 2), kept, strict=True):
            os.dup2(own, number)
            os.close(own)
        os.close(target)
