"""Data addresses: what is wrong with one is said without the secrets that stand in it."""

from __future__ import annotations

import traceback

import pytest

from tidegate.errors import TidegateError
from tidegate.store.files import DataFiles, shown


@pytest.mark.parametrize(
    "address",
    ["s3://key:s3c/ret@bucket/shop", "s3://key:s3c ret@bucket/shop", "s3://key:s3c@ret?@bucket"],
)
def test_an_address_that_cannot_be_parsed_is_shown_without_its_secrets(address: str) -> None:
    with pytest.raises(TidegateError) as refused:
        DataFiles(address)
    assert refused.value.code == "data-unavailable"
    told = "".join(traceback.format_exception(refused.value)) + repr(refused.value.fields)
    assert "s3://***@bucket" in told
    assert "s3c" not in told


@pytest.mark.parametrize("address", ["s3://bucket/shop@eu", "/data/a:b@c", "hdfs://me@host/shop"])
def test_an_address_without_secrets_is_shown_as_it_is(address: str) -> None:
    assert shown(address) == address
