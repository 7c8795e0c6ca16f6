"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

A worker, its executors and their Python processes together stand for a machine: they have a folder
and an environment of their own, and are killed together. What a node needs of us is an interpreter
that has the package; nothing else of this process reaches them.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for a minute: what it would gain by compiling well it has no time to use."""
SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.executor.extraJavaOptions": BRIEF,
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
}
"""What a session on it needs: executors that fit the workers."""
PATIENCE = 120.0
"""Seconds for a process of Spark's to come up."""


class Machine:
    """A process of Spark's with whatever it has started."""

    def __init__(
        self, what: str, arguments: list[str], place: Path, environment: Mapping[str, str]
    ) -> None:
        home = Path(pyspark.__file__).parent
        place.mkdir(parents=True)
        self._log = place / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *arguments],
                env={
                    **environment,
                    "SPARK_HOME": str(home),
                    "SPARK_DAEMON_JAVA_OPTS": BRIEF,
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_LOCAL_DIRS": str(place),
                },
                cwd=place,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def said(self, pattern: str) -> str:
        """Wait until it says this, which is how it tells that it is up; give the group of it."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self._log.read_text(errors="replace"))) is None:
            told = self._log.read_text(errors="replace")[-4000:]
            assert self._process.poll() is None, f"it has ended: {told}"
            assert time.monotonic() < until, f"it did not come up: {told}"
            time.sleep(0.1)
        return found[1]

    def processes(self) -> list[int]:
        """All that live, parents before their children."""
        children: dict[int, list[int]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                # The name stands in brackets, and may hold anything; state and parent follow it.
                told = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            children.setdefault(int(told[1]), []).append(int(stat.parent.name))
        found = [self._process.pid] if self._process.poll() is None else []
        for process in found:
            found += children.get(process, [])
        return found

    def kill(self) -> None:
        """Have it end as a machine does whose power fails."""
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()


class Cluster:
    """A master and its workers."""

    def __init__(self, folder: Path, stack: ExitStack, environment: Mapping[str, str]) -> None:
        self._folder, self._stack, self._environment = folder, stack, environment
        self.workers: list[Machine] = []
        where = ["--host", HOST, "--port", str(free_port()), "--webui-port", "0"]
        master = self._start("master.Master", where, "master")
        # A port that somebody has taken meanwhile is not the one it has: it takes the next.
        self.address = master.said(r"Starting Spark master at (spark://[\w.:]+)")

    def add_worker(self, host: str = HOST, cores: int = 1, memory: str = "512m") -> None:
        """One machine more."""
        name = f"worker-{len(self.workers)}"
        given = ["--host", host, "--webui-port", "0", "--work-dir", str(self._folder / name)]
        given += ["--cores", str(cores), "--memory", memory, self.address]
        self.workers.append(self._start("worker.Worker", given, name))

    def wait_for_workers(self) -> None:
        """Until the master knows all of them."""
        for worker in self.workers:
            worker.said(r"(Successfully registered with master)")

    def kill_worker_of(self, process: int) -> None:
        """Kill the machine on which a process runs."""
        [machine] = [worker for worker in self.workers if process in worker.processes()]
        machine.kill()

    def _start(self, what: str, arguments: list[str], name: str) -> Machine:
        machine = Machine(what, arguments, self._folder / name, self._environment)
        self._stack.callback(machine.kill)
        return machine


@contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """A cluster of two small machines that runs until the end of the block."""
    given = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "PATH") if name in os.environ}
    with ExitStack() as stack:
        cluster = Cluster(folder, stack, given)
        for _ in range(2):
            cluster.add_worker()
        cluster.wait_for_workers()
        yield cluster


def free_port() -> int:
    """A port that nobody listens at.

    It lies below those that the system gives to whoever asks for any: one of these may be given
    away between this look and the start of the process that is to have it.
    """
    given_away = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10_000, max(given_away, 20_000))
        with socket.socket() as free:
            try:
                free.bind((HOST, port))
            except OSError:
                continue
        return port
