"""`tidegate doctor --progress`: what the one watermark of a stock query did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tidegate.cli import app
from tidegate.cli.doctor.findings import Findings
from tidegate.cli.doctor.progress import read_progress

SAVE = "stateStoreSave"


def at(minute: int, second: int = 0) -> str:
    return f"2026-01-31T12:{minute:02}:{second:02}.000Z"


def batch(
    number: int,
    rows: int,
    watermark: str | None = None,
    times: tuple[str, str] | None = None,
    **dropped: int,
) -> dict[str, Any]:
    """A progress as Spark writes it, with less in it."""
    event_time = {"watermark": watermark or "1970-01-01T00:00:00.000Z"}
    if times:
        event_time |= {"min": times[0], "max": times[1], "avg": times[0]}
    return {
        "id": "b1483079",
        "runId": "10d8c6ab",
        "name": "orders",
        "timestamp": f"2026-02-01T08:00:{number * 10:02}.000Z",
        "batchId": number,
        "numInputRows": rows,
        "eventTime": event_time,
        "stateOperators": [
            {"operatorName": name, "numRowsDroppedByWatermark": count}
            for name, count in dropped.items()
        ],
        "sources": [{"numInputRows": rows}],
    }


LOSING = [
    batch(0, 100, None, (at(0), at(5)), stateStoreSave=0),
    batch(1, 100, at(4), (at(0), at(5)), stateStoreSave=0),
    batch(2, 100, at(4), (at(1), at(9)), stateStoreSave=7),
    batch(3, 0, at(8), stateStoreSave=0),
    batch(4, 100, at(8), (at(2), at(8)), stateStoreSave=13),
    batch(5, 50, at(8), (at(7), at(8)), stateStoreSave=0),
]


def run(tmp_path: Path, text: str, *words: str) -> Result:
    file = tmp_path / "progress.json"
    file.write_text(text)
    call = ["doctor", "--progress", str(file), *words]
    return CliRunner().invoke(app, call, env={"COLUMNS": "160"})


def lines(entries: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def told(tmp_path: Path, entries: list[dict[str, Any]]) -> dict[str, Any]:
    result = run(tmp_path, lines(entries), "--json")
    (found,) = json.loads(result.stdout)["progress"]
    assert result.exit_code == (1 if found["dropped"] else 0)
    assert isinstance(found, dict)
    return found


def test_dropped_rows_are_counted_by_batch_and_in_all(tmp_path: Path) -> None:
    found = told(tmp_path, LOSING)
    assert found["rows"] == 450
    assert found["dropped"] == 20
    assert found["dropped_share"] == pytest.approx(20 / 450)
    assert found["dropped_by_batch"] == {"2": 7, "4": 13}
    assert found["counted_in_groups"]


def test_standstills_spread_and_delay_are_found(tmp_path: Path) -> None:
    found = told(tmp_path, LOSING)
    assert found["delay"] == 60.0
    assert (found["widest_batch"], found["widest"]) == (2, 480.0)
    # Batch 1 brought nothing newer, so batch 2 had the same watermark; and batch 4 likewise.
    assert [(s["first_batch"], s["last_batch"], s["rows"]) for s in found["standstills"]] == [
        (1, 2, 100),
        (4, 5, 50),
    ]
    assert [s["seconds"] for s in found["standstills"]] == [10.0, 10.0]


def test_the_conclusion_says_what_spark_does_not_count(tmp_path: Path) -> None:
    result = run(tmp_path, lines(LOSING))
    assert result.exit_code == 1
    for words in (
        "Spark counted 20 rows behind the one watermark of the query",
        "4.4% of its input rows",
        "That is no count of input rows",
        "The watermark stood still while rows came in, at the most from batch 1 to 2, over 10s",
        "up to 8m apart, and the delay of the watermark is 1m",
    ):
        assert words in " ".join(result.output.split()), words


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LOSING),
        json.dumps(LOSING, indent=2),
        "\n\n".join(json.dumps(entry) for entry in LOSING),
        lines([{"progress": entry} for entry in LOSING]),
        # Run again after a failure, and first seen while it waited: the last word counts.
        lines([batch(4, 9, at(8), stateStoreSave=900), *LOSING]),
    ],
    ids=["array", "pretty", "blank lines", "listener", "again"],
)
def test_every_way_to_write_it_down_gives_the_same(tmp_path: Path, text: str) -> None:
    result = run(tmp_path, text, "--json")
    assert json.loads(result.stdout)["progress"] == [told(tmp_path, LOSING)]


def test_a_single_progress_over_several_lines_is_one(tmp_path: Path) -> None:
    result = run(tmp_path, json.dumps(LOSING[2], indent=2), "--json")
    assert json.loads(result.stdout)["progress"][0]["dropped"] == 7


def test_a_query_that_dropped_nothing_is_well_and_nothing_more_is_claimed(tmp_path: Path) -> None:
    found = told(tmp_path, LOSING[:2])
    assert found["conclusion"][0] == (
        "No row was dropped in 2 batches. What came before or after is not in this file."
    )


def test_without_a_stateful_operator_nothing_can_be_dropped(tmp_path: Path) -> None:
    found = told(tmp_path, [batch(0, 5, None, (at(0), at(1))), batch(1, 5, at(1))])
    assert (found["stateful"], found["dropped"]) == (False, 0)
    assert "no stateful operator" in found["conclusion"][0]


def test_without_an_event_time_there_is_no_watermark(tmp_path: Path) -> None:
    entries = [batch(0, 5, stateStoreSave=0), batch(1, 5, stateStoreSave=0)]
    entries[0].pop("eventTime")
    entries[1]["eventTime"] = {}
    found = told(tmp_path, entries)
    assert found["event_time"] is False
    assert (found["delay"], found["widest"], found["standstills"]) == (None, None, [])
    assert "has no watermark" in found["conclusion"][0]


def test_several_operators_are_told_apart(tmp_path: Path) -> None:
    two = batch(1, 10, at(4), dedupe=2, symmetricHashJoin=3)
    two["stateOperators"].append({"operatorName": "dedupe", "numRowsDroppedByWatermark": 4})
    found = told(tmp_path, [batch(0, 10, dedupe=0), two])
    assert found["dropped_by_operator"] == {"dedupe": 2, "symmetricHashJoin": 3, "dedupe (3)": 4}
    assert found["counted_in_groups"] is False
    assert "several stateful operators" in found["conclusion"][1]


def test_several_queries_are_told_apart(tmp_path: Path) -> None:
    other = {**batch(0, 7, dedupe=1), "id": "other", "name": None}
    result = run(tmp_path, lines([*LOSING, other]), "--json")
    found = json.loads(result.stdout)["progress"]
    assert [(one["query"], one["dropped"]) for one in found] == [("orders", 20), ("other", 1)]


def test_a_file_of_the_smallest_that_spark_may_write(tmp_path: Path) -> None:
    (tmp_path / "small").write_text('{"batchId": 3, "sources": [{"numInputRows": 4}]}')
    (query,) = read_progress(str(tmp_path / "small"))
    findings = Findings(query)
    assert (query.name, findings.rows, findings.stateful) == ("the query", 4, False)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "progress.json: ", "there is no progress in it"),
        ("[]", "progress.json: ", "there is no progress in it"),
        (lines(LOSING) + "{'batchId': 1}", "progress.json, line 7: ", "Expecting property name"),
        ("[\n" + json.dumps(LOSING[0]) + ",\n{]", "progress.json, line 3: ", "Expecting property"),
        ("[1]", "progress.json, entry 1: ", "not a JSON object"),
        ('{"a": 1}', "progress.json, line 1: ", "no batchId"),
        ('{"batchId": "x"}', "line 1: ", "batchId is 'x'"),
        ('{"batchId": 1, "numInputRows": -4}', "line 1: ", "numInputRows is -4"),
        ('{"batchId": 1, "stateOperators": 4}', "line 1: ", "not the progress of a"),
        ('{"batchId": 1, "eventTime": {"max": "noon"}}', "line 1: ", "noon"),
        ('{"batchId": 1, "timestamp": 5}', "line 1: ", "timestamp is 5"),
    ],
)
def test_what_is_no_progress_is_told_with_its_place(
    tmp_path: Path, text: str, place: str, reason: str
) -> None:
    result = run(tmp_path, text)
    assert result.exit_code == 2
    assert result.stderr.startswith("progress cannot be read\n")
    assert place in result.stderr
    assert reason in result.stderr


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    result = CliRunner().invoke(app, ["doctor", "--progress", str(tmp_path / "bytes")])
    assert result.exit_code == 2
    assert "not a text in UTF-8" in result.stderr
