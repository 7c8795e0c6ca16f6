"""One store per process and address."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.store.rows import create, write

from tidegate.errors import TidegateError
from tidegate.logs.store_log import StoreLog
from tidegate.store import Store
from tidegate.store.shared import shared_store


def test_an_address_is_opened_once_however_many_ask_at_once(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "other"):
        Store.open(folder).close()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: shared_store(tmp_path), range(32)))
    assert len(set(map(id, found))) == 1
    assert shared_store(tmp_path / ".." / tmp_path.name) is found[0]
    assert shared_store(tmp_path / "other") is not found[0]


def test_a_log_that_arrives_uses_the_store_of_its_process_and_leaves_it_open(
    store: Store,
) -> None:
    create(store, "orders")
    write(store, "orders", range(5))
    first, second = (pickle.loads(pickle.dumps(StoreLog(store, "orders"))) for _ in range(2))
    assert first.store is second.store is not store
    before = second.store.database.engine.pool
    first.close()
    assert second.store.database.engine.pool is before
    assert sum(batch.num_rows for batch in second.read("0.e0", 0, 5)) == 5


def test_a_forked_process_opens_a_store_of_its_own(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    here = shared_store(tmp_path)
    create(here, "orders")
    child = os.fork()
    if child == 0:  # pragma: no cover
        ours = shared_store(tmp_path)
        write(ours, "orders", range(5))
        os._exit(0 if ours is not here else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert here.segments("orders")[0].end == 5
    assert shared_store(tmp_path) is here


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for address in (str(tmp_path / "shop"), f"sqlite:///{tmp_path}/shop/catalog.db"):
        with pytest.raises(TidegateError) as refused:
            shared_store(address, tmp_path / "data")
        assert refused.value.code == "store-missing"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_data_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    Store.open(tmp_path / "shop").close()
    with pytest.raises(TidegateError, match="there is no such folder on") as refused:
        shared_store(tmp_path / "shop", tmp_path / "elsewhere")
    assert refused.value.code == "data-unavailable"
    assert not (tmp_path / "elsewhere").exists()
