"""A small Spark cluster on this machine, of two hosts: what it takes for Spark to speculate.

A local session never runs a task a second time beside the first, and a second attempt is never put
on the host of the first. So there are a master and two workers, which call themselves by different
addresses of the loopback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.machines import Cluster

HOSTS = ("127.0.0.1", "127.0.0.2")
SPECULATING = {
    "spark.driver.host": HOSTS[0],
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    # Otherwise it is the cores of those machines that have come up by then.
    "spark.default.parallelism": "2",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.01",
    # Without it a stage of one task has no others to be slower than.
    "spark.speculation.task.duration.threshold": "200ms",
}
"""Settings of a session on it that speculates as soon as it may."""


@contextmanager
def cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The address of a cluster whose processes have this environment."""
    with ExitStack() as stack:
        made = Cluster(folder, stack, environment)
        for host in HOSTS:
            made.add_worker(host, cores=2, memory="1g")
        made.wait_for_workers()
        yield made.address
