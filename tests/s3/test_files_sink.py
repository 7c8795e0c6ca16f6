"""The files sink on object storage: the same rows, once, and no secret in what it says."""

from __future__ import annotations

import pytest
from tests.s3.conftest import Bucket
from tests.spark.sinks.batches import NO_STORE, batch_of, numbered, run, written

from tidegate.errors import TidegateError
from tidegate.spark.sinks import FilesSink, files_of, read_files
from tidegate.store.files import DataFiles

pytestmark = pytest.mark.s3


def test_a_batch_is_in_the_bucket_once_and_what_failed_goes(bucket: Bucket) -> None:
    address = bucket.address("/results")
    sink = FilesSink(address)
    written(sink, batch_of(1), [numbered(0, 3)])  # then the process dies
    assert run(sink, batch_of(1), [numbered(0, 5), numbered(5, 7)]) == 7
    assert run(FilesSink(address), batch_of(1), [numbered(0, 5), numbered(5, 7)]) == 7
    assert run(sink, batch_of(2), [numbered(7, 8)]) == 1
    written(sink, batch_of(1), [numbered(0, 1)])
    assert sink.clean() == 1
    assert read_files(address)["n"].to_pylist() == list(range(8))
    there = {path for path in DataFiles(address).list() if path.startswith("_batch=")}
    assert len(there) == len(files_of(address)) == 3


def test_another_history_is_refused_without_telling_the_secret(bucket: Bucket) -> None:
    sink = FilesSink(bucket.address("/histories"))
    run(sink, batch_of(1), [numbered(0, 5)])
    with pytest.raises(TidegateError) as refusal:
        sink.settled(batch_of(1, lineage="second-history"))
    assert refusal.value.code == "sink-fenced"
    assert bucket.secret not in str(refusal.value)
    with pytest.raises(TidegateError) as refusal:
        sink.prepare(NO_STORE, "other", batch_of(1).columns, None)
    assert bucket.key not in str(refusal.value)


def test_a_prefix_without_results_says_so(bucket: Bucket) -> None:
    with pytest.raises(TidegateError) as refusal:
        read_files(bucket.address("/nothing"))
    assert refusal.value.code == "no-result-files"
