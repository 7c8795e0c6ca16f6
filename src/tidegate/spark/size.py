"""How large a session is: what its settings and its executors tell of cores and memory.

Executors of a cluster come one by one after the session was made, so whoever asks at once is told
of none. What the settings promise counts then; on Spark Connect they are all there is to ask.

>>> configured({"spark.master": "yarn", "spark.executor.instances": "4"}.get)
4
>>> configured({"spark.master": "spark://host:7077", "spark.cores.max": "12"}.get)
12
>>> configured({"spark.master": "local[3, 2]"}.get)
3
>>> bytes_of("512m"), bytes_of("2gb"), bytes_of("1024")
(536870912, 2147483648, 1073741824)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

Ask = Callable[[str], str | None]

_UNITS: Final = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40}
"""Powers of two; Spark reads a memory without a unit as mebibytes."""


def parallelism(spark: SparkSession) -> int | None:
    """How many tasks can run at once, where the session can tell."""
    told = configured(lambda name: spark.conf.get(name, None))
    try:
        found = int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # on Connect there is no context to ask
        return told
    return max(found, told or 0)


def memory(spark: SparkSession) -> int:
    """The bytes of memory of one executor; on one machine the driver is the executor."""
    local = re.fullmatch(r"local(\[.*)?", str(spark.conf.get("spark.master", "")))
    part = "driver" if local else "executor"
    return bytes_of(str(spark.conf.get(f"spark.{part}.memory", "1g")))


def configured(ask: Ask) -> int | None:
    """The cores that the settings speak of."""
    threads = re.match(r"local\[(\d+)", ask("spark.master") or "")
    for told in (ask("spark.default.parallelism"), threads and threads[1], ask("spark.cores.max")):
        if told and told.isdigit():
            return int(told)
    executors = ask("spark.executor.instances") or ""
    return int(executors) * int(ask("spark.executor.cores") or 1) if executors.isdigit() else None


def bytes_of(text: str) -> int:
    """A memory as Spark's settings write it."""
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    return int(found[1]) << _UNITS[found[2]] if found else 1 << 30
