from __future__ import annotations

import json

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks import FLAT, Cut, WriterMark, WriterNotes


def at(offset: int) -> Cut:
    return Cut({"0": offset})


@pytest.fixture
def notes() -> WriterNotes:
    return WriterNotes(WriterMark("w"))


def test_without_transactions_a_note_counts_at_once(notes: WriterNotes) -> None:
    assert notes.note(5, at(3), FLAT).mark == WriterMark("w", 5, at(3))


def test_a_note_waits_for_a_transaction_begun_before_it(notes: WriterNotes) -> None:
    waiting = notes.begin("t").note(5, at(3), FLAT)
    assert waiting.mark.time is UNKNOWN
    assert waiting.highest == 5
    assert waiting.commit("t", at(8), FLAT).mark == WriterMark("w", 5, at(8))


def test_an_abort_frees_the_note_as_a_commit_does(notes: WriterNotes) -> None:
    freed = notes.begin("t").note(5, at(3), FLAT).abort("t", at(4), FLAT)
    assert freed.mark == WriterMark("w", 5, at(4))


def test_a_note_does_not_wait_for_a_transaction_begun_after_it(notes: WriterNotes) -> None:
    assert notes.note(5, at(3), FLAT).begin("t").mark.time == 5


def test_a_note_waits_for_all_transactions_begun_before_it_and_for_no_other(
    notes: WriterNotes,
) -> None:
    notes = notes.begin("a").begin("b").note(5, at(1), FLAT).begin("c")
    notes = notes.commit("b", at(2), FLAT)
    assert notes.mark.time is UNKNOWN
    assert notes.commit("a", at(3), FLAT).mark == WriterMark("w", 5, at(3))


def test_each_note_counts_when_its_own_transactions_are_over(notes: WriterNotes) -> None:
    notes = notes.begin("a").note(5, at(1), FLAT).begin("b").note(7, at(1), FLAT)
    notes = notes.commit("a", at(4), FLAT)
    assert (notes.mark.time, notes.mark.position, notes.highest) == (5, at(4), 7)
    assert notes.commit("b", at(6), FLAT).mark == WriterMark("w", 7, at(6))


def test_when_several_notes_come_free_together_the_highest_counts(notes: WriterNotes) -> None:
    notes = notes.begin("a").note(5, at(1), FLAT).begin("b").note(7, at(1), FLAT)
    notes = notes.commit("b", at(4), FLAT)
    assert notes.mark.time is UNKNOWN
    assert notes.commit("a", at(6), FLAT).mark == WriterMark("w", 7, at(6))


def test_a_commit_with_a_time_is_a_note(notes: WriterNotes) -> None:
    assert notes.begin("t").commit("t", at(8), FLAT, time=9).mark == WriterMark("w", 9, at(8))


def test_a_commit_time_waits_for_transactions_begun_before_the_commit(notes: WriterNotes) -> None:
    notes = notes.begin("a").begin("b").commit("a", at(8), FLAT, time=9)
    assert notes.mark.time is UNKNOWN
    assert notes.commit("b", at(10), FLAT).mark == WriterMark("w", 9, at(10))


def test_a_commit_time_below_the_highest_does_not_raise_and_the_highest_stands(
    notes: WriterNotes,
) -> None:
    notes = notes.note(50, at(1), FLAT).begin("t").commit("t", at(8), FLAT, time=9)
    assert notes.mark == WriterMark("w", 50, at(1))


def test_a_commit_time_below_a_note_that_still_waits_leaves_it_waiting(notes: WriterNotes) -> None:
    notes = notes.begin("a").begin("b").note(50, at(1), FLAT)
    notes = notes.commit("a", at(3), FLAT, time=9)
    assert (notes.mark.time, notes.highest) == (UNKNOWN, 50)


def test_a_commit_without_a_time_notes_nothing(notes: WriterNotes) -> None:
    assert notes.begin("t").commit("t", at(8), FLAT).mark == WriterMark("w")


def test_a_note_by_hand_must_not_go_below_one_that_still_waits(notes: WriterNotes) -> None:
    waiting = notes.begin("t").note(5, at(3), FLAT)
    with pytest.raises(TidegateError, match="time cannot go back"):
        waiting.note(4, at(3), FLAT)


def test_ending_what_is_not_open_is_an_error_that_lists_what_is(notes: WriterNotes) -> None:
    notes = notes.begin("a").begin("b").commit("a", at(1), FLAT)
    for end in (notes.commit, notes.abort):
        with pytest.raises(TidegateError, match="transaction is not open") as failure:
            end("a", at(1), FLAT)
        assert "open are: b" in str(failure.value)


def test_beginning_twice_is_an_error(notes: WriterNotes) -> None:
    with pytest.raises(TidegateError, match="transaction is open already"):
        notes.begin("a").begin("a")


def test_notes_survive_json_while_some_wait(notes: WriterNotes) -> None:
    notes = notes.note(1, at(0), FLAT).begin("a").note(5, at(1), FLAT).begin("b")
    notes = notes.note(7, at(1), FLAT)
    assert WriterNotes.from_json(json.loads(json.dumps(notes.to_json()))) == notes
