from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tidegate.errors import TidegateError
from tidegate.marks import FLAT, FlatLineage, Lineage, Segment, SegmentId
from tidegate.marks.segment import Bound

THIRDS = [
    (0.0, 0.3333333333333333),
    (0.3333333333333333, 0.6666666666666666),
    (0.6666666666666666, 1.0),
]
HALVES: list[tuple[Bound, Bound]] = [(0, "1/2"), ("1/2", 1)]


def merged_and_split() -> Lineage:
    """Two halves, merged into one segment, divided again."""
    return Lineage.start(2).scale(["0.e0", "1.e0"], [(0, 1)]).scale(["2.e1"], HALVES)


def code_of(failure: pytest.ExceptionInfo[TidegateError]) -> str:
    return failure.value.code


def test_a_stream_starts_with_equal_ranges_that_meet_exactly() -> None:
    segments = Lineage.start(3).open_in(0)
    assert [s.name for s in segments] == ["0.e0", "1.e0", "2.e0"]
    assert [s.high for s in segments] == [Fraction(1, 3), Fraction(2, 3), Fraction(1)]


def test_bounds_are_taken_as_the_exact_numbers_they_are() -> None:
    third = Lineage.start(THIRDS).segment("0.e0").high
    assert third == Fraction(0.3333333333333333)
    assert third != Fraction(1, 3)


def test_names_are_ordered_by_epoch_and_then_by_number() -> None:
    names = ["10.e1", "2.e0", "9.e1", "10.e0"]
    ordered = sorted(SegmentId.parse(name) for name in names)
    assert [str(one) for one in ordered] == ["2.e0", "10.e0", "9.e1", "10.e1"]


def test_scaling_numbers_the_new_segments_on_in_key_order() -> None:
    lineage = Lineage.start(THIRDS).scale(["0.e0", "1.e0", "2.e0"], reversed(HALVES))
    assert [(s.name, str(s.low)) for s in lineage.open_in(1)] == [("3.e1", "0"), ("4.e1", "1/2")]
    assert lineage.epoch == 1


def test_segments_that_are_not_scaled_stay_open_in_the_next_epoch() -> None:
    lineage = Lineage.start(2).scale(["0.e0"], [(0, "1/4"), ("1/4", "1/2")])
    assert [s.name for s in lineage.open_in(0)] == ["0.e0", "1.e0"]
    assert [s.name for s in lineage.open_in(1)] == ["2.e1", "3.e1", "1.e0"]
    assert not lineage.segment("0.e0").is_open


def test_predecessors_and_successors_are_those_that_share_a_key() -> None:
    lineage = Lineage.start(THIRDS).scale(["0.e0", "1.e0", "2.e0"], HALVES)
    assert lineage.successors_of("0.e0") == ("3.e1",)
    assert lineage.successors_of("1.e0") == ("3.e1", "4.e1")
    assert lineage.predecessors_of("3.e1") == ("0.e0", "1.e0")
    assert lineage.predecessors_of("0.e0") == lineage.successors_of("4.e1") == ()


def test_an_ancestor_is_whatever_must_be_read_first_also_beside_its_own_keys() -> None:
    lineage = merged_and_split()
    # 4.e2 is read after 2.e1 has ended, and that after both halves have.
    assert lineage.ancestors_of(["4.e2"]) == {"0.e0", "1.e0", "2.e1"}
    assert lineage.is_ancestor("0.e0", "4.e2")
    assert not lineage.is_ancestor("4.e2", "0.e0")
    assert not lineage.is_ancestor("4.e2", "4.e2")
    assert lineage.followed(["0.e0", "3.e2"], by=["4.e2"]) == {"0.e0"}


def test_segments_are_whole_when_they_own_every_key_once() -> None:
    lineage = Lineage.start(THIRDS).scale(["0.e0", "1.e0", "2.e0"], HALVES)
    assert lineage.is_whole(["2.e0", "0.e0", "1.e0"])
    assert lineage.is_whole(["3.e1", "4.e1"])
    assert not lineage.is_whole([])
    assert not lineage.is_whole(["3.e1"])
    assert not lineage.is_whole(["4.e1"])
    assert not lineage.is_whole(["3.e1", "2.e0"])
    assert not lineage.is_whole(["3.e1", "1.e0", "2.e0"])


