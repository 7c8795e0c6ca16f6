"""One store per process: whoever asks for an address gets the store that is open for it.

Tasks of a job come by the thousand, each with an address; to open a store for every one of them
would cost more than to read the rows. A shared store stays open until the process ends, so nobody
closes it. A process that was forked opens stores of its own: a connection has one owner.

The address came from somewhere else, so a store must be there: one that is missing is an error, and
not an empty new one on the wrong machine. The same holds for a folder with its data.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     Store.open(folder).close()
...     shared_store(folder) is shared_store(folder)
True
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from socket import gethostname
from threading import Lock

from sqlalchemy.engine import make_url

from tidegate import errors
from tidegate.store.store import Store


class _Shared:
    """The open stores of this process. Thread safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[tuple[str, str | None], Store] = {}
        self._inherited: list[Store] = []

    def get(self, address: str, data: str | None) -> Store:
        """The store of an address, opened by the first who asks."""
        with self._lock:
            found = self._open.get((address, data))
            if found is None:
                _require(address, data)
                found = self._open[address, data] = Store.open(address, data=data)
            return found

    def close(self) -> None:
        """Give all connections back."""
        with self._lock:
            for store in self._open.values():
                store.close()
            self._open.clear()

    def forked(self) -> None:
        """Forget what belongs to the parent, without closing it: that would close it for both."""
        self._lock = Lock()
        self._inherited += self._open.values()
        self._open = {}


def _require(address: str, data: str | None) -> None:
    catalog: str | None = str(Path(address) / "catalog.db")
    if "://" in address:
        url = make_url(address)
        catalog = url.database if url.get_backend_name() == "sqlite" else None
    if catalog is not None and not Path(catalog).exists():
        raise errors.store_missing(address)
    if data is not None and "://" not in data and not Path(data).is_dir():
        # Whoever made it here would keep files to himself that the catalog shows to all.
        raise errors.data_unavailable(data, f"there is no such folder on {gethostname()}")


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.forked)
atexit.register(_shared.close)


def shared_store(catalog: str | Path, data: str | Path | None = None) -> Store:
    """The store of this process at an address: a folder, or a catalog URL and a data address.

    It has the wall clock and the installed types of event time. Do not close it.
    """
    address = str(catalog)
    if "://" not in address:
        address = str(Path(address).resolve())
    return _shared.get(address, None if data is None else str(data))
