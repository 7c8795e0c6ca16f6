"""What is special to a log of files: formats, bad rows, new files, names out of order."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.contracts.log_makers import write_file

from tidegate.errors import TidegateError
from tidegate.eventtime.instants import parse_instant
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.logs import file_facts
from tidegate.logs.file_listing import list_folders
from tidegate.logs.files import FileLog

NOON = "2026-01-31T12:00:00Z"
MODIFIED = parse_instant(NOON)


def put(path: Path, text: str, modified: str = NOON) -> None:
    """Write a text file with a modification time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    date(path, modified)


def date(path: Path, modified: str) -> None:
    at = parse_instant(modified) * 1000
    os.utime(path, ns=(at, at))


def ids(log: FileLog, partition: str) -> list[int]:
    latest = log.snapshot({}).partitions
    end = int(latest.latest[latest.names.index(partition)])
    return [i for batch in log.read(partition, 0, end, ["id"]) for i in batch.column(0).to_pylist()]


# ---- bad rows ----

CSV = """id,at
0,2026-01-31T11:00:00Z
1,never
2,
3,2026-01-31T12:05:00Z
4,2026-01-31T12:05:01Z
5,2026-01-31T11:30:00Z
"""
JSON = "".join(
    json.dumps({"id": int(number), "at": at}) + "\n"
    for number, at in (line.split(",") for line in CSV.split("\n")[1:-1])
)


@pytest.mark.parametrize(("format", "text"), [("csv", CSV), ("jsonl", JSON)])
def test_bad_rows_keep_their_offsets_and_are_given_apart_with_the_reason(
    tmp_path: Path, format: str, text: str
) -> None:
    put(tmp_path / "p" / "1", text)
    log = FileLog("orders", tmp_path, format=format, event_column="at")
    spans = log.snapshot({}).spans
    assert (spans.rows.tolist(), log.bad_count("p", 0, 6)) == ([6], 3)
    assert spans.min_time.tolist() == [parse_instant("2026-01-31T11:00:00Z")]
    assert spans.max_time.tolist() == [parse_instant("2026-01-31T12:05:00Z")]
    assert ids(log, "p") == [0, 3, 5]
    bad = log.bad_rows("p", 0, 6)
    assert bad.select(["id", "_offset", "_reason"]).to_pylist() == [
        {"id": 1, "_offset": 1, "_reason": "unparsable"},
        {"id": 2, "_offset": 2, "_reason": "missing"},
        {"id": 4, "_offset": 4, "_reason": "future"},
    ]
    assert log.bad_rows("p", 2, 3).column("_reason").to_pylist() == ["missing"]
    assert bad.column("at").to_pylist()[0] == "never"


def test_the_guard_against_the_future_can_be_switched_off(tmp_path: Path) -> None:
    put(tmp_path / "p" / "1", CSV)
    log = FileLog("orders", tmp_path, format="csv", event_column="at", max_future=None)
    assert ids(log, "p") == [0, 3, 4, 5]


def test_a_file_of_bad_rows_only_has_no_times(tmp_path: Path) -> None:
    put(tmp_path / "p" / "1", "id,at\n1,never\n2,nowhen\n")
    log = FileLog("orders", tmp_path, format="csv", event_column="at")
    spans = log.snapshot({}).spans
    assert (spans.rows.tolist(), spans.timed.tolist()) == ([2], [False])
    assert len(log.overlapping(0, 1 << 60, {}, {"p": 2})) == 0


# ---- formats ----


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("unixtimestamp_ms", [1_769_857_200_000, 1_769_857_200_500]),
        ("iso8601", ["2026-01-31T11:00:00Z", "2026-01-31T11:00:00.5Z"]),
        ("%d.%m.%Y %H:%M:%S.%f", ["31.01.2026 11:00:00.0", "31.01.2026 11:00:00.5"]),
    ],
)
@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_every_event_time_type_is_read_from_every_format(
    tmp_path: Path, format: str, kind: str, values: list[Any]
) -> None:
    path = tmp_path / "p" / "1"
    if format == "parquet":
        path.parent.mkdir()
        pq.write_table(pa.table({"at": values, "id": [1, 2]}), path)
    else:
        write_file(path, format, [{"at": v, "id": i} for i, v in enumerate(values, 1)])
    date(path, NOON)
    log = FileLog("orders", tmp_path, format=format, event_column="at", event_type=kind)
    read = log.read("p", 0, 2, ["id", "_event_time"])
    rows = [(r["id"], r["_event_time"].timestamp()) for b in read for r in b.to_pylist()]
    assert rows == [(1, 1769857200.0), (2, 1769857200.5)]


