"""Hopping windows in panes: the same answers as row by row, and only where that is so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.spark.both_kernels import STREAMS, Both, Failed, answered, table_difference
from tests.spark.kernel_frames import SCHEMA, frames
from tests.spark.query_maker import QueryMaker
from tests.spark.test_kernels_agree import written

from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.planning.slices import Interval
from tidegate.spark.duckdb_kernel import DuckTask
from tidegate.spark.duckdb_text import translate
from tidegate.spark.shape import BOUNDS, Windows, panes_of
from tidegate.spark.sql_text import Statement

KEYS = "_window_start, _window_end, k"
GROUPED = " FROM a GROUP BY {}"
MINUTE = 60_000_000
HOPPING = [
    Windows(3 * MINUTE, MINUTE),
    Windows(MINUTE, MINUTE * 2 // 3),  # the slide does not divide the size
    Windows(MINUTE * 5 // 2, MINUTE),  # a row stands in two or in three
]
EVERYTHING = Interval(UNKNOWN, 1 << 60)


def in_duckdb(text: str, windows: Windows, *, panes: bool = True) -> str:
    made = translate(Both.parsed(text), dict.fromkeys(STREAMS, SCHEMA), windows, panes=panes)
    assert isinstance(made, str), made
    return made


def is_by_pane(text: str) -> bool:
    return any(panes_of(stream) in text for stream in STREAMS)


def of_task(
    text: str, windows: Windows, interval: Interval = EVERYTHING, origin: Known = UNKNOWN
) -> DuckTask:
    plain = "" if is_by_pane(text) else None
    return DuckTask(interval, origin, {}, windows, text, pa.schema([]), plain)


def asked(
    on: duckdb.DuckDBPyConnection,
    text: str,
    windows: Windows,
    interval: Interval = EVERYTHING,
    origin: Known = UNKNOWN,
    kinds: Sequence[tuple[str, int | None]] = (("{}", None),),
) -> pa.Table | Failed:
    """What a task answers over `_a`, `_b`, `_c`; `kinds`: parts of them, and their times."""
    task = of_task(text, windows, interval, origin)
    for stream in STREAMS:
        rows = f"SELECT * EXCLUDE (_window_start, _window_end) FROM _{stream}"
        sources = [(part.format(rows), at) for part, at in kinds]
        for name, sql in task.views(text, stream, sources).items():
            on.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {sql}')
    return answered(on, text)


# ---- every query of the subset ----


def grouped_queries() -> list[str]:
    said = written()
    lines = [part for line in said["groups"] for part in (line, *re.split(r", (?=[A-Z]+\()", line))]
    lines += [drawn(QueryMaker(seed)) for seed in range(40)]
    return [*(f"SELECT {KEYS}, {line}" + GROUPED.format(KEYS) for line in lines), *said["queries"]]


def drawn(maker: QueryMaker) -> str:
    """Aggregates that can be put together, of whatever an argument can be."""
    whole, exact, text = maker.whole(), maker.exact(), maker.text()
    return (
        f"COUNT({maker.truth()}), SUM({maker.floating()}), AVG({whole}), SUM({maker.column('i')}),"
        f" MIN({text}), MAX({maker.time()}), MAX({exact}), COUNT_IF({maker.truth()}),"
        f" MIN({maker.floating()}) FILTER (WHERE {maker.truth()})"
    )


@pytest.mark.parametrize("place", [0, 1, 2], ids=["3 by 1", "1 by 2/3", "5/2 by 1"])
def test_every_query_answers_by_pane_as_it_does_row_by_row(place: int) -> None:
    windows, by_pane = HOPPING[place], 0
    with duckdb.connect(config={"threads": 1}) as on:
        for name, table in frames().items():
            on.register(f"_{name}", table)
        for query in grouped_queries()[place :: len(HOPPING)]:
            text, plain = (in_duckdb(query, windows, panes=panes) for panes in (True, False))
            assert not is_by_pane(plain)
            if text == plain:
                continue
            by_pane += 1
            ours, theirs = (asked(on, words, windows) for words in (text, plain))
            if isinstance(ours, Failed) or isinstance(theirs, Failed):
                assert isinstance(ours, Failed), query
                assert isinstance(theirs, Failed), query
            else:
                assert table_difference(rough(ours), rough(theirs)) == "", query
    assert by_pane >= 20


def rough(table: pa.Table) -> pa.Table:
    """The same with floating columns named as those whose last digits may differ."""
    return table.rename_columns(
        [
            f"r_{place}" if pa.types.is_floating(field.type) else f"c_{place}"
            for place, field in enumerate(table.schema)
        ]
    )


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {KEYS}, COUNT(*) AS n FROM a GROUP BY {KEYS}",
        "SELECT _window_end, SUM(i) AS s FROM a WHERE b GROUP BY _window_end",
        f"SELECT {KEYS}, AVG(x) AS m FROM a GROUP BY {KEYS} HAVING COUNT(*) > 1 ORDER BY k",
        "SELECT _window_end, k % 2 AS odd, MAX(s) AS m FROM a GROUP BY _window_end, k % 2",
        f"SELECT {KEYS}, COUNT(*) FILTER (WHERE b) AS n FROM a GROUP BY {KEYS}",
        f"SELECT * FROM (SELECT {KEYS}, SUM(x) AS r_s FROM a GROUP BY {KEYS}) WHERE k = 1",
        f"SELECT {KEYS}, BOOL_AND(b) AS v, EVERY(i > 1) AS e, SOME(b) AS o FROM a GROUP BY {KEYS}",
        "SELECT _window_end, TRUE AS g, MAX(b) IS TRUE AS z FROM a GROUP BY _window_end, g",
        "SELECT _window_end, MAX(i) IS NULL AS z FROM a GROUP BY _window_end, NULL",
        f"WITH w AS (SELECT {KEYS}, COUNT(*) AS n FROM a GROUP BY {KEYS})"
        " SELECT *, ROW_NUMBER() OVER (PARTITION BY _window_end ORDER BY n DESC, k) AS r FROM w",
    ],
)
def test_what_can_be_put_together_from_parts_is_read_by_pane(query: str) -> None:
    text = in_duckdb(query, HOPPING[0])
    assert is_by_pane(text)
    assert 'FROM "a")' not in text


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {KEYS}, COUNT(DISTINCT s) AS n FROM a GROUP BY {KEYS}",
        f"SELECT {KEYS}, MEDIAN(x) AS m FROM a GROUP BY {KEYS}",
        f"SELECT {KEYS}, PERCENTILE(1.0D, 0.5) AS m FROM a GROUP BY {KEYS}",
        f"SELECT {KEYS}, STDDEV(x) AS r_s FROM a GROUP BY {KEYS}",
        f"SELECT {KEYS}, COUNT(*) AS n, VAR_POP(i) AS r_v FROM a GROUP BY {KEYS}",
        f"SELECT {KEYS}, COUNT(*) AS n FROM a GROUP BY {KEYS} HAVING COUNT(DISTINCT s) > 1",
        f"SELECT {KEYS}, COUNT_IF(_event_time < _window_start + INTERVAL '5' SECOND) AS n"
        f" FROM a GROUP BY {KEYS}",
        f"SELECT {KEYS}, COUNT(*) AS n FROM a WHERE _event_time > _window_start GROUP BY {KEYS}",
        f"SELECT {KEYS}, COUNT(*) AS n, RANK() OVER (ORDER BY k) AS r FROM a GROUP BY {KEYS}",
        "SELECT a._window_end, COUNT(*) AS n FROM a JOIN b ON a._window_end = b._window_end"
        " GROUP BY a._window_end",
        "SELECT DISTINCT _window_end, k FROM a",
        "WITH w AS (SELECT k, l AS _window_number FROM a) SELECT q._window_number, COUNT(*) AS n"
        " FROM (SELECT k, _window_number FROM w) q GROUP BY q._window_number",
        # Deeper than the parser reads: DuckDB does.
        f"SELECT {KEYS}, COUNT_IF({' OR '.join(f'i = {n}' for n in range(150))}) AS n"
        f" FROM a GROUP BY {KEYS}",
    ],
)
def test_what_needs_the_rows_of_a_window_is_not(query: str) -> None:
    assert not is_by_pane(in_duckdb(query, HOPPING[0]))


@pytest.mark.parametrize(
    "windows",
    [Windows(MINUTE, MINUTE), Windows(MINUTE, 2 * MINUTE), Windows(MINUTE, MINUTE - 1)],
    ids=["tumbling", "with gaps", "no common step"],
)
def test_windows_that_share_no_panes_are_read_row_by_row(windows: Windows) -> None:
    assert not is_by_pane(
        in_duckdb(f"SELECT {KEYS}, COUNT(*) AS n FROM a GROUP BY {KEYS}", windows)
    )


# ---- windows of an interval ----

times = st.integers(-50, 150)


@given(
    rows=st.lists(st.tuples(times, st.integers(0, 2), st.integers(-5, 5)), max_size=40),
    late=st.lists(st.tuples(times, st.integers(0, 2), st.integers(-5, 5)), max_size=5),
    size=st.integers(2, 30),
    slide=st.integers(1, 30),
    a=st.none() | st.integers(-40, 60),
    length=st.integers(1, 100),
    origin=st.none() | times,
)
@settings(max_examples=80, deadline=None)
def test_panes_give_the_windows_that_end_in_the_interval_of_a_task(
    rows: list[tuple[int, int, int]],
    late: list[tuple[int, int, int]],
    size: int,
    slide: int,
    a: int | None,
    length: int,
    origin: int | None,
) -> None:
    assume(size != slide)
    windows = Windows(size, slide)
    begin = 0 if a is None else a
    interval = Interval(UNKNOWN if a is None else a, begin + length)
    expected: dict[tuple[int, int], list[int]] = defaultdict(list)
    # A row that came too late counts as if its time were the beginning of the interval.
    for time, key, value in [*rows, *((begin, k, v) for _, k, v in late)]:
        for start, end in windows.windows_of(time):
            ends_here = (a is None or end > a) and end <= interval.b
            if ends_here and (origin is None or start >= origin):
                expected[start, key].append(value)
    query = (
        "SELECT _window_start, _window_end, k, COUNT(*) AS n, SUM(l) AS s, MIN(l) AS low,"
        " AVG(l) AS mean FROM a GROUP BY _window_start, _window_end, k"
    )
    text = in_duckdb(query, windows)
    with duckdb.connect(config={"threads": 1}) as on:
        for stream in STREAMS:
            on.register(f"_{stream}", frame([*rows, *late]))
        split = [
            (f"SELECT * FROM ({{}}) LIMIT {len(rows)}", None),
            (f"SELECT * FROM ({{}}) OFFSET {len(rows)}", begin),
        ]
        found = asked(on, text, windows, interval, UNKNOWN if origin is None else origin, split)
    assert isinstance(found, pa.Table)
    got = {
        (start, row["k"]): (end - start, row["n"], row["s"], row["low"], row["mean"])
        for start, end, row in zip(
            found["_window_start"].cast(pa.int64()).to_pylist(),
            found["_window_end"].cast(pa.int64()).to_pylist(),
            found.to_pylist(),
            strict=True,
        )
    }
    assert got == {
        place: (size, len(values), sum(values), min(values), sum(values) / len(values))
        for place, values in expected.items()
    }


def frame(rows: list[tuple[int, int, int]]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in SCHEMA.names}
    columns["_event_time"] = [time for time, _, _ in rows]
    columns["k"], columns["l"] = [key for _, key, _ in rows], [value for _, _, value in rows]
    return pa.table(columns, schema=SCHEMA)


def test_a_row_before_the_start_of_a_query_is_not_looked_at() -> None:
    windows = Windows(20, 10)
    text = in_duckdb("SELECT _window_end, SUM(1 div k) AS s FROM a GROUP BY _window_end", windows)
    assert is_by_pane(text)
    with duckdb.connect(config={"threads": 1}) as on:
        for stream in STREAMS:
            on.register(f"_{stream}", frame([(39, 0, 0), (40, 1, 0), (50, 1, 0)]))
        found = asked(on, text, windows, Interval(40, 60), origin=40)
        assert isinstance(found, pa.Table)
        assert found.column("s").to_pylist() == [2]
        assert isinstance(asked(on, text, windows, Interval(40, 60), origin=30), Failed)


@pytest.mark.parametrize(
    ("interval", "origin", "rows", "sums"),
    [
        (Interval(UNKNOWN, 60), 35, [(37, 0), (40, 1), (50, 1)], [2]),
        (Interval(40, 60), UNKNOWN, [(41, 1), (42, 1), (57, 0)], [2, 2]),
        (Interval(45, 60), UNKNOWN, [(35, 0), (41, 1), (52, 1)], [2]),
    ],
    ids=["before the start", "of a later task", "of an earlier task"],
)
def test_a_row_that_stands_in_no_window_of_a_task_is_not_looked_at(
    interval: Interval, origin: Known, rows: list[tuple[int, int]], sums: list[int]
) -> None:
    windows = Windows(15, 10)
    text = in_duckdb("SELECT _window_end, SUM(1 div k) AS s FROM a GROUP BY _window_end", windows)
    assert is_by_pane(text)
    with duckdb.connect(config={"threads": 1}) as on:
        for stream in STREAMS:
            on.register(f"_{stream}", frame([(time, k, 0) for time, k in rows]))
        found = asked(on, text, windows, interval, origin)
    assert isinstance(found, pa.Table), found
    assert found.column("s").to_pylist() == sums


def test_no_panes_are_made_where_a_stream_has_their_name() -> None:
    counted = "SELECT _window_end, COUNT(*) AS n FROM {} GROUP BY _window_end"
    names = ["a", "A by Pane"]
    both = " UNION ALL ".join(counted.format(f"`{name}`") for name in names)
    schemas = dict.fromkeys(names, SCHEMA)
    found = [
        translate(Statement.parse(both, names), schemas, HOPPING[0], panes=panes)
        for panes in (True, False)
    ]
    assert isinstance(found[0], str)
    assert found[0] == found[1]


def test_a_task_makes_only_the_relations_that_are_read() -> None:
    def made(text: str) -> set[str]:
        return set(of_task(text, HOPPING[0]).views(text, "a", [("SELECT 1", None)]))

    by_pane = in_duckdb(f"SELECT {KEYS}, COUNT(*) AS n FROM a GROUP BY {KEYS}", HOPPING[0])
    both = f'SELECT * FROM ({by_pane}) UNION ALL SELECT * FROM (SELECT 1 FROM "a")'
    assert made(by_pane) == {panes_of("a"), BOUNDS}
    assert made(both) == {panes_of("a"), BOUNDS, "a"}
    assert made('SELECT 1 FROM (SELECT 1 FROM "a") AS "a"') == {"a"}
