from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from tidegate import errors
from tidegate.eventtime.alignment import AlignmentGroup, AlignmentMode, Verdict
from tidegate.eventtime.watermark import UNKNOWN

MINUTE = 60_000_000
CONTINUE, PAUSE, WARN = Verdict.CONTINUE, Verdict.PAUSE, Verdict.WARN


def group_of(*members: str, mode: AlignmentMode = AlignmentMode.PAUSE, **at: int) -> AlignmentGroup:
    """A group with a drift of a minute: members that said nothing yet, and others at a time."""
    group = AlignmentGroup(timedelta(minutes=1), mode)
    for member in (*members, *at):
        group.register(member)
    for member, watermark in at.items():
        group.report(member, watermark)
    return group


def test_a_member_alone_is_never_too_far_ahead() -> None:
    assert group_of("a").report("a", 100 * MINUTE) is CONTINUE


def test_a_member_exactly_at_the_drift_goes_on_and_one_past_it_pauses() -> None:
    group = group_of(a=0, b=0)
    assert group.report("a", MINUTE) is CONTINUE
    assert group.report("a", MINUTE + 1) is PAUSE


def test_a_group_that_only_warns_warns() -> None:
    group = group_of(mode=AlignmentMode.WARN, a=0, b=0)
    assert group.report("a", MINUTE + 1) is WARN
    assert group.should_resume("a"), "who is only warned of never stopped"


def test_a_paused_member_resumes_when_the_slowest_has_come_near() -> None:
    group = group_of(a=0, b=0)
    assert group.report("a", 2 * MINUTE) is PAUSE
    assert not group.should_resume("a")
    group.report("b", MINUTE - 1)
    assert not group.should_resume("a")
    group.report("b", MINUTE)
    assert group.should_resume("a")


def test_a_member_does_not_count_before_its_first_report() -> None:
    group = group_of("b", a=0)
    assert group.report("a", 5 * MINUTE) is CONTINUE
    assert group.slowest() == 5 * MINUTE
    assert group.should_resume("b")


def test_an_idle_member_frees_the_group_and_counts_again_when_it_reports() -> None:
    group = group_of(a=0, b=0)
    assert group.report("a", 2 * MINUTE) is PAUSE
    group.mark_idle("b")
    assert group.should_resume("a")
    group.report("b", 1)
    assert not group.should_resume("a")


def test_a_removed_member_frees_the_group() -> None:
    group = group_of(a=0, b=0)
    group.report("a", 2 * MINUTE)
    group.remove("b")
    assert group.should_resume("a")
    with pytest.raises(errors.InputError, match="unknown member"):
        group.report("b", 1)


def test_a_member_registered_again_keeps_its_place_unless_it_was_removed() -> None:
    group = group_of(a=7)
    group.register("a")
    assert group.slowest() == 7
    group.remove("a")
    group.register("a")
    assert group.slowest() is UNKNOWN


def test_the_horizon_is_the_slowest_plus_the_drift_and_may_come_back() -> None:
    group = group_of("c", a=MINUTE, b=2 * MINUTE)
    assert group.slowest() == MINUTE
    assert group.horizon() == 2 * MINUTE
    group.report("c", 0)
    assert group.horizon() == MINUTE


def test_while_nobody_counts_there_is_no_horizon() -> None:
    group = group_of("a", "b")
    assert group.slowest() is UNKNOWN
    assert group.horizon() is UNKNOWN
    assert AlignmentGroup(timedelta(minutes=1)).horizon() is UNKNOWN


def test_a_report_behind_an_earlier_one_does_not_take_it_back() -> None:
    group = group_of(a=0, b=0)
    assert group.report("a", 2 * MINUTE) is PAUSE
    assert group.report("a", 0) is PAUSE
    assert not group.should_resume("a")


def test_members_may_be_anything_that_can_be_named() -> None:
    group = AlignmentGroup(timedelta(0))
    group.register(("orders", 3))
    assert group.report(("orders", 3), 5) is CONTINUE


def test_a_group_over_columns_counts_only_those_that_count() -> None:
    positions, counts = np.array([5, 1, 9]), np.array([True, False, True])
    group = AlignmentGroup.over(timedelta(microseconds=2), positions, counts)
    assert group.slowest() == 5
    assert group.horizon() == 7
    assert [group.should_resume(member) for member in range(3)] == [True, True, False]
    assert group.report(1, 8) is PAUSE


def test_an_unknown_member_is_an_error_on_every_call() -> None:
    group = group_of("a")
    for act in (group.mark_idle, group.remove, group.should_resume):
        with pytest.raises(errors.InputError, match="unknown member") as caught:
            act("z")
        assert "registered are: a" in caught.value.detail
    with pytest.raises(errors.InputError, match="unknown member"):
        group.report("z", 1)
