"""The files of a store on object storage."""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from pyarrow import fs
from tests.s3.conftest import Bucket

from tidegate.errors import TidegateError
from tidegate.store.files import DataFiles

pytestmark = pytest.mark.s3


@pytest.mark.parametrize("prefix", ["", "/", "/one", "/one/two/"])
def test_a_file_is_written_listed_read_and_deleted(bucket: Bucket, prefix: str) -> None:
    files = DataFiles(bucket.address(prefix))
    assert list(files.list("orders")) == []
    assert files.write("orders/0.e0/a", b"rows") == 4
    files.write("orders.errors/0.e0/b", b"other rows")
    assert list(files.list("orders")) == ["orders/0.e0/a"]
    assert {"orders/0.e0/a", "orders.errors/0.e0/b"} <= set(files.list())
    with files.open("orders/0.e0/a") as source:
        assert source.read() == b"rows"
    assert files.exists("orders/0.e0/a")
    assert not files.exists("orders/0.e0")
    for _ in range(2):
        files.delete("orders/0.e0/a")
    files.delete("orders.errors/0.e0/b")
    assert list(files.list()) == []
    with pytest.raises(FileNotFoundError):
        files.open("orders/0.e0/a")


def test_opening_and_writing_make_no_objects_for_folders(bucket: Bucket) -> None:
    system = bucket.system()
    system.create_dir("plain")
    files = DataFiles(bucket.address("/some/where", name="plain"))
    assert system.get_file_info(fs.FileSelector("plain", recursive=True)) == []
    files.write("orders/0.e0/a", b"rows")
    assert list(files.list()) == ["orders/0.e0/a"]


def test_a_file_of_several_parts_comes_back_whole(bucket: Bucket) -> None:
    files = DataFiles(bucket.address("/large"))
    content = np.random.default_rng(7).bytes(25 * 2**20 + 1)
    assert files.write("orders/0.e0/a", content) == len(content)
    with files.open("orders/0.e0/a") as source:
        assert source.read() == content
        assert source.read_at(10, 20 * 2**20) == content[20 * 2**20 :][:10]


def test_small_files_may_be_sent_in_one_request(bucket: Bucket) -> None:
    files = DataFiles(bucket.address("/delayed") + "&allow_delayed_open=true")
    files.write("orders/0.e0/a", b"rows")
    with files.open("orders/0.e0/a") as source:
        assert source.read() == b"rows"


def test_a_bucket_is_made_only_when_the_address_asks_for_it(bucket: Bucket) -> None:
    address = bucket.address("/shop", name="fresh")
    with pytest.raises(TidegateError) as refused:
        DataFiles(address)
    assert refused.value.code == "data-unavailable"
    assert "Bucket 'fresh' not found" in str(refused.value)
    DataFiles(f"{address}&allow_bucket_creation=true").write("a", b"1")
    assert list(DataFiles(address).list()) == ["a"]


def test_no_secret_is_shown_when_an_address_cannot_be_opened(bucket: Bucket) -> None:
    wrong = "wrong-but-s3cret"
    for address in (bucket.address(name="nowhere"), bucket.address(secret=wrong)):
        with pytest.raises(TidegateError) as refused:
            DataFiles(address)
        assert refused.value.code == "data-unavailable"
        told = "".join(traceback.format_exception(refused.value)) + repr(refused.value.fields)
        assert "s3://***@" in told
        for secret in (bucket.key, bucket.secret, "not%2Fa", wrong):
            assert secret not in told
