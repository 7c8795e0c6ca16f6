"""The files sink: a batch is in the folder once or not at all, whatever failed on the way."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.sinks.batches import (
    FLAT,
    NESTED,
    NO_STORE,
    PLAIN,
    batch_of,
    numbered,
    run,
    run_two,
    run_two_or_die,
    some_rows,
    written,
)

from tidegate.errors import TidegateError
from tidegate.spark.sinks import Batch, FilesSink, files_of, manifests_of, read_files
from tidegate.spark.sinks.manifests import Manifest, ResultFolder

SEED = 20260131

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.spark.sinks.batches"])


def numbers(folder: Path) -> list[int]:
    found: list[int] = read_files(folder)["n"].to_pylist()
    return found


def data_files(folder: Path) -> set[str]:
    return {str(path) for path in folder.glob("_batch=*/*")}


every_format = pytest.mark.parametrize("format", ["parquet", "csv", "json"])


# ---- once, and in order ----


@every_format
def test_rows_come_back_in_the_order_of_batches_tasks_and_rows(tmp_path: Path, format: str) -> None:
    sink = FilesSink(tmp_path, format)
    assert run(sink, batch_of(2), [numbered(0, 20), numbered(20, 25)]) == 25
    assert run(sink, batch_of(10), [numbered(25, 30), PLAIN.empty_table(), numbered(30, 31)]) == 6
    assert numbers(tmp_path) == list(range(31))
    assert read_files(tmp_path).schema == PLAIN
    assert [manifest.batch for manifest in manifests_of(tmp_path)] == [2, 10]


@every_format
def test_a_batch_that_runs_again_writes_nothing_and_counts_the_same(
    tmp_path: Path, format: str
) -> None:
    sink = FilesSink(tmp_path, format)
    parts = [numbered(0, 20), numbered(20, 25)]
    run(sink, batch_of(1), parts)
    before = data_files(tmp_path)
    assert run(FilesSink(tmp_path, format), batch_of(1), parts) == 25
    assert data_files(tmp_path) == before
    assert numbers(tmp_path) == list(range(25))


def test_a_batch_without_rows_leaves_nothing(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    assert run(sink, batch_of(1), []) == 0
    assert run(sink, batch_of(2), [PLAIN.empty_table()]) == 0
    assert read_files(tmp_path) == PLAIN.empty_table()
    assert data_files(tmp_path) == set()
    assert manifests_of(tmp_path) == []


@every_format
def test_all_common_types_come_back_as_they_were(tmp_path: Path, format: str) -> None:
    schema = FLAT if format == "csv" else NESTED
    rows = some_rows(schema)
    run(FilesSink(tmp_path, format), batch_of(1, columns=schema), [rows, rows])
    back = read_files(tmp_path)
    assert back.schema == schema
    assert back.equals(pa.concat_tables([rows, rows]))


@every_format
def test_not_a_number_stays_what_it_is(tmp_path: Path, format: str) -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.float32())])
    rows = pa.table([[float("nan"), None], [None, float("nan")]], schema=schema)
    run(FilesSink(tmp_path, format), batch_of(1, columns=schema), [rows])
    assert str(read_files(tmp_path).to_pylist()) == str(rows.to_pylist())


def test_the_manifest_tells_which_time_a_batch_completes(tmp_path: Path) -> None:
    run(FilesSink(tmp_path), batch_of(1), [numbered(0, 2)])
    run(FilesSink(tmp_path), batch_of(2, a=60), [numbered(2, 3)])
    first, second = manifests_of(tmp_path)
    assert (first.start, first.end, first.frontier, first.rows) == (None, 60, 60, 2)
    assert (second.start, second.end, second.frontier, second.rows) == (60, 120, 120, 1)
    text = (tmp_path / first.path).read_text()
    assert json.loads(text)["files"][0]["rows"] == 2


def test_many_small_batches_of_a_task_become_one_row_group(tmp_path: Path) -> None:
    run(FilesSink(tmp_path), batch_of(1), [numbered(0, 1000)])
    [path] = files_of(tmp_path)
    assert pq.read_metadata(path).num_row_groups == 1


def test_whether_a_batch_is_there_is_asked_without_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(1), [numbered(0, 2)])
    monkeypatch.setattr("tidegate.store.files.DataFiles.list", None)
    assert sink.settled(batch_of(1)) == 2
    assert sink.settled(batch_of(2)) is None


def test_a_batch_behind_the_gate_is_known_by_what_its_sources_answered(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(1, plan='{"source:a": "1", "source:b": "2"}'), [numbered(0, 5)])
    # Another source may be left over, or not yet have spoken.
    for same in ('{"source:b": "2", "source:a": "1"}', '{"source:a": "1", "source:old": "7"}'):
        assert run(sink, batch_of(1, plan=same), [numbered(0, 1)]) == 5
    with pytest.raises(TidegateError) as other:
        run(sink, batch_of(1, plan='{"source:a": "9"}'), [numbered(0, 5)])
    assert other.value.code == "sink-fenced"
    assert numbers(tmp_path) == list(range(5))


# ---- what failed attempts leave ----


def test_files_of_a_failed_attempt_are_no_result_and_go_when_the_batch_settles(
    tmp_path: Path,
) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(1), [numbered(0, 5)])
    written(sink, batch_of(2), [numbered(5, 7)])  # then the process dies
    assert numbers(tmp_path) == list(range(5))
    assert len(data_files(tmp_path)) == 2
    run(sink, batch_of(2), [numbered(5, 8)])
    assert numbers(tmp_path) == list(range(8))
    assert data_files(tmp_path) == set(files_of(tmp_path))


def test_a_task_that_runs_twice_counts_once(tmp_path: Path) -> None:
    sink, batch = FilesSink(tmp_path), batch_of(1)
    sink.prepare(NO_STORE, "job", PLAIN, None)
    assert sink.settled(batch) is None
    written(sink, batch, [numbered(0, 5)])
    sink.settle(batch, written(sink, batch, [numbered(0, 5)]))
    assert numbers(tmp_path) == list(range(5))


def test_clean_takes_the_dead_and_leaves_what_may_be_alive(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(2), [numbered(0, 5)])
    for number in (1, 2, 3):  # tasks that were given up, and finished all the same
        written(sink, batch_of(number), [numbered(100, 101)])
    temporary = tmp_path / "_tidegate" / "batches"
    (temporary / "000000002.json.12ab.tmp").write_bytes(b"{")
    (temporary / "000000003.json.34cd.tmp").write_bytes(b"{")
    assert sink.clean() == 3
    left = data_files(tmp_path) - set(files_of(tmp_path))
    assert [Path(path).parent.name for path in left] == ["_batch=000000003"]
    assert (temporary / "000000003.json.34cd.tmp").exists()
    assert sink.clean() == 0
    assert numbers(tmp_path) == list(range(5))


def _killed(folder: Path, kill_at: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    child = _CONTEXT.Process(target=run_two_or_die, args=(str(folder), kill_at))
    child.start()
    child.join(60)
    assert child.exitcode == (-signal.SIGKILL if kill_at else 0)
    if kill_at and (folder / "_tidegate" / "folder.json").exists():
        assert numbers(folder) in ([], list(range(6)), list(range(9)))
    run_two(str(folder))
    assert numbers(folder) == list(range(9))
    assert data_files(folder) == set(files_of(folder))


def test_a_batch_is_there_once_wherever_its_driver_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    _killed(folder, kill_at=0)
    steps = int((folder / "steps").read_text())
    assert steps >= 10
    for kill_at in random.Random(SEED).sample(range(1, steps + 1), 5):
        _killed(folder, kill_at)


@pytest.mark.faults
def test_a_batch_is_there_once_at_every_step(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    _killed(folder, kill_at=0)
    for kill_at in range(1, int((folder / "steps").read_text()) + 1):
        _killed(folder, kill_at)


def test_clean_leaves_a_batch_that_settles_while_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(1), [numbered(0, 5)])
    listed = ResultFolder.manifests

    def manifests(self: ResultFolder) -> list[Manifest]:
        found = listed(self)
        run(sink, batch_of(2), [numbered(5, 6)])
        return found

    monkeypatch.setattr(ResultFolder, "manifests", manifests)
    assert sink.clean() == 0
    monkeypatch.undo()
    assert numbers(tmp_path) == list(range(6))


# ---- what is refused ----


def refused(sink: FilesSink, batch: Batch, parts: Sequence[pa.Table] = ()) -> TidegateError:
    with pytest.raises(TidegateError) as refusal:
        run(sink, batch, parts)
    return refusal.value


def test_another_history_is_refused_before_it_writes(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(1), [numbered(0, 5)])
    before = data_files(tmp_path)
    error = refused(sink, batch_of(1, lineage="second-history"), [numbered(0, 9)])
    assert error.code == "sink-fenced"
    assert "first-history" in error.detail
    assert data_files(tmp_path) == before
    assert numbers(tmp_path) == list(range(5))


def test_the_same_batch_by_another_plan_is_refused(tmp_path: Path) -> None:
    sink = FilesSink(tmp_path)
    run(sink, batch_of(1), [numbered(0, 5)])
    error = refused(sink, batch_of(1, plan="of another driver"), [numbered(0, 9)])
    assert error.code == "sink-fenced"
    assert "another plan" in error.detail


def test_of_two_drivers_at_once_one_puts_the_manifest(tmp_path: Path) -> None:
    sink, ours, theirs = FilesSink(tmp_path), batch_of(1, plan="ours"), batch_of(1, plan="theirs")
    sink.prepare(NO_STORE, "job", PLAIN, None)
    assert sink.settled(ours) is None
    assert sink.settled(theirs) is None
    files = written(sink, ours, [numbered(0, 5)])
    others = written(sink, theirs, [numbered(0, 9)])
    sink.settle(ours, files)
    with pytest.raises(TidegateError) as refusal:
        sink.settle(theirs, others)
    assert refusal.value.code == "sink-fenced"
    assert numbers(tmp_path) == list(range(5))


def test_a_folder_belongs_to_one_job_and_one_format(tmp_path: Path) -> None:
    run(FilesSink(tmp_path), batch_of(1), [numbered(0, 5)])
    assert refused(FilesSink(tmp_path), batch_of(1, job="other")).code == "files-of-another-job"
    assert refused(FilesSink(tmp_path, "csv"), batch_of(2)).code == "files-differ"


def test_columns_may_be_added_and_must_keep_their_type(tmp_path: Path) -> None:
    wider = PLAIN.append(pa.field("more", pa.float64()))
    run(FilesSink(tmp_path), batch_of(1), [numbered(0, 2)])
    rows = pa.table([[2], ["row 2"], [0.5]], schema=wider)
    run(FilesSink(tmp_path), batch_of(2, columns=wider), [rows])
    assert read_files(tmp_path)["more"].to_pylist() == [None, None, 0.5]
    assert read_files(tmp_path).schema == wider
    changed = pa.schema([("n", pa.string())])
    assert refused(FilesSink(tmp_path), batch_of(3, columns=changed)).code == "files-differ"


def test_a_column_that_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    error = refused(FilesSink(tmp_path, "csv"), batch_of(1, columns=NESTED))
    assert error.code == "type-not-for-format"
    assert '"bytes"' in error.detail


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as refusal:
        FilesSink(tmp_path, "orc")
    assert "csv, json, parquet" in refusal.value.detail


def test_a_folder_without_results_says_so(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as refusal:
        read_files(tmp_path / "nothing")
    assert refusal.value.code == "no-result-files"
    assert not (tmp_path / "nothing").exists()


def test_a_relative_folder_means_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert FilesSink("results").folder == str(tmp_path / "results")