def test_segments_are_not_whole_when_one_follows_another_beside_its_keys() -> None:
    # By their keys 3.e2 and 1.e0 are neighbours, but no reader is ever at both.
    assert not merged_and_split().is_whole(["3.e2", "1.e0"])


def test_gaps_are_filled_from_the_highest_epoch_until_the_key_space_is_whole() -> None:
    lineage = Lineage.start(THIRDS).scale(["0.e0", "1.e0", "2.e0"], HALVES)
    assert lineage.complete(["1.e0"]) == {"0.e0", "1.e0", "2.e0"}
    assert lineage.complete(["3.e1"]) == {"3.e1", "4.e1"}
    assert lineage.complete(["3.e1", "2.e0"]) == {"3.e1", "4.e1"}
    assert lineage.complete([]) == {"0.e0", "1.e0", "2.e0"}


def test_a_filled_gap_opens_the_next_one_where_ranges_overlap_like_stairs() -> None:
    sixths = [(f"{i}/6", f"{i + 1}/6") for i in range(6)]
    shifted: list[tuple[Bound, Bound]] = [
        (0, "1/12"),
        *((f"{2 * i + 1}/12", f"{2 * i + 3}/12") for i in range(5)),
        ("11/12", 1),
    ]
    lineage = Lineage.start(sixths).scale([f"{i}.e0" for i in range(6)], shifted)
    # Only the last new segment is there, and no old one has a gap beside it except the last.
    assert lineage.complete(["0.e0", "1.e0", "2.e0", "3.e0", "4.e0", "12.e1"]) == {
        f"{6 + i}.e1" for i in range(7)
    }


def test_filling_leaves_independent_parts_as_they_are() -> None:
    lineage = (
        Lineage.start(2)
        .scale(["0.e0"], [(0, "1/4"), ("1/4", "1/2")])
        .scale(["1.e0"], [("1/2", "3/4"), ("3/4", 1)])
    )
    assert lineage.complete(["0.e0", "4.e2"]) == {"0.e0", "4.e2", "5.e2"}


def test_the_frontier_passes_segments_together_that_share_successors() -> None:
    lineage = Lineage.start(THIRDS).scale(["0.e0", "1.e0", "2.e0"], HALVES)
    assert lineage.frontier({"0.e0", "1.e0"}.__contains__) == ["0.e0", "1.e0", "2.e0"]
    assert lineage.frontier({"0.e0", "1.e0", "2.e0"}.__contains__) == ["3.e1", "4.e1"]


def test_the_frontier_passes_what_is_independent_each_for_itself() -> None:
    lineage = Lineage.start(2).scale(["0.e0", "1.e0"], [(0, "1/4"), ("1/4", "1/2"), ("1/2", 1)])
    assert lineage.frontier({"0.e0"}.__contains__) == ["2.e1", "3.e1", "1.e0"]


@pytest.mark.parametrize(
    "opened",
    [
        [],
        [(0, "1/4")],
        [(0, "1/2"), ("1/2", "3/4")],
        [(0, "1/4"), ("3/8", "1/2")],
    ],
)
def test_opening_other_keys_than_were_sealed_is_an_error(opened: list[tuple[str, str]]) -> None:
    with pytest.raises(TidegateError) as failure:
        Lineage.start(2).scale(["0.e0"], opened)
    assert code_of(failure) == "ranges-do-not-cover"


def test_a_scale_that_changes_nothing_is_an_error() -> None:
    with pytest.raises(TidegateError) as failure:
        Lineage.start(2).scale([], [])
    assert code_of(failure) == "ranges-do-not-cover"


def test_ranges_that_overlap_are_an_error() -> None:
    with pytest.raises(TidegateError) as failure:
        Lineage.start(1).scale(["0.e0"], [(0, "2/3"), ("1/3", 1)])
    assert code_of(failure) == "key-ranges-overlap"


