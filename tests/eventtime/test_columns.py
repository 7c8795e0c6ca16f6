from __future__ import annotations

import numpy as np

from tidegate.eventtime.columns import Column


def test_a_new_column_is_empty() -> None:
    column: Column[int] = Column("q", fill=7)
    assert len(column) == 0
    assert column.view.tolist() == []


def test_growing_fills_and_keeps_what_was_there() -> None:
    column: Column[int] = Column("q", fill=7)
    column.resize(2)
    column[0] = 1
    column.resize(5)
    assert column.view.tolist() == [1, 7, 7, 7, 7]


def test_both_faces_show_the_same_memory() -> None:
    column: Column[float] = Column("d", fill=0.0)
    column.resize(3)
    column[1] = 2.5
    assert column.view[1] == 2.5
    column.view[2] = 4.5
    assert column[2] == 4.5


def test_they_still_do_after_growing_also_within_the_capacity() -> None:
    column: Column[int] = Column("q", fill=0)
    for size in range(1, 40):
        column.resize(size)
        column.view[size - 1] = size
        assert column[size - 1] == size
    assert column.view.tolist() == list(range(1, 40))


def test_what_is_cut_off_is_forgotten() -> None:
    column: Column[int] = Column("q", fill=-1)
    column.resize(4)
    column.view[:] = np.arange(4)
    column.resize(1)
    column.resize(3)
    assert column.view.tolist() == [0, -1, -1]


def test_an_old_view_can_be_held_while_the_column_grows() -> None:
    column: Column[int] = Column("i", fill=0)
    column.resize(2)
    old = column.view
    column.resize(1000)
    column[0] = 5
    assert old.tolist() == [0, 0]


def test_memory_grows_by_half_so_that_little_is_copied_and_little_is_wasted() -> None:
    column: Column[int] = Column("q", fill=0)
    held = set()
    for size in range(1, 1001):
        column.resize(size)
        held.add(column.bytes_held)
        assert 8 * size <= column.bytes_held <= max(8, 12 * size)
    assert len(held) < 25
