"""`tidegate stream ...` on a store in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tidegate.cli import app

ROWS = [
    {"id": 1, "at": "2026-01-31T12:00:00Z"},
    {"id": 2, "at": "2026-01-31T12:00:09Z"},
    {"id": 3, "at": "2026-01-31T12:00:02Z"},
]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return str(tmp_path / "shop")


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["stream", *words], input=stdin, env={"COLUMNS": "160"})


def create(shop: str) -> None:
    columns = ["-c", "id:int64", "-c", "at:string"]
    made = run("create", shop, "orders", *columns, "--event-time", "at", "--key", "id")
    assert made.exit_code == 0, made.output


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_rows_go_in_are_described_and_come_out_again(shop: str) -> None:
    create(shop)
    noting = ["--writer", "till", "--note", "2026-01-31T12:00:10Z"]
    done = run("append", shop, "orders", "-", *noting, stdin=lines(ROWS))
    assert "3 rows appended" in done.output
    assert "orders" in run("list", shop).output
    told = run("describe", shop, "orders").output
    assert "30s: no row would have been late" in told
    assert "5s: at most 3 of 3" in told
    assert "till" in told
    shown = [json.loads(line) for line in run("tail", shop, "orders").output.splitlines()]
    assert [row["id"] for row in shown] == [1, 2, 3]
    assert "2026-01-31T12:00:10Z" in run("marks", shop, "orders").output
    cut = run("cut-at", shop, "orders", "2026-01-31T12:00:05Z").output
    assert json.loads(cut) == {"0.e0": 0}


def test_files_of_every_format_are_appended(shop: str, tmp_path: Path) -> None:
    create(shop)
    (tmp_path / "a.jsonl").write_text(lines(ROWS))
    (tmp_path / "b.csv").write_text("id,at\n4,2026-01-31T12:00:04Z\n")
    pq.write_table(pa.table({"id": [5], "at": ["2026-01-31T12:00:05Z"]}), tmp_path / "c.parquet")
    for name, count in (("a.jsonl", 3), ("b.csv", 1), ("c.parquet", 1)):
        assert (
            f"{count} rows appended" in run("append", shop, "orders", str(tmp_path / name)).output
        )


def test_chunks_are_joined_and_old_rows_given_up(shop: str) -> None:
    create(shop)
    for row in ROWS:
        run("append", shop, "orders", "-", stdin=lines([row]))
    assert "3 chunks joined" in run("compact", shop, "orders").output
    assert "2 rows truncated" in run("truncate", shop, "orders", "--before", '{"0.e0": 2}').output
    assert run("maintain", shop).exit_code == 0
    assert len(run("tail", shop, "orders").output.splitlines()) == 1


def test_bad_rows_are_refused_or_routed(shop: str) -> None:
    create(shop)
    bad = lines([{"id": 1, "at": "lunch time"}])
    refused = run("append", shop, "orders", "-", stdin=bad)
    assert refused.exit_code == 2
    routed = run("append", shop, "orders", "-", "--route-bad", stdin=bad)
    assert "1 bad rows routed" in routed.output
    assert "orders.errors" in run("list", shop).output


def test_a_mistake_is_told_in_words(shop: str, tmp_path: Path) -> None:
    create(shop)
    for words in (
        ("tail", shop, "ordres"),
        ("create", shop, "x", "-c", "id:integer"),
        ("append", shop, "orders", str(tmp_path / "nothing.csv")),
        ("append", shop, "orders", str(tmp_path)),
        ("truncate", shop, "orders", "--before", "everything"),
        ("truncate", shop, "orders"),
    ):
        failed = run(*words)
        assert failed.exit_code == 2, words
        assert "Hint:" in failed.output
        assert "Traceback" not in failed.output


def test_a_line_that_is_no_json_is_named(shop: str) -> None:
    create(shop)
    failed = run("append", shop, "orders", "-", stdin='{"id": 1\n')
    assert "standard input, line 1" in failed.output
