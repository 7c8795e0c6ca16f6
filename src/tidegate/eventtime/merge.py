"""The merge: one watermark from many partitions.

The combined watermark is the minimum over active partitions. When every partition is idle it is the
maximum over all of them, so that nothing waits for a quiet one. It never goes back. A partition
without any event holds it, until it is idle.

>>> merge = Merge(2)
>>> merge.update(0, 5)             # partition 1 may still be earlier: nothing moves
False
>>> merge.update(1, 3), merge.combined
(True, 3)
>>> merge.idle(1), merge.combined
(True, 5)

Both halves of that rule are *one* minimum over a total order: the active ones by their instant,
unknown first; above them the idle ones, the largest instant first; above all the absent ones. A
partition's place in that order is packed into one integer, its key, so that one tournament tree of
int64 keeps the whole merge, and so that merging merged parts (lanes, sources, streams) is the same
operation again: commutative, associative, idempotent. The packing is private to this room.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.eventtime.instants import LIMIT, Instant, checked
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known, Monotone, Watermark

Instants = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.intp]

_UNKNOWN_KEY: Final = -LIMIT
_IDLE_AXIS: Final = LIMIT << 1  # idle at t has the key _IDLE_AXIS - t, above every active one
_IDLE_UNKNOWN_KEY: Final = _IDLE_AXIS + LIMIT
_ABSENT_KEY: Final = (1 << 63) - 1


class Report(NamedTuple):
    """What a part of a merge says to the whole.

    Its watermark, and its maximum when it is wholly idle.
    """

    watermark: Watermark
    maximum: Known = UNKNOWN


def _unpack(key: int) -> tuple[Known, bool, bool]:
    """(instant, idle, present) of a key."""
    if key < LIMIT:
        return (UNKNOWN if key == _UNKNOWN_KEY else key), False, True
    if key == _ABSENT_KEY:
        return UNKNOWN, True, False
    return (UNKNOWN if key == _IDLE_UNKNOWN_KEY else _IDLE_AXIS - key), True, True


def _pack(instant: Known, idle: bool) -> int:
    if idle:
        return _IDLE_UNKNOWN_KEY if instant is UNKNOWN else _IDLE_AXIS - instant
    return _UNKNOWN_KEY if instant is UNKNOWN else instant


class Merge:
    """Keeps the minimum incrementally: O(log n) per update, O(1) to read, 16 bytes per slot.

    A slot is a small integer, one per partition; a fresh one is active and unknown. Not thread
    safe: the caller holds the lock.
    """

    __slots__ = ("_capacity", "_combined", "_size", "_tree", "_view")

    def __init__(self, size: int = 0) -> None:
        self._combined = Monotone()
        self._size = 0
        self._allocate(max(size, 1))
        self.grow(size)

    # ---- reading ----

    @property
    def combined(self) -> Known:
        """The combined watermark; it never goes back."""
        return self._combined.value

    @property
    def report(self) -> Report:
        """What this part says to a merge of parts, now.

        It may go back, when a slower partition moves in.
        """
        instant, idle, _ = _unpack(self._tree[1])
        return Report(IDLE, instant) if idle else Report(instant)

    @property
    def bytes_held(self) -> int:
        """The memory of the tree."""
        return len(self._tree) * self._tree.itemsize

    def __len__(self) -> int:
        return self._size

    def present(self, slot: int) -> bool:
        """Whether the slot holds a partition."""
        return 0 <= slot < self._size and self._tree[self._capacity + slot] != _ABSENT_KEY

    def instant(self, slot: int) -> Known:
        """How far the partition is."""
        return _unpack(self._tree[self._capacity + slot])[0]

    def is_idle(self, slot: int) -> bool:
        """Whether nobody waits for the partition."""
        return self._tree[self._capacity + slot] >= LIMIT

    # ---- one partition ----

    def grow(self, count: int) -> None:
        """Add `count` slots, active and unknown.

        They hold the merge from now on, but cannot turn it back.
        """
        size = self._size + count
        if size > self._capacity:
            old = self._leaves().copy()
            self._allocate(size)
            self._view[self._capacity : self._capacity + len(old)] = old
        self._view[self._capacity + self._size : self._capacity + size] = _UNKNOWN_KEY
        self._size = size
        self._rebuild()

    def add(self, slot: int) -> None:
        """Put a partition into an absent slot, active and unknown."""
        if slot >= self._size:
            first = self._size
            self.grow(slot + 1 - first)
            self.remove_many(np.arange(first, slot, dtype=np.intp))
        else:
            self._set(slot, _UNKNOWN_KEY)

    def update(self, slot: int, instant: Instant) -> bool:
        """Record that the partition is complete up to `instant`, and active.

        Return whether the combined one moved.
        """
        known = self.instant(slot)
        if known is UNKNOWN or instant > known:
            known = checked(instant)
        self._set(slot, known)
        # The root has moved up only where all below it has; mostly one that is ahead moves.
        return self._tree[1] != _UNKNOWN_KEY and self._settle()

    def idle(self, slot: int) -> bool:
        """Nobody need wait for the partition; return whether the combined watermark moved."""
        self._set(slot, _pack(self.instant(slot), True))
        return self._settle()

    def active(self, slot: int) -> None:
        """Wait for the partition again; what was said stands."""
        self._set(slot, _pack(self.instant(slot), False))

    def remove(self, slot: int) -> bool:
        """The partition is gone; return whether the combined watermark moved."""
        self._set(slot, _ABSENT_KEY)
        return self._settle()

    def put(self, slot: int, report: Report) -> bool:
        """Take over what a part reports, also when it is earlier than before.

        Return whether the combined one moved.
        """
        self._set(slot, self._key_of(report))
        return self._settle()

    # ---- many partitions in one step: the combined watermark is looked at once, after all of them
    # ----

    def put_many(self, reports: dict[int, Report]) -> bool:
        """`put` for several parts at once.

        A partition that moves between two parts is never out of both.
        """
        for slot, report in reports.items():
            self._set(slot, self._key_of(report))
        return self._settle()

    def follow(self, parts: Iterable[tuple[int, Merge]]) -> bool:
        """`put_many` of what merges report that are parts of this one; free where none moved."""
        moved = False
        for slot, part in parts:
            key = part._tree[1]
            if self._tree[self._capacity + slot] != key:
                self._set(slot, key)
                moved = True
        return moved and self._settle()

    def update_many(self, slots: Slots, instants: Instants) -> bool:
        """`update` for a whole batch; a slot may occur several times."""
        if len(slots) == 0:
            return False
        checked(int(instants.min()))
        checked(int(instants.max()))
        leaves = self._leaves()
        asleep = leaves[slots] >= LIMIT
        if asleep.any():
            self._wake(slots[asleep])
        np.maximum.at(leaves, slots, instants)
        self._lift(slots)
        return self._settle()

    def idle_many(self, slots: Slots) -> bool:
        """`idle` for several."""
        leaves = self._leaves()
        awake = np.unique(slots[leaves[slots] < LIMIT])
        keys = leaves[awake]
        leaves[awake] = np.where(keys == _UNKNOWN_KEY, _IDLE_UNKNOWN_KEY, _IDLE_AXIS - keys)
        self._lift(awake)
        return self._settle()

    def remove_many(self, slots: Slots) -> bool:
        """`remove` for several."""
        self._leaves()[slots] = _ABSENT_KEY
        self._lift(slots)
        return self._settle()

    def load(self, instants: Instants, known: Flags, idle: Flags) -> None:
        """Replace all slots by these columns, and let the combined watermark follow."""
        self._size = 0
        self._allocate(max(len(instants), 1))
        self._size = len(instants)
        awake = np.where(known, instants, _UNKNOWN_KEY)
        asleep = np.where(known, _IDLE_AXIS - instants, _IDLE_UNKNOWN_KEY)
        self._leaves()[:] = np.where(idle, asleep, awake)
        self._rebuild()
        self._settle()

    def columns(self) -> tuple[Instants, Flags, Flags, Flags]:
        """(instants, known, idle, present) of all slots, as columns.

        An instant that is not known reads 0.
        """
        keys = self._leaves()
        idle = keys >= LIMIT
        present = keys != _ABSENT_KEY
        known = (keys != _UNKNOWN_KEY) & (keys != _IDLE_UNKNOWN_KEY) & present
        folded = np.where(idle, _IDLE_AXIS - np.where(known, keys, _IDLE_AXIS), keys)
        return np.where(known, folded, 0), known, idle & present, present

    # ---- the tree ----

    def _allocate(self, size: int) -> None:
        self._capacity = 1 << (size - 1).bit_length()
        # One memory with two faces: the array is fast for one value, the numpy view for many.
        self._tree = array("q", [_ABSENT_KEY]) * (2 * self._capacity)
        self._view: Instants = np.frombuffer(self._tree, dtype=np.int64)

    def _leaves(self) -> Instants:
        return self._view[self._capacity : self._capacity + self._size]

    @staticmethod
    def _key_of(report: Report) -> int:
        watermark, maximum = report
        if watermark is IDLE:
            return _pack(maximum, True)
        return _pack(watermark, False)

    def _set(self, slot: int, key: int) -> None:
        tree = self._tree
        node = self._capacity + slot
        tree[node] = key
        while node > 1:
            sibling = tree[node ^ 1]
            node >>= 1
            if sibling < key:
                key = sibling
            if tree[node] == key:
                return
            tree[node] = key

    def _wake(self, slots: Slots) -> None:
        leaves = self._leaves()
        slots = np.unique(slots)
        keys = leaves[slots]
        leaves[slots] = np.where(keys >= _IDLE_UNKNOWN_KEY, _UNKNOWN_KEY, _IDLE_AXIS - keys)

    def _lift(self, slots: Slots) -> None:
        """Bring the inner nodes above the changed leaves up to date."""
        if len(slots) * 8 > self._capacity:
            self._rebuild()
            return
        view = self._view
        nodes = np.unique((slots + self._capacity) >> 1)
        while len(nodes) and nodes[0] >= 1:
            view[nodes] = np.minimum(view[2 * nodes], view[2 * nodes + 1])
            nodes = np.unique(nodes >> 1)

    def _rebuild(self) -> None:
        view, width = self._view, self._capacity
        while width > 1:
            level = view[width : 2 * width]
            width >>= 1
            np.minimum(level[0::2], level[1::2], out=view[width : 2 * width])

    def _settle(self) -> bool:
        return self._combined.advance(_unpack(self._tree[1])[0])


def combine(reports: list[Report]) -> Report:
    """Merge the reports of parts into one: the same rule, for a handful of values.

    >>> combine([Report(5), Report(IDLE, 9), Report(7)])
    Report(watermark=5, maximum=UNKNOWN)
    >>> combine([Report(IDLE, 4), Report(IDLE, 9)])
    Report(watermark=IDLE, maximum=9)
    """
    merge = Merge(len(reports))
    merge.put_many(dict(enumerate(reports)))
    return merge.report
