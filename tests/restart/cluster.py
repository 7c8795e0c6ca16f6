"""A small Spark cluster on this machine, of two hosts: what it takes for Spark to speculate.

A local session never runs a task a second time beside the first, and a second attempt is never put
on the host of the first. So there are a master and two workers, which call themselves by different
addresses of the loopback.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOSTS = ("127.0.0.1", "127.0.0.2")
SPECULATING = {
    "spark.driver.host": HOSTS[0],
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
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
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        port = free.getsockname()[1]
    address = f"spark://{HOSTS[0]}:{port}"
    with ExitStack() as stack:
        where = ["--host", HOSTS[0], "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_running("master.Master", where, folder / "master", environment))
        for host in HOSTS:
            place = folder / host
            given = ["--host", host, "--webui-port", "0", "--work-dir", str(place)]
            given += ["--cores", "2", "--memory", "1g", address]
            stack.enter_context(_running("worker.Worker", given, place, environment))
        yield address


@contextmanager
def _running(
    what: str, arguments: list[str], place: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """A process of Spark's, and whatever it starts, until the end."""
    place.mkdir(parents=True)
    home = Path(pyspark.__file__).parent
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *arguments],
            env={
                **environment,
                "SPARK_HOME": str(home),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_LOCAL_DIRS": str(place),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
