from __future__ import annotations

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks import FLAT, Cut, Lineage, Mark, TimeIndex, time_at


def test_a_time_is_found_at_the_start_of_the_span_where_the_running_maximum_reaches_it() -> None:
    index = TimeIndex()
    for start, latest in [(0, 5), (10, 3), (20, 8), (30, 8), (40, 20)]:
        index.append("0", start, start + 10, latest=latest)
    asked = {t: index.cut_at(t)["0"] for t in (-9, 5, 6, 8, 9, 20, 21)}
    assert asked == {-9: 0, 5: 0, 6: 20, 8: 20, 9: 40, 20: 40, 21: 50}


def test_a_span_without_any_good_row_is_never_the_answer() -> None:
    index = TimeIndex()
    index.append("0", 0, 10, latest=UNKNOWN)
    index.append("0", 10, 20, latest=5)
    assert index.cut_at(0) == Cut({"0": 10})


def test_each_partition_has_its_own_answer_also_an_empty_one() -> None:
    index = TimeIndex()
    index.append("0", 0, 10, latest=5)
    index.append("1", 7, 9, latest=1)
    index.add("2", start=3)
    assert index.cut_at(4) == Cut({"0": 0, "1": 9, "2": 3})


def test_spans_out_of_order_are_an_error() -> None:
    index = TimeIndex()
    index.append("0", 0, 10, latest=5)
    for start, end in [(9, 12), (12, 11)]:
        with pytest.raises(TidegateError, match="span is out of order"):
            index.append("0", start, end, latest=6)


def test_with_a_lineage_successors_are_entered_when_all_that_share_them_end_before_the_time() -> (
    None
):
    lineage = Lineage.start(3).scale(["0.e0", "1.e0", "2.e0"], [(0, "1/2"), ("1/2", 1)])
    index = TimeIndex()
    index.append("0.e0", 0, 10, latest=5)
    index.append("1.e0", 0, 20, latest=8)
    index.append("3.e1", 0, 5, latest=30)
    # 2.e0 has no rows: it does not stand in the way.
    assert index.cut_at(8, lineage) == Cut({"0.e0": 10, "1.e0": 0, "2.e0": 0})
    assert index.cut_at(9, lineage) == Cut({"3.e1": 0, "4.e1": 0})
    assert index.cut_at(31, lineage) == Cut({"3.e1": 5, "4.e1": 0})


def test_the_time_at_a_cut_is_the_lower_number_of_the_last_mark_it_has_passed() -> None:
    marks = [Mark(10, 19, Cut({"0": 1, "1": 1})), Mark(20, 29, Cut({"0": 3, "1": 3}))]
    assert time_at(Cut({"0": 0, "1": 9}), marks, FLAT) is UNKNOWN
    assert time_at(Cut({"0": 1, "1": 1}), marks, FLAT) == 10
    assert time_at(Cut({"0": 3, "1": 2}), marks, FLAT) == 10
    assert time_at(Cut({"0": 3, "1": 3}), marks, FLAT) == 20
    assert time_at(Cut({"0": 9, "1": 9}), [], FLAT) is UNKNOWN


def test_a_cut_that_leaves_a_partition_out_has_not_passed_it() -> None:
    marks = [Mark(10, 19, Cut({"0": 1, "1": 0}))]
    assert time_at(Cut({"0": 9}), marks, FLAT) is UNKNOWN


def test_a_successor_has_passed_every_mark_on_what_it_follows() -> None:
    lineage = Lineage.start(1).scale(["0.e0"], [(0, "1/2"), ("1/2", 1)])
    marks = [Mark(10, 19, Cut({"0.e0": 500}))]
    assert time_at(Cut({"1.e1": 0, "2.e1": 0}), marks, lineage) == 10
