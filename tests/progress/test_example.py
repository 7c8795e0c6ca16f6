from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "event_time_watermark.py"

PRINTED = """\
order                 watermark  frontier         closed minutes
12:00:10              11:59:50   11:59:59.999999
12:00:50              12:00:30   12:00:59.999999
12:00:40              12:00:30   12:00:59.999999
"lunch time"          12:00:30   12:00:59.999999
12:01:20              12:01:00   12:01:59.999999  12:00:00 = 13
12:00:20              12:01:00   12:01:59.999999
12:02:30              12:02:10   12:02:59.999999  12:01:00 = 4
end                   12:02:10   12:02:59.999999  12:02:00 = 3
late orders: [9], bad orders: ['lunch time']
"""


def test_the_example_prints_this(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == PRINTED
