"""A real S3 server for the run, and a fresh prefix of its bucket for every test.

The server is built by scripts/s3-server. Where it is not there the tests are skipped with the
reason shown, and in CI that is a failure.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyarrow import fs

from tidegate.store import Store
from tidegate.testing import ManualClock

START = 1_800_000_000_000_000
SERVER = Path(__file__).resolve().parents[2] / "build" / "s3" / "bin" / "versitygw"
PATIENCE = 20.0
"""Seconds that the server may take to answer."""


@dataclass(frozen=True)
class Bucket:
    """Where a bucket is, and who may use it."""

    port: int
    name: str = "tidegate"
    key: str = "AKIATIDEGATE"
    secret: str = "not/a+real=secret"
    """With the characters that must be quoted in an address."""

    def address(self, prefix: str = "", **changed: str) -> str:
        """The address of a prefix, or one that differs a little."""
        told = {"key": self.key, "secret": quote(self.secret, safe=""), "name": self.name} | changed
        where = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://{told['key']}:{told['secret']}@{told['name']}{prefix}?{where}"

    def system(self) -> fs.S3FileSystem:
        """The same by pyarrow's own means."""
        return fs.S3FileSystem(
            access_key=self.key,
            secret_key=self.secret,
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """An empty bucket on a server that runs as long as the tests do."""
    if not SERVER.exists():
        reason = f"no S3 server: {SERVER} is not there, scripts/s3-server builds it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found = Bucket(free.getsockname()[1])
    folder = tmp_path_factory.mktemp("s3")
    for name in ("objects", "attributes"):
        (folder / name).mkdir()
    command: list[str | Path] = [SERVER, "--port", f"127.0.0.1:{found.port}", "posix"]
    # Attributes beside the objects: not every file system of a test machine can keep them.
    command += ["--sidecar", folder / "attributes", folder / "objects"]
    keys = {"ROOT_ACCESS_KEY": found.key, "ROOT_SECRET_KEY": found.secret}
    log = folder / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=os.environ | keys, stdout=out, stderr=out)
    try:
        _wait_for(server, found.port, log)
        found.system().create_dir(found.name)
        yield found
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"the S3 server does not answer:\n{log.read_text(errors='replace')}")


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock(START)


@pytest.fixture
def addresses(bucket: Bucket, tmp_path: Path) -> tuple[str, str]:
    """A catalog and a prefix that nobody has used yet."""
    return f"sqlite:///{tmp_path / 'catalog.db'}", bucket.address(f"/shops/{tmp_path.name}")


@pytest.fixture
def open_store(addresses: tuple[str, str], clock: ManualClock) -> Iterator[Callable[..., Store]]:
    """Open the same store again and again, as other processes would."""
    opened: list[Store] = []

    def again(**settings: Any) -> Store:
        catalog, data = addresses
        opened.append(Store.open(catalog, data=data, clock=clock.now, **settings))
        return opened[-1]

    yield again
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    """An empty store."""
    return open_store()