def test_the_footer_tells_the_times_and_the_disorder_is_read_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": i, "at": 1000 * i - 5000 * (i == 9)} for i in range(20)]
    write_file(tmp_path / "p" / "1", "parquet", rows)
    read: list[str] = []
    by_reading: Callable[..., Any] = file_facts._by_reading

    def watched(how: Any, file: Any) -> Any:
        read.append(file.name)
        return by_reading(how, file)

    monkeypatch.setattr(file_facts, "_by_reading", watched)
    log = FileLog("orders", tmp_path, event_column="at")
    assert log.overlapping(8000, 13_000, {}, {"p": 20}).max_time.tolist() == [13_000]
    assert log.cut_at(14_000) == {"p": 14}
    log.snapshot({"p": 20})
    assert read == []
    assert log.snapshot({}).spans.disorder.tolist() == [0, 4000, 0]
    log.snapshot({})
    FileLog("orders", tmp_path, event_column="at").snapshot({})
    assert read == ["1"], "once for a file, in the whole process"


def test_a_column_that_a_file_lacks_is_null_and_one_nobody_declared_is_left_out(
    tmp_path: Path,
) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.string()), ("note", pa.string())])
    put(tmp_path / "p" / "1", f"at,id,other\n{NOON},1,x\n")
    put(tmp_path / "p" / "2", f"at,id,note\n{NOON},2,hello\n")
    log = FileLog("orders", tmp_path, format="csv", event_column="at", schema=schema)
    log.snapshot({})
    rows = [row for batch in log.read("p", 0, 2) for row in batch.to_pylist()]
    assert rows == [{"id": 1, "at": NOON, "note": None}, {"id": 2, "at": NOON, "note": "hello"}]


def test_without_a_declared_event_time_a_row_has_the_time_of_its_file(tmp_path: Path) -> None:
    put(tmp_path / "p" / "1", "id\n1\n2\n")
    log = FileLog("orders", tmp_path, format="csv")
    spans = log.snapshot({}).spans
    assert (spans.min_time.tolist(), spans.max_time.tolist()) == ([MODIFIED], [MODIFIED])
    assert ids(log, "p") == [1, 2]


def test_types_of_the_users_own_are_taken_from_the_registry(tmp_path: Path) -> None:
    registry = EventTimeRegistry(entry_points=())
    registry.register("german", "%d.%m.%Y")
    put(tmp_path / "p" / "1", "id,at\n1,30.01.2026\n")
    log = FileLog(
        "orders", tmp_path, format="csv", event_column="at", event_type="german", registry=registry
    )
    assert log.snapshot({}).spans.min_time.tolist() == [parse_instant("2026-01-30")]


# ---- new files ----


def test_new_files_follow_those_that_are_there_and_new_folders_are_new_partitions(
    tmp_path: Path,
) -> None:
    put(tmp_path / "p" / "1", "id\n1\n")
    log = FileLog("orders", tmp_path, format="csv")
    assert ids(log, "p") == [1]
    put(tmp_path / "p" / "2", "id\n2\n3\n", "2026-01-31T13:00:00Z")
    put(tmp_path / "q" / "1", "id\n9\n")
    (tmp_path / "empty").mkdir()
    partitions = log.snapshot({"p": 1}).partitions
    assert partitions.names == ("empty", "p", "q")
    assert partitions.latest.tolist() == [0, 3, 1]
    assert partitions.arrived_at[1] == parse_instant("2026-01-31T13:00:00Z")
    assert partitions.has_arrival.all()
    assert (ids(log, "p"), ids(log, "q")) == ([1, 2, 3], [9])


def test_hidden_files_and_folders_are_nobodys_rows(tmp_path: Path) -> None:
    put(tmp_path / "p" / "1", "id\n1\n")
    for hidden in ("p/_SUCCESS", "p/.2.crc", "p/_tmp/3", "_logs/1", ".git/1", "p/empty"):
        put(tmp_path / hidden, "" if hidden == "p/empty" else "nothing")
    log = FileLog("orders", tmp_path, format="csv")
    before = log.version()
    assert (log.snapshot({}).partitions.names, ids(log, "p")) == (("p",), [1])
    put(tmp_path / "p/_temporary", "x")
    assert log.version() == before


def test_files_in_folders_of_a_partition_are_taken_in_the_order_of_their_paths(
    tmp_path: Path,
) -> None:
    for number, path in enumerate(("day=1/b", "day=1/c", "day=2/a")):
        put(tmp_path / "p" / path, f"id\n{number}\n")
    assert ids(FileLog("orders", tmp_path, format="csv"), "p") == [0, 1, 2]


def test_a_marker_ends_its_partition_and_an_option_all_of_them(tmp_path: Path) -> None:
    put(tmp_path / "p" / "1", "id\n1\n")
    put(tmp_path / "q" / "1", "id\n1\n")
    log = FileLog("orders", tmp_path, format="csv")
    assert (log.bounded, log.snapshot({}).partitions.ended.tolist()) == (False, [False, False])
    before = log.version()
    (tmp_path / "q" / "_END").touch()
    assert log.version() != before
    assert (log.bounded, log.snapshot({}).partitions.ended.tolist()) == (False, [False, True])
    ended = FileLog("orders", tmp_path, format="csv", ended=True)
    assert (ended.bounded, ended.snapshot({}).partitions.ended.tolist()) == (True, [True, True])


