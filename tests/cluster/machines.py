"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

A worker, its executors and their Python processes together stand for a machine: they have a folder
and an environment of their own, and are killed together. What a node needs of us is an interpreter
that has the package; nothing else of this process reaches them.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
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


class Machine:
    """A process of Spark's with whatever it has started."""

    def __init__(self, what: str, arguments: list[str], place: Path) -> None:
        home = Path(pyspark.__file__).parent
        place.mkdir(parents=True)
        given = {
            name: os.environ[name] for name in ("HOME", "JAVA_HOME", "PATH") if name in os.environ
        }
        with (place / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *arguments],
                env={
                    **given,
                    "SPARK_HOME": str(home),
                    "SPARK_DAEMON_JAVA_OPTS": BRIEF,
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_LOCAL_DIRS": str(place),
                },
                cwd=place,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

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

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.workers: list[Machine] = []
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        self.address = f"spark://{HOST}:{port}"
        where = ["--host", HOST, "--port", str(port), "--webui-port", "0"]
        self._start("master.Master", where, "master")

    def add_worker(self) -> None:
        """One machine more, of one core."""
        name = f"worker-{len(self.workers)}"
        given = ["--host", HOST, "--webui-port", "0", "--work-dir", str(self._folder / name)]
        given += ["--cores", "1", "--memory", "512m", self.address]
        self.workers.append(self._start("worker.Worker", given, name))

    def kill_worker_of(self, process: int) -> None:
        """Kill the machine on which a process runs."""
        [machine] = [worker for worker in self.workers if process in worker.processes()]
        machine.kill()

    def _start(self, what: str, arguments: list[str], name: str) -> Machine:
        machine = Machine(what, arguments, self._folder / name)
        self._stack.callback(machine.kill)
        return machine


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster that runs until the end of the block."""
    with ExitStack() as stack:
        cluster = Cluster(folder, stack)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
