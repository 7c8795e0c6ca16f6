from __future__ import annotations

import json

import pytest

from tidegate.errors import TidegateError
from tidegate.marks import FLAT, Cut, FlatLineage, Lineage, join_all
from tidegate.marks.segment import Bound

HALVES: list[tuple[Bound, Bound]] = [(0, "1/2"), ("1/2", 1)]
THIRDS_TO_HALVES = Lineage.start(3).scale(["0.e0", "1.e0", "2.e0"], HALVES)


def test_a_cut_is_a_value() -> None:
    cut = Cut({"0": 1, "1": 2})
    assert cut == Cut({"1": 2, "0": 1})
    assert hash(cut) == hash(Cut({"1": 2, "0": 1}))
    assert cut != Cut({"0": 1})
    assert {cut: "here"}[Cut([("0", 1), ("1", 2)])] == "here"


def test_a_cut_does_not_follow_the_mapping_it_was_made_from() -> None:
    offsets = {"0": 1}
    cut = Cut(offsets)
    offsets["0"] = 9
    assert cut["0"] == 1


def test_an_offset_below_zero_is_an_error() -> None:
    with pytest.raises(TidegateError, match="offset is negative"):
        Cut({"0": 3, "1": -1})


def test_side_by_side_the_join_takes_the_larger_offset_and_the_meet_the_smaller() -> None:
    left, right = Cut({"0": 5, "1": 2}), Cut({"0": 3, "1": 4, "2": 1})
    assert left.join(right, FLAT) == Cut({"0": 5, "1": 4, "2": 1})
    assert left.meet(right, FLAT) == Cut({"0": 3, "1": 2})


def test_a_partition_left_out_lies_before_its_own_beginning() -> None:
    assert Cut({"0": 1}).less_than(Cut({"0": 1, "1": 0}), FLAT)
    assert not Cut({"0": 1, "1": 0}).less_equal(Cut({"0": 1}), FLAT)


def test_cuts_side_by_side_are_only_partially_ordered() -> None:
    left, right = Cut({"0": 1, "1": 0}), Cut({"0": 0, "1": 1})
    assert not left.less_equal(right, FLAT)
    assert not right.less_equal(left, FLAT)


def test_equal_cuts_are_less_equal_and_not_less() -> None:
    cut = Cut({"0.e0": 1, "1.e0": 2})
    assert cut.less_equal(cut, THIRDS_TO_HALVES)
    assert not cut.less_than(cut, THIRDS_TO_HALVES)


def test_a_successor_at_its_beginning_lies_after_any_offset_of_its_predecessors() -> None:
    before = Cut({"0.e0": 900, "1.e0": 900, "2.e0": 900})
    after = Cut({"3.e1": 0, "4.e1": 0})
    assert before.less_than(after, THIRDS_TO_HALVES)
    assert before.join(after, THIRDS_TO_HALVES) == after
    assert before.meet(after, THIRDS_TO_HALVES) == before


def test_in_the_join_successors_replace_predecessors_only_where_they_follow_them() -> None:
    early, halfway = Cut({"0.e0": 300, "1.e0": 400, "2.e0": 400}), Cut({"3.e1": 100})
    assert early.join(halfway, THIRDS_TO_HALVES) == Cut({"3.e1": 100, "2.e0": 400})


def test_a_successor_replaces_also_what_was_merged_before_it_was_divided_again() -> None:
    lineage = Lineage.start(2).scale(["0.e0", "1.e0"], [(0, 1)]).scale(["2.e1"], HALVES)
    # Whoever is in 3.e2 has read 2.e1, and so all of 1.e0, although they share no key.
    assert Cut({"1.e0": 7}).join(Cut({"3.e2": 1}), lineage) == Cut({"3.e2": 1})


def test_joining_many_is_joining_one_after_another() -> None:
    cuts = [Cut({"0.e0": 1, "2.e0": 7}), Cut({"3.e1": 2}), Cut({"2.e0": 9}), Cut({"1.e0": 5})]
    one_by_one = Cut()
    for cut in cuts:
        one_by_one = one_by_one.join(cut, THIRDS_TO_HALVES)
    assert join_all(cuts, THIRDS_TO_HALVES) == one_by_one == Cut({"3.e1": 2, "2.e0": 9})
    assert join_all([], FLAT) == Cut()


def test_partial_cuts_in_different_successors_have_no_meet() -> None:
    lineage = Lineage.start(1).scale(["0.e0"], HALVES)
    with pytest.raises(TidegateError) as failure:
        Cut({"1.e1": 3}).meet(Cut({"2.e1": 3}), lineage)
    assert failure.value.code == "cuts-do-not-meet"
    assert failure.value.fields == {"segments": ["0.e0"]}


def test_partial_cuts_meet_where_the_meet_can_be_told() -> None:
    assert Cut({"3.e1": 5, "2.e0": 8}).meet(Cut({"3.e1": 2, "4.e1": 1}), THIRDS_TO_HALVES) == Cut(
        {"3.e1": 2, "2.e0": 8}
    )
    assert Cut().meet(Cut({"3.e1": 2}), THIRDS_TO_HALVES) == Cut()


def test_a_cut_with_a_segment_and_its_successor_is_reduced_to_the_successor() -> None:
    both = Cut({"0.e0": 3, "1.e0": 1, "3.e1": 2})
    assert both.reduced(THIRDS_TO_HALVES) == Cut({"3.e1": 2})


def test_gaps_are_completed_at_offset_zero() -> None:
    assert Cut({"3.e1": 100}).completed(THIRDS_TO_HALVES) == Cut({"3.e1": 100, "4.e1": 0})
    assert Cut({"1.e0": 9}).completed(THIRDS_TO_HALVES) == Cut({"0.e0": 0, "1.e0": 9, "2.e0": 0})
    assert Cut({"1": 4}).completed(FlatLineage(["0", "1"])) == Cut({"0": 0, "1": 4})


def test_a_cut_over_an_unknown_segment_is_an_error() -> None:
    with pytest.raises(TidegateError, match="unknown segment"):
        Cut({"9.e9": 1}).join(Cut({"0.e0": 1}), THIRDS_TO_HALVES)


def test_a_cut_survives_json() -> None:
    cut = Cut({"0.e0": 3, "1.e0": 1 << 60})
    assert Cut.from_json(json.loads(json.dumps(cut.to_json()))) == cut