# ---- what cannot be ----


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(TidegateError) as caught:
        act()
    return caught.value.code


def test_files_that_would_change_an_offset_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "p" / "2", "id\n1\n")
    put(tmp_path / "p" / "3", "id\n1\n")
    log = FileLog("orders", tmp_path, format="csv")
    log.snapshot({})
    put(tmp_path / "p" / "1", "id\n1\n")
    assert refused(lambda: log.snapshot({})) == "file-out-of-order"
    (tmp_path / "p" / "1").unlink()
    log.snapshot({})
    put(tmp_path / "p" / "2", "id\n1\n2\n")
    assert refused(lambda: log.snapshot({})) == "file-changed"
    (tmp_path / "p" / "2").unlink()
    assert refused(lambda: log.snapshot({})) == "file-changed"


def test_a_file_that_cannot_be_read_yet_holds_its_partition_and_no_other(tmp_path: Path) -> None:
    rows = [{"id": 1, "at": 5}]
    write_file(tmp_path / "p" / "1", "parquet", rows)
    write_file(tmp_path / "q" / "1", "parquet", rows)
    put(tmp_path / "p" / "2", "half a fi")
    log = FileLog("orders", tmp_path, event_column="at")
    partitions = log.snapshot({}).partitions
    assert partitions.latest.tolist() == [1, 1]
    assert list(partitions.unreadable) == ["p"]
    assert partitions.unreadable["p"].startswith('file "2" cannot be read: ')
    write_file(tmp_path / "p" / "2", "parquet", rows)
    assert not log.snapshot({}).partitions.unreadable
    assert log.snapshot({}).partitions.latest.tolist() == [2, 1]


def test_a_file_that_is_lost_after_it_was_planned_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    put(tmp_path / "p" / "1", "id\n1\n")
    log = FileLog("orders", tmp_path, format="csv")
    log.snapshot({})
    (tmp_path / "p" / "1").unlink()
    assert refused(lambda: list(log.read("p", 0, 1))) == "file-unreadable"


class Restless:
    """A file system in which a folder goes away while it is listed, some times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.listed = 0

    def get_file_info(self, what: Any) -> Any:
        if isinstance(what, fs.FileSelector):
            self.listed += 1
            if self.listed <= self.times:
                raise FileNotFoundError(2, f"Cannot list directory '{what.base_dir}/away'")
        return fs.LocalFileSystem().get_file_info(what)


def test_a_folder_that_goes_away_while_it_is_listed_fails_nothing(tmp_path: Path) -> None:
    put(tmp_path / "p" / "1", "id\n1\n")
    system = Restless(2)
    assert list(list_folders("orders", system, str(tmp_path))) == ["p"]
    assert system.listed == 3
    # But not for ever; and a root that is not there is told at once.
    assert refused(lambda: list_folders("orders", Restless(99), str(tmp_path))) == (
        "files-unreachable"
    )
    gone = Restless(1)
    nowhere = str(tmp_path / "nowhere")
    assert refused(lambda: list_folders("orders", gone, nowhere)) == "files-unreachable"
    assert gone.listed == 1


def test_wrong_questions_and_wrong_folders_are_refused(tmp_path: Path) -> None:
    def opened(**options: Any) -> FileLog:
        return FileLog("orders", tmp_path / "log", **{"format": "csv", **options})

    assert refused(opened) == "files-unreachable"
    (tmp_path / "log").mkdir()
    assert refused(opened) == "files-without-schema"
    put(tmp_path / "log" / "p" / "1", f"id,at\n1,{NOON}\n")
    assert refused(lambda: opened(format="xml")) == "wrong-setting"
    assert refused(lambda: opened(event_column="when")) == "event-time-column-missing"
    typed = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    assert refused(lambda: opened(event_column="at", schema=typed)) == "file-event-column-typed"
    assert (
        refused(lambda: opened(event_column="at", schema=typed, format="jsonl"))
        == "file-event-column-typed"
    )
    reserved = pa.schema([("_offset", pa.int64())])
    assert refused(lambda: opened(schema=reserved)) == "column-reserved"
    log = opened()
    assert refused(lambda: list(log.read("p", 0, 2))) == "log-offsets-missing"
    assert refused(lambda: list(log.read("q", 0, 1))) == "log-partition-unknown"
    put(tmp_path / "log" / "stray.csv", "id\n")
    assert refused(lambda: log.snapshot({})) == "file-outside-partitions"


def test_the_guard_judges_by_the_files_own_date(tmp_path: Path) -> None:
    for name, modified in (("1", "2026-01-31T10:00:00Z"), ("2", "2026-01-31T12:00:00Z")):
        put(tmp_path / "p" / name, "id,at\n1,2026-01-31T11:00:00Z\n", modified)
    log = FileLog(
        "orders", tmp_path, format="csv", event_column="at", max_future=timedelta(minutes=30)
    )
    assert log.snapshot({}).spans.timed.tolist() == [False, True]
