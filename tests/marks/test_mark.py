from __future__ import annotations

import json

from tidegate.marks import FLAT, Cut, FlatLineage, Lineage, Mark, WriterMark, combined
from tidegate.marks.segment import Bound

HALVES: list[tuple[Bound, Bound]] = [(0, "1/2"), ("1/2", 1)]


def test_the_numbers_are_the_smallest_and_the_largest_of_the_generation() -> None:
    mark = combined([WriterMark("a", 7), WriterMark("b", -3), WriterMark("c", 5)], None, FLAT)
    assert (mark.lower, mark.upper, sorted(mark.writers)) == (-3, 7, ["a", "b", "c"])


def test_the_cut_is_the_least_upper_bound_of_the_positions_with_gaps_filled() -> None:
    lineage = Lineage.start(3)
    mark = combined(
        [WriterMark("a", 1, Cut({"0.e0": 4})), WriterMark("b", 1, Cut({"0.e0": 2, "1.e0": 5}))],
        None,
        lineage,
    )
    assert mark.cut == Cut({"0.e0": 4, "1.e0": 5, "2.e0": 0})


def test_the_cut_is_superimposed_on_the_last_one() -> None:
    lineage = Lineage.start(2).scale(["1.e0"], [("1/2", "3/4"), ("3/4", 1)])
    last = Mark(1, 1, Cut({"0.e0": 2, "2.e1": 8, "3.e1": 0}))
    mark = combined([WriterMark("a", 2, Cut({"0.e0": 5, "1.e0": 99}))], last, lineage)
    assert mark.cut == Cut({"0.e0": 5, "2.e1": 8, "3.e1": 0})


def test_gaps_are_filled_before_superimposing_so_that_the_cut_is_whole_either_way() -> None:
    lineage = Lineage.start(3).scale(["0.e0", "1.e0", "2.e0"], HALVES)
    last = Mark(1, 1, Cut({"0.e0": 2, "1.e0": 8, "2.e0": 9}))
    mark = combined([WriterMark("a", 2, Cut({"3.e1": 5}))], last, lineage)
    assert mark.cut == Cut({"3.e1": 5, "4.e1": 0})
    assert mark.cut.is_whole(lineage)


def test_writers_without_any_row_mark_the_beginning() -> None:
    assert combined([WriterMark("a", 5)], None, Lineage.start(2)).cut == Cut({"0.e0": 0, "1.e0": 0})


def test_numbers_do_not_go_back_when_a_fast_writer_was_removed_by_hand() -> None:
    last = Mark(10, 99, Cut())
    mark = combined([WriterMark("slow", 11)], last, FLAT)
    assert (mark.lower, mark.upper) == (11, 99)


def test_where_parting_writers_stood_lies_before_the_cut() -> None:
    mark = combined([WriterMark("a", 5, Cut({"0": 1}))], None, FLAT, parting=Cut({"0": 4}))
    assert mark.cut == Cut({"0": 4})


def test_marks_work_over_partitions_side_by_side() -> None:
    kafka = FlatLineage(["0", "1", "2"])
    mark = combined([WriterMark("a", 5, Cut({"1": 3}))], None, kafka)
    assert mark.cut == Cut({"0": 0, "1": 3, "2": 0})


def test_a_mark_survives_json() -> None:
    mark = Mark(-1, 5, Cut({"0.e0": 3}), frozenset({"b", "a"}))
    assert Mark.from_json(json.loads(json.dumps(mark.to_json()))) == mark
