"""A home for a local Spark in which Python workers start faster.

Spark puts its Python library on the path of every worker as an archive, in front of the very same
library that is installed. What is imported from an archive is compiled anew in each process: a
source that plans took 2.2 s to start and to find nothing, and 1.4 s when it was spared that. So a
session of ours on this machine gets a home with everything of the installed Spark but the archive,
by links. Where that cannot be (another home was chosen, no links on this system), nothing is done.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

_PARTS = ("bin", "sbin", "jars", "data", "licenses", "conf")


@contextmanager
def light_home(local: bool) -> Iterator[None]:
    """While a session is made: the JVM that is started meanwhile has the lighter home."""
    home = _made() if local and "SPARK_HOME" not in os.environ else None
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _made() -> Path | None:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    installed = Path(spec.origin).parent
    if not (installed / "jars").is_dir():
        return None
    try:
        home = Path(tempfile.mkdtemp(prefix="tidegate-spark-"))
        atexit.register(rmtree, home, ignore_errors=True)
        for part in _PARTS:
            if (installed / part).exists():
                (home / part).symlink_to(installed / part)
    except OSError:
        return None
    return home
