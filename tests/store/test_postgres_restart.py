"""A PostgreSQL server that restarts is ridden out; one that stays away is a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy.engine import make_url
from tests.conftest import ensure_running, start_postgres
from tests.store.rows import create, table
from tests.store.visible import all_of

from tidegate.errors import TidegateError
from tidegate.store import Store

BATCH = 5


class Server:
    """A server of its own, which may be stopped and started."""

    def __init__(self) -> None:
        self._server: Any = start_postgres()
        self.url = make_url(self._server.get_uri()).set(drivername="postgresql+psycopg")

    def stop(self, mode: str) -> None:
        """Let it go: `fast` ends all connections, `immediate` is a crash."""
        from pgserver._commands import pg_ctl  # type: ignore[attr-defined]

        given = ["-w", "-m", mode, "stop"]
        pg_ctl(given, pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        """Have it back at the same address."""
        ensure_running(self._server)

    def close(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def test_a_writer_rides_out_restarts_and_says_so_when_the_server_stays_away(
    server: Server, tmp_path: Path
) -> None:
    address = server.url.render_as_string(hide_password=False)
    with Store.open(address, data=tmp_path) as store:
        create(store, "s", segments=2)
        durable = _restarts_beside_a_writer(server, store)
    assert durable > 0
    with Store.open(address, data=tmp_path, patience=timedelta(seconds=2)) as store:
        assert sorted(all_of(store, "s", "n")) == [*range(durable)]
        with store.writer("s", "w", notes_time=True, flush_age=None) as writer:
            assert writer.durable == durable
            server.stop("fast")
            writer.append(table(range(durable, durable + BATCH)))
            with pytest.raises(TidegateError) as caught:
                writer.flush()
            assert caught.value.code == "catalog-unavailable"
            assert caught.value.retryable
            assert str(caught.value).startswith("catalog does not answer\nDetail: postgresql")
            server.start()
            assert writer.flush() == durable + BATCH
            writer.append(table(range(durable + BATCH, durable + 2 * BATCH)))
        assert sorted(all_of(store, "s", "n")) == [*range(durable + 2 * BATCH)]


def _restarts_beside_a_writer(server: Server, store: Store) -> int:
    """Append, flush and note all the time while the server goes and comes; how much is durable."""
    stop, failures, counts = Event(), list[BaseException](), list[int]([0])
    moved = Event()

    def work() -> None:
        try:
            with store.writer("s", "w", notes_time=True, flush_age=None) as writer:
                while not stop.is_set():
                    first = writer.appended
                    writer.append(table(range(first, first + BATCH)))
                    counts.append(writer.flush())
                    writer.note_time(first)
                    moved.set()
        except BaseException as failure:
            failures.append(failure)
            moved.set()

    thread = Thread(target=work)
    thread.start()
    try:
        for mode in ("fast", "immediate"):
            _wait(moved)
            server.stop(mode)
            server.start()
            _wait(moved)
    finally:
        stop.set()
        thread.join(60)
    assert not failures
    return counts[-1]


def _wait(moved: Event) -> None:
    """Until the writer has got a round further from here on."""
    moved.clear()
    assert moved.wait(30)