@pytest.mark.parametrize("ranges", [0, [], [(0, "1/2")], [("1/2", 1)], [(0, "1/3"), ("1/2", 1)]])
def test_a_stream_that_does_not_own_every_key_is_an_error(
    ranges: int | list[tuple[str, str]],
) -> None:
    with pytest.raises(TidegateError) as failure:
        Lineage.start(ranges)
    assert code_of(failure) == "ranges-do-not-cover"


@pytest.mark.parametrize(
    ("low", "high"),
    [("1/2", "1/2"), (-1, 1), (0, 2), ("x", 1), (float("nan"), 1), (0, float("inf"))],
)
def test_what_is_not_a_key_range_is_an_error(low: float | str, high: float | str) -> None:
    with pytest.raises(TidegateError) as failure:
        Lineage.start([(low, high)])
    assert code_of(failure) == "not-a-key-range"


def test_sealing_a_sealed_segment_is_an_error_that_lists_the_open_ones() -> None:
    lineage = Lineage.start(1).scale(["0.e0"], HALVES)
    with pytest.raises(TidegateError, match="segment is not open") as failure:
        lineage.scale(["0.e0"], HALVES)
    assert "open are: 1.e1, 2.e1" in str(failure.value)


def test_an_unknown_segment_is_an_error_wherever_it_is_named() -> None:
    lineage = Lineage.start(1)
    for ask in (
        lambda: lineage.scale(["7.e0"], HALVES),
        lambda: lineage.successors_of("7.e0"),
        lambda: lineage.predecessors_of("7.e0"),
        lambda: lineage.is_whole(["7.e0"]),
        lambda: lineage.complete(["7.e0"]),
        lambda: lineage.ancestors_of(["7.e0"]),
        lambda: lineage.followed(["7.e0"], by=["0.e0"]),
        lambda: lineage.followed(["0.e0"], by=["7.e0"]),
    ):
        with pytest.raises(TidegateError) as failure:
            ask()
        assert code_of(failure) == "unknown-segment"


@pytest.mark.parametrize("name", ["3", "e1", "3.1", "3.e", "-1.e0", " 3.e1"])
def test_what_is_not_a_segment_name_is_an_error(name: str) -> None:
    with pytest.raises(TidegateError) as failure:
        SegmentId.parse(name)
    assert code_of(failure) == "segment-name-not-parsed"


def test_a_lineage_survives_json() -> None:
    lineage = merged_and_split()
    assert Lineage.from_json(json.loads(json.dumps(lineage.to_json()))) == lineage


def test_a_lineage_whose_rows_do_not_fit_together_is_not_accepted() -> None:
    alone = Segment(SegmentId(0, 0), Fraction(0), Fraction(1), sealed_in=1)
    with pytest.raises(TidegateError) as failure:
        Lineage([alone])
    assert code_of(failure) == "ranges-do-not-cover"


def test_in_a_flat_lineage_nothing_follows_anything() -> None:
    kafka = FlatLineage(["0", "1"])
    assert kafka.followed(["0", "1"], by=["0", "1"]) == kafka.ancestors_of(["0"]) == set()
    assert kafka.is_whole(["0", "1", "2"])
    assert not kafka.is_whole(["0"])
    assert kafka.complete(["1"]) == {"0", "1"}
    assert FLAT.is_whole([])


def test_ten_thousand_segments_scaled_at_once_are_no_burden() -> None:
    count = 10_000
    lineage = Lineage.start(count)
    halves = [(f"{i}/{count // 2}", f"{i + 1}/{count // 2}") for i in range(count // 2)]
    scaled = lineage.scale((s.name for s in lineage.open_in(0)), halves)
    last = f"{count + count // 2 - 1}.e1"
    assert scaled.predecessors_of(last) == (f"{count - 2}.e0", f"{count - 1}.e0")
    partial = {f"{i}.e0" for i in range(count - 2)} | {last}
    assert scaled.is_whole(partial)
    filled = scaled.complete(partial - {"0.e0"})
    assert filled == partial - {"0.e0", "1.e0"} | {f"{count}.e1"}
