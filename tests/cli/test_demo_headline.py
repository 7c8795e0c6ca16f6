"""`tidegate demo --pure`: the headline, as a newcomer runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate.cli import app, demo_headline
from tidegate.testing import Headline

ESCAPE = "\x1b"
SMALL = Headline(rows=120, traders=5, symbols=10, partitions=4)
"""For what does not depend on the numbers."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(out: Path) -> str:
    result = CliRunner().invoke(app, ["demo", "--pure", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return result.output


def numbers_of(row: str, shown: str) -> list[int]:
    [line] = [line for line in shown.splitlines() if line.startswith(f"│ {row} ")]
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)]


def test_the_table_tells_what_each_way_keeps(shown: str) -> None:
    assert numbers_of("truth", shown) == [10_000, 168, 168]
    assert numbers_of("one global watermark", shown) == [319, 9_681, 1, 168]
    assert numbers_of("the same, with two hours of delay", shown) == [7_303, 2_697, 121, 168]
    assert numbers_of("Tidegate", shown) == [10_000, 0, 168, 168]


def test_the_picture_is_written_as_files(shown: str, out: Path) -> None:
    assert sorted(file.name for file in out.iterdir()) == ["watermarks.png", "watermarks.svg"]
    assert (out / "watermarks.png").read_bytes().startswith(b"\x89PNG")
    drawing = (out / "watermarks.svg").read_text()
    assert "<svg" in drawing
    assert all(str(out / name) in shown for name in ("watermarks.svg", "watermarks.png"))


def test_the_same_demo_gives_the_same_words_and_files(shown: str, out: Path) -> None:
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    again = CliRunner().invoke(app, ["demo", "--pure", "--out", str(out)])
    assert again.output == shown
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_the_chart_fits_into_eighty_columns_and_shows_all_three_kinds_of_line(shown: str) -> None:
    chart = [line for line in shown.splitlines() if re.match(r"[ \w:]{7} │", line)]
    assert len(chart) == 17
    assert all(len(line) <= 80 for line in chart)
    top, bottom = chart[0], chart[-1]
    # One global watermark is at the top nearly from the beginning, W at the very end.
    assert top.count("━") > 60
    assert top.endswith("█")
    assert bottom.startswith("unknown │█████")
    assert all("·" in line for line in chart[1:-1])


def test_there_are_no_colour_codes_where_nobody_sees_them(shown: str) -> None:
    assert ESCAPE not in shown


@pytest.mark.parametrize(
    ("arguments", "variables", "colourful"),
    [([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False)],
)
def test_a_terminal_gets_colours_unless_they_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    variables: dict[str, str],
    colourful: bool,
) -> None:
    monkeypatch.setattr(demo_headline, "Headline", lambda: SMALL)
    monkeypatch.setattr(demo_headline, "can_draw", lambda: False)
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": None, **variables}
    result = CliRunner().invoke(
        app, ["demo", "--pure", "--out", str(tmp_path), *arguments], env=terminal
    )
    assert (re.search(r"\x1b\[[\d;]*3[12]m", result.output) is not None) == colourful


def test_without_the_extra_it_says_how_to_get_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_headline, "Headline", lambda: SMALL)
    monkeypatch.setattr(demo_headline, "can_draw", lambda: False)
    result = CliRunner().invoke(app, ["demo", "--pure", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert "pip install 'tidegate[plot]'" in result.output
    assert list(tmp_path.iterdir()) == []
