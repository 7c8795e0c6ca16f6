"""Where a row lies and when it came, for queries of either kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tests.spark.jobs.world import S, World, begun, plain

from tidegate.errors import TidegateError
from tidegate.spark.sinks import MemorySink, StreamSink
from tidegate.spark.slices import ordered

SYSTEM = ("_offset", "_partition", "_timestamp")


def _placed(orders: DataFrame) -> DataFrame:
    named = [F.col(name).alias(f"row{name}") for name in SYSTEM]
    return orders.select("_window_start", "_window_end", "k", "v", *named)


def test_functions_and_texts_have_the_system_columns_that_are_asked_for(world: World) -> None:
    world.stream(segments=2)
    for n in range(3):
        world.append([(world.key(m % 2), 100 * n + m, 10 * n + m) for m in range(10)])
    there = world.read("orders", *SYSTEM)
    jobs = [
        world.windows(size=10, slide=5, name="function", query=_placed, system=SYSTEM,
                      sink=StreamSink("function"), cores=3),
        *(
            ordered(world.spark, "orders", name=kernel, store=world.store, kernel=kernel,
                    sink=MemorySink(kernel), system=SYSTEM)
            for kernel in ("spark", "duckdb")
        ),
    ]  # fmt: skip
    for job in jobs:
        begun(job).stop()

    def placed(row: dict[str, Any], prefix: str) -> tuple[Any, ...]:
        return (row["k"], row["v"], *(row[f"{prefix}{name[1:]}"] for name in SYSTEM))

    expected = [placed(row, "_") for row in there]
    top = min(max(r["at"] for r in there if r["_partition"] == p) for p in ("0.e0", "1.e0"))
    for name in ("spark", "duckdb"):
        times = sorted((row["at"], placed(row, "_")) for row in there if row["at"] < top)
        # A stream has no columns of these names; what keeps names shows that a * means them now.
        given = [plain(row) for row in MemorySink(name).table().to_pylist()]
        assert [placed(row, "_") for row in given] == [row for _, row in times]
    windows = Counter(
        (start, row)
        for row, r in zip(expected, there, strict=True)
        for start in range(-5 * S, 30 * S, 5 * S)
        if start <= r["at"] < start + 10 * S <= top
    )
    found = Counter((r["window_start"], placed(r, "row_")) for r in world.read("function"))
    assert found == windows

    with pytest.raises(TidegateError) as refused:
        world.windows(size=10, query=_placed, system=["_file"])
    assert refused.value.code == "unknown-system-column"


def test_both_kernels_know_the_places_of_rows_in_whole_files_and_in_parts(world: World) -> None:
    """Many files to a task, some of them wanted in part: by time, and from the middle on.

    Eleven partitions, because the name of the tenth is less than that of the second.
    """
    world.stream(segments=11)
    for n in range(4):
        world.append(
            [(world.key(m), 100 * n + m + at, 8 * n + at) for at in (1, 5, 9) for m in range(11)]
        )
    there = world.read("orders", *SYSTEM)
    world.append([(world.key(m), m, 60) for m in range(11)])
    start = {row["_partition"]: 1 for row in there}
    query = (
        "SELECT _window_start, _window_end, v % 3 AS k, count(*) AS n, sum(_offset) AS places,"
        " max(_partition) AS last, min(_partition) AS first, count(DISTINCT _partition) AS among,"
        " count_if(_partition > '10.e0' AND _partition <> 'none') AS some, max(_timestamp) AS came,"
        " max(CASE WHEN _partition IN ('3.e0', 'x') THEN 'three' ELSE _partition END) AS said"
        " FROM orders GROUP BY _window_start, _window_end, v % 3"
    )
    truth: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in there:
        if row["_offset"] >= 1:
            truth.setdefault((row["at"] // (10 * S), row["v"] % 3), []).append(row)
    for kernel in ("spark", "duckdb"):
        job = world.windows(
            size=10, query=query, name=kernel, kernel=kernel, cores=2, sink=StreamSink(kernel),
            start={"orders": start}, watermark="events",
        )  # fmt: skip
        begun(job).stop()
        found = {(r["window_start"] // (10 * S), r["k"]): r for r in world.read(kernel)}
        assert found.keys() == truth.keys()
        for place, rows in truth.items():
            names = [row["_partition"] for row in rows]
            said = ["three" if name == "3.e0" else name for name in names]
            assert {name: found[place][name] for name in FOUND} == {
                "n": len(rows),
                "places": sum(row["_offset"] for row in rows),
                "last": max(names),
                "first": min(names),
                "among": len(set(names)),
                "some": sum(name > "10.e0" for name in names),
                "came": max(row["_timestamp"] for row in rows),
                "said": max(said),
            }


FOUND = ("n", "places", "last", "first", "among", "some", "came", "said")
