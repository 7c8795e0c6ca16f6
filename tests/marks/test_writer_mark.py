from __future__ import annotations

import json

import pytest

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks import FLAT, Cut, Lineage, WriterMark, WriterMarks


def refused(writers: WriterMarks, writer: str, time: int, position: dict[str, int]) -> str:
    """The code with which a note is refused; the record must stay as it was."""
    before = writers.get(writer)
    with pytest.raises(TidegateError) as failure:
        writers.note(writer, time, Cut(position), FLAT)
    assert writers.get(writer) == before
    return failure.value.code


def test_pm01_a_writer_lives_says_goodbye_comes_back_and_is_removed_as_it_was_seen() -> None:
    writers = WriterMarks()
    assert writers.get("w1") is None
    writers.note("w1", 0, Cut({"0": 1}), FLAT)
    seen = writers.note("w1", 1, Cut({"0": 2}), FLAT)
    assert seen.alive
    assert not writers.goodbye("w1").alive
    found = writers.note("w1", 2, Cut({"0": 2}), FLAT)
    assert found.alive
    with pytest.raises(TidegateError, match="mark has changed") as failure:
        writers.remove(seen)
    assert failure.value.retryable
    assert writers.get("w1") == found
    writers.remove(found)
    assert writers.get("w1") is None


def test_pm02_the_same_time_may_be_noted_again() -> None:
    writers = WriterMarks()
    first = writers.note("w", 0, Cut({"0": 1}), FLAT)
    assert writers.note("w", 0, Cut({"0": 1}), FLAT) == first


def test_pm03_an_earlier_time_is_refused() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5}), FLAT)
    assert refused(writers, "w", 9, {"0": 6}) == "time-went-back"


def test_pm04_an_earlier_position_on_a_shared_segment_is_refused() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5, "1": 5}), FLAT)
    assert refused(writers, "w", 11, {"0": 6, "1": 4}) == "position-went-back"


def test_pm05_a_note_may_leave_segments_out_and_name_new_ones() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5, "1": 5}), FLAT)
    writers.note("w", 11, Cut({"1": 5}), FLAT)
    writers.note("w", 12, Cut({"2": 0}), FLAT)


def test_segments_left_out_keep_their_position_because_the_promise_covers_them() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5}), FLAT)
    assert writers.note("w", 11, Cut({"1": 2}), FLAT).position == Cut({"0": 5, "1": 2})
    assert refused(writers, "w", 12, {"0": 4}) == "position-went-back"


def test_a_position_on_a_successor_replaces_the_one_on_what_it_follows() -> None:
    lineage = Lineage.start(1).scale(["0.e0"], [(0, "1/2"), ("1/2", 1)])
    mark = WriterMark("w").note(1, Cut({"0.e0": 7}), lineage).note(2, Cut({"2.e1": 1}), lineage)
    assert mark.position == Cut({"2.e1": 1})
    # An old segment named again says nothing new, and does no harm.
    assert mark.note(3, Cut({"0.e0": 9}), lineage).position == Cut({"2.e1": 1})


def test_a_goodbye_does_not_forget_the_time_so_that_coming_back_cannot_go_back() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5}), FLAT)
    writers.goodbye("w")
    assert refused(writers, "w", 9, {"0": 5}) == "time-went-back"


def test_a_goodbye_may_carry_the_rows_after_the_last_note() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5}), FLAT)
    said = writers.goodbye("w", Cut({"0": 8}))
    assert (said.time, said.position) == (10, Cut({"0": 8}))
    with pytest.raises(TidegateError, match="position cannot go back"):
        writers.goodbye("w", Cut({"0": 7}))


def test_a_removed_writer_begins_anew() -> None:
    writers = WriterMarks()
    writers.remove(writers.note("w", 10, Cut({"0": 5}), FLAT))
    assert writers.note("w", 3, Cut({"0": 2}), FLAT).time == 3


def test_a_registered_writer_is_known_before_it_notes() -> None:
    writers = WriterMarks()
    assert writers.register("w") == WriterMark("w", UNKNOWN, Cut(), alive=True, sink=False)
    assert len(writers) == 1
    assert writers.note("w", -5, Cut(), FLAT).time == -5


def test_registering_again_keeps_what_was_noted() -> None:
    writers = WriterMarks()
    writers.note("w", 10, Cut({"0": 5}), FLAT)
    writers.goodbye("w")
    assert writers.register("w") == WriterMark("w", 10, Cut({"0": 5}))


def test_a_sink_stays_a_sink() -> None:
    writers = WriterMarks()
    writers.register("job", sink=True)
    assert writers.register("job").sink
    assert writers.note("job", 1, Cut(), FLAT).sink


def test_a_goodbye_from_a_writer_nobody_knows_is_an_error() -> None:
    writers = WriterMarks([WriterMark("other")])
    with pytest.raises(TidegateError, match="unknown writer"):
        writers.goodbye("w")


def test_removing_a_writer_that_is_gone_is_a_conflict() -> None:
    with pytest.raises(TidegateError, match="mark has changed") as failure:
        WriterMarks().remove(WriterMark("w", 3))
    assert "now is gone" in str(failure.value)


def test_a_time_out_of_range_is_refused() -> None:
    assert refused(WriterMarks(), "w", 1 << 62, {}) == "instant-out-of-range"


@pytest.mark.parametrize(
    "mark",
    [
        WriterMark("w"),
        WriterMark("w", -7, Cut({"0.e0": 3}), alive=False),
        WriterMark("job", 0, Cut(), sink=True),
    ],
)
def test_a_writer_mark_survives_json(mark: WriterMark) -> None:
    assert WriterMark.from_json(json.loads(json.dumps(mark.to_json()))) == mark
