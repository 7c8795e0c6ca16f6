"""`tidegate doctor --input`: every format, every way to name partitions, and the store."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tidegate.cli import app
from tidegate.store import Store

START = 1_769_860_800  # 2026-01-31T12:00:00Z
FAST, SLOW = [0, 60, 120, 600], [0, 30, 70, 610]
"""Seconds. The fast site comes first, twice; of the slow one three rows are then too late."""
FILES = [("fast", FAST[:2]), ("fast", FAST[2:]), ("fast", [601]), ("slow", SLOW)]


def as_json(site: str, seconds: list[int]) -> bytes:
    rows = [
        {"site": site, "at": datetime.fromtimestamp(START + s, UTC).isoformat()} for s in seconds
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_csv(site: str, seconds: list[int]) -> bytes:
    times = [datetime.fromtimestamp(START + s, UTC).isoformat() for s in seconds]
    return "".join(["site,at\n", *(f"{site},{time}\n" for time in times)]).encode()


def as_parquet(site: str, seconds: list[int]) -> bytes:
    times = pa.array([(START + s) * 1_000_000 for s in seconds], pa.timestamp("us", tz="UTC"))
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"site": [site] * len(seconds), "at": times}), out)
    return bytes(out.getvalue())


def as_packed_json(site: str, seconds: list[int]) -> bytes:
    return gzip.compress(as_json(site, seconds))


Write = Callable[[str, list[int]], bytes]
WAYS = [
    (as_json, ".json"),
    (as_csv, ".csv"),
    (as_parquet, ".snappy.parquet"),
    (as_packed_json, ".json.gz"),
]


def fill(root: Path, write: Write, ending: str, folder: str = "") -> Path:
    """The files, whose names are against the order of their dates."""
    for number, (site, seconds) in enumerate(FILES):
        path = root / folder.format(site) / f"{9 - number}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write(site, seconds))
        os.utime(path, (START + number, START + number))
    return root


def run(root: Path | str, *words: str) -> Result:
    call = ["doctor", "--input", str(root), "--time", "at", *words]
    return CliRunner().invoke(app, call, env={"COLUMNS": "160"})


def told(root: Path, *words: str) -> dict[str, Any]:
    result = run(root, "--json", *words)
    found = json.loads(result.stdout)["input"]
    assert result.exit_code == (1 if found["stock"]["lost"] else 0), result.output
    assert isinstance(found, dict)
    return found


def lost(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    parts = found["partitions"]
    return {p["partition"]: (p["lost_by_stock"], p["lost_by_tidegate"]) for p in parts}


@pytest.mark.parametrize(("write", "ending"), WAYS, ids=[ending for _, ending in WAYS])
def test_every_format_is_judged_in_the_order_of_dates(
    tmp_path: Path, write: Write, ending: str
) -> None:
    root = fill(tmp_path / "in", write, ending)
    (root / "_SUCCESS").write_text("")
    (root / f".hidden{ending}").write_text("nonsense")
    found = told(root, "--partition", "site")
    assert (found["rows"], found["files"], found["batches"]) == (9, 4, 4)
    assert lost(found) == {"slow": (3, 0), "fast": (0, 0)}
    assert found["stock"]["delay_needed"] == 600 - 60 + 0.001
    assert told(root, "--partition", "site", "--delay", "541 seconds")["stock"]["lost"] == 0


@pytest.mark.parametrize(
    ("folder", "words", "names"),
    [
        ("site={}", [], {"site=slow", "site=fast"}),
        ("site={}", ["--partition", "site"], {"slow", "fast"}),
        ("place={}", ["--partition", "place"], {"slow", "fast"}),
        ("a/{}", [], {"a/slow", "a/fast"}),
        ("", [], {"."}),
    ],
)
def test_a_partition_is_a_folder_or_a_column(
    tmp_path: Path, folder: str, words: list[str], names: set[str]
) -> None:
    found = told(fill(tmp_path / "in", as_parquet, ".parquet", folder), *words)
    assert set(lost(found)) == names
    assert found["stock"]["lost"] == 3


def test_batches_are_files_or_rows_and_a_live_query_is_judged_sooner(tmp_path: Path) -> None:
    root = fill(tmp_path / "in", as_csv, ".csv")
    assert told(root)["batches"] == 4
    # All of it in two batches: nothing is judged by a watermark of two batches ago.
    assert told(root, "--batch-files", "2")["stock"]["lost"] == 0
    assert told(root, "--batch-files", "2", "--live")["stock"]["lost"] == 3
    assert told(root, "--batch-rows", "5")["batches"] == 2
    assert told(root, "--batch-rows", "1")["batches"] == 9
    assert told(root, "--batch-rows", "100")["batches"] == 1


def test_without_windows_a_row_is_judged_by_its_own_time(tmp_path: Path) -> None:
    root = fill(tmp_path / "in", as_json, ".jsonl")
    assert told(root, "--window", "none", "--delay", "569s")["stock"]["lost"] == 2
    assert told(root, "--window", "none", "--delay", "570s")["stock"]["lost"] == 2
    assert told(root, "--window", "none", "--delay", "571s")["stock"]["lost"] == 1
    assert told(root, "--window", "none")["stock"]["delay_needed"] == 600.001


def test_the_screen_says_who_loses_what_and_what_it_would_take(tmp_path: Path) -> None:
    result = run(fill(tmp_path / "in", as_csv, ".csv"), "--partition", "site")
    assert result.exit_code == 1
    shown = " ".join(result.output.split())
    for words in (
        "9 rows, 2 partitions, 4 files; windows of 1m, a delay of 10s, one file to a batch",
        "loses 3 of 9 rows (33.3%); the most in partition slow: 3 of 4.",
        "it would need a delay of 9m 1s",
        "Tidegate, with a tolerance of 10s in every partition, loses none.",
        "In 3 of 4 batches it had none yet",
    ):
        assert words in shown, words


def test_numbers_need_their_type_and_bad_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"at\n{START}\n\nnever\n{START + 5}\n")
    found = told(path, "--time-type", "unixtimestamp_s")
    assert (found["rows"], found["rows_without_time"]) == (2, 1)
    assert found["partitions"][0]["from"] == "2026-01-31T12:00:00Z"
    assert any("Without a time that can be read: 1 row" in s for s in found["conclusion"])


def test_an_empty_file_is_a_batch_as_it_is_for_spark(tmp_path: Path) -> None:
    root = fill(tmp_path / "in", as_csv, ".csv")
    (root / "empty.csv").write_bytes(b"")
    os.utime(root / "empty.csv", (START + 1, START + 1))
    found = told(root)
    assert (found["batches"], found["files_of_equal_date"]) == (5, 1)
    assert any("As old as another" in sentence for sentence in found["conclusion"])


@pytest.mark.parametrize(
    ("files", "words", "reason"),
    [
        ({}, [], "there is no file in it"),
        ({"a.txt": b"x"}, [], "does not end in one of .parquet"),
        ({"a.parquet.gz": b"x"}, [], "does not end in one of .parquet"),
        ({"a.parquet": b"x" * 100}, [], "a.parquet"),
        ({"a.json": b"{nonsense"}, [], "a.json"),
        ({"a.csv": b"when\n5\n"}, [], 'has no column "at"; it has: when'),
        ({"a.csv": b"at\n5\n"}, ["--partition", "site"], 'has no column "site"; it has: at'),
        ({"a.csv": b"at\nsoon\n"}, [], "no row of it has a time that can be read"),
        ({"a.csv": b""}, [], "no row of it has a time that can be read"),
        ({"a.json": b'{"at": true}\n'}, [], "at"),
        ({"a.csv": b"at\n5\n"}, ["--time-type", "julian"], "julian"),
        ({"at=5/a.csv": b"x\n5\n"}, [], '"at" is the name of a folder'),
        ({"a.json": b'{"at": "2026-01-31", "s": {"x": 1}}\n'}, ["--partition", "s"], "a.json"),
    ],
)
def test_what_cannot_be_read_is_told_and_never_a_traceback(
    tmp_path: Path, files: dict[str, bytes], words: list[str], reason: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    result = run(tmp_path, *words)
    assert result.exit_code == 2, result.output
    assert reason in result.stderr
    assert "Detail: " in result.stderr


# ---- a stream of the store ----


def filled(shop: Path) -> Store:
    store = Store.open(shop)
    columns = pa.schema([("site", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    store.create_stream("orders", columns, event_column="at", max_future=None)
    with store.writer("orders") as into:
        for site, seconds in FILES:
            times = [datetime.fromtimestamp(START + second, UTC) for second in seconds]
            into.append([{"site": site, "at": time} for time in times])
            into.flush()
    return store


def of_stream(shop: Path, *words: str) -> dict[str, Any]:
    call = ["doctor", "--store", str(shop), "--stream", "orders", "--json", *words]
    result = CliRunner().invoke(app, call)
    assert result.exit_code in (0, 1), result.output
    found = json.loads(result.stdout)
    assert set(found) == {"well", "input"}
    assert isinstance(found["input"], dict)
    return found["input"]


def test_a_stream_is_judged_in_the_order_of_its_commits(tmp_path: Path) -> None:
    filled(tmp_path).close()
    found = of_stream(tmp_path, "--partition", "site")
    assert (found["batches"], lost(found)) == (4, {"slow": (3, 0), "fast": (0, 0)})
    assert set(lost(of_stream(tmp_path))) == {"0.e0"}


def test_segments_that_follow_others_are_waited_for_only_then(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        store.split("orders", "0.e0")
        with store.writer("orders") as into:
            for second in (700, 710, 720):
                at = datetime.fromtimestamp(START + second, UTC)
                into.append([{"site": "fast", "at": at}])
                into.flush()
    found = of_stream(tmp_path)
    assert found["rows"] == 12
    assert len(found["partitions"]) > 1
    assert found["tidegate"]["batches_without_watermark"] == 0


def test_a_stream_or_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    filled(tmp_path).close()
    call = ["doctor", "--store", str(tmp_path), "--stream", "order"]
    result = CliRunner().invoke(app, call)
    assert (result.exit_code, "order" in result.stderr) == (2, True)
    result = CliRunner().invoke(app, [*call[:-1], "orders", "--partition", "place"])
    assert result.exit_code == 2
    assert 'stream "orders" has no column "place"; it has: at, site' in result.stderr
