"""Java: whether there is one that Spark can run on.

Looked for where Spark looks: in JAVA_HOME when it is set, else on the path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from tidegate import errors

OLDEST: Final = 17


def require_java() -> None:
    """Raise an error that says what to install, unless there is a Java that will do."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    if shutil.which(java) is None:
        raise errors.java_missing(OLDEST, f"{java} is not there" if home else "there is none")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = version_in(told.stderr + told.stdout)
    if version is None or version < OLDEST:
        found = "of no version" if version is None else f"of version {version}"
        raise errors.java_missing(OLDEST, f"{shutil.which(java)} is {found}")


def version_in(text: str) -> int | None:
    """The version in what `java -version` says.

    >>> version_in('openjdk version "17.0.15" 2025-04-15'), version_in('java version "1.8.0_202"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return None if found is None else int(found[1])
