"""A growing column of numbers: fast for one value, and as an array for many.

The same memory has two faces. Reading or writing one number goes through the array of the standard
library, which is several times faster at that than numpy; whole batches go through the numpy view.

>>> column = Column("q", fill=0)
>>> column.resize(3)
>>> column[1] = 7
>>> column.view.tolist()
[0, 7, 0]
"""

from __future__ import annotations

from array import array
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", int, float)


class Column(Generic[Number]):
    """Numbers of one type, by position; grows its memory by half when it is full."""

    __slots__ = ("_cells", "_fill", "_size", "_typecode", "view")

    def __init__(self, typecode: str, fill: Number) -> None:
        self._typecode = typecode
        self._fill: Number = fill
        self._size = 0
        self._cells: array[Any] = array(typecode)
        self.view: npt.NDArray[Any] = np.frombuffer(array(typecode, [fill]), dtype=typecode)[:0]

    def resize(self, size: int) -> None:
        """Grow with the fill value, or shrink; what is cut off is forgotten."""
        if size > len(self._cells):
            # A new array: the old one's memory is still looked at by its view.
            capacity = max(size, len(self._cells) * 3 // 2)
            cells = array(self._typecode, [self._fill]) * capacity
            cells[: self._size] = self._cells[: self._size]
            self._cells = cells
        elif size > self._size:
            np.frombuffer(self._cells, dtype=self._typecode)[self._size : size] = self._fill
        self._size = size
        self.view = np.frombuffer(self._cells, dtype=self._typecode)[:size]

    def __getitem__(self, position: int) -> Number:
        value: Number = self._cells[position]
        return value

    def __setitem__(self, position: int, value: Number) -> None:
        self._cells[position] = value

    def __len__(self) -> int:
        return self._size

    @property
    def bytes_held(self) -> int:
        """The memory it occupies."""
        return len(self._cells) * self._cells.itemsize
