from __future__ import annotations

import pytest

from tidegate.marks import FLAT, Cut, Lineage, Mark, TimeWindow, side_of, time_window

# Segments 0 and 1 are halves; 2 follows 0, and 3 follows 1.
LINEAGE = Lineage.start(2).scale(["0.e0"], [(0, "1/2")]).scale(["1.e0"], [("1/2", 1)])
NAMES = ["0.e0", "1.e0", "2.e1", "3.e2"]


def at(offsets: dict[int, int]) -> Cut:
    return Cut({NAMES[number]: offset for number, offset in offsets.items()})


@pytest.mark.parametrize(
    ("position", "side"),
    [
        ({1: 1, 2: 2}, 1),
        ({0: 0, 1: 1}, -1),
        ({1: 0, 2: 1}, -1),
        ({1: 1, 2: 1}, -1),
        ({2: 2, 3: 3}, 1),
        ({1: 2, 2: 3}, 1),
        ({1: 1, 2: 3}, 1),
        ({0: 0, 3: 3}, 0),
        ({1: 0, 2: 3}, 0),
        ({1: 3, 2: 0}, 0),
    ],
)
def test_pr01_a_position_is_past_before_or_astride_a_cut(
    position: dict[int, int], side: int
) -> None:
    assert side_of(at(position), at({1: 1, 2: 2}), LINEAGE) == side


def test_a_reader_is_compared_on_the_segments_it_owns() -> None:
    assert side_of(at({1: 5}), at({1: 1, 2: 2}), LINEAGE) == 1
    assert side_of(at({0: 5}), at({1: 1, 2: 2}), LINEAGE) == -1


def test_the_window_follows_a_reader_through_marks_and_successors() -> None:
    cuts = [
        {0: 0, 1: 0},
        {0: 2, 1: 0},
        {0: 2, 1: 2},
        {2: 0, 1: 2},
        {2: 4, 1: 2},
        {2: 4, 1: 4},
        {2: 4, 3: 0},
        {2: 6, 3: 4},
    ]
    marks = [Mark(10 * n, 10 * n + 9, at(cut)) for n, cut in enumerate(cuts, start=1)]
    walk: list[tuple[dict[int, int], int | None, int | None]] = [
        ({0: 1, 1: 0}, 10, 29),
        ({0: 3, 1: 0}, 20, 49),
        ({0: 6, 1: 1}, 20, 49),
        ({0: 6, 1: 3}, 30, 69),
        ({2: 0, 1: 3}, 40, 69),
        ({2: 4, 1: 3}, 50, 69),
        ({2: 4, 1: 5}, 60, 79),
        ({2: 4, 3: 1}, 70, 89),
        ({2: 5, 3: 1}, 70, 89),
        # Astride the last mark: what was noted since then is not in any mark yet.
        ({2: 5, 3: 5}, 70, None),
        ({2: 6, 3: 5}, 80, None),
    ]
    for position, lower, upper in walk:
        assert time_window(at(position), marks, LINEAGE) == TimeWindow(lower, upper), position


def test_before_the_first_mark_there_is_no_lower_and_after_the_last_no_upper() -> None:
    marks = [Mark(10, 19, Cut({"0": 5}))]
    assert time_window(Cut({"0": 4}), marks, FLAT) == TimeWindow(None, 19)
    assert time_window(Cut({"0": 5}), marks, FLAT) == TimeWindow(10, None)


def test_without_marks_or_without_segments_there_is_no_window() -> None:
    assert time_window(Cut({"0": 4}), [], FLAT) == TimeWindow(None, None)
    assert time_window(Cut(), [Mark(10, 19, Cut({"0": 5}))], FLAT) == TimeWindow(None, None)
