"""The inbox of a node: one number and one end from several inputs.

The number of a node is the minimum over its inputs; an IDLE input is not waited for, and neither is
one that has ended gracefully. It is the one merge of watermarks, with an input in each slot, so any
node may have several inputs and none of them knows.

>>> inbox = Inbox(2)
>>> inbox.take(0, 5), inbox.take(1, 3)                # the first alone says nothing
([], [3])
>>> inbox.take(1, IDLE)                               # nobody waits for the second any more
[5]
>>> inbox.take(1, UNKNOWN), inbox.take(0, 9), inbox.take(1, 7)      # it is back, and holds again
([], [], [7])
>>> inbox.take(0, Ending.GRACEFUL), inbox.take(1, Ending.GRACEFUL)
([], [GRACEFUL])

An input that ended quickly keeps its place and its number: its rows did not all come, so nothing
past it is complete.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tidegate.eventtime.merge import Merge
from tidegate.eventtime.watermark import IDLE, UNKNOWN
from tidegate.progress.messages import Data, Ending, StreamMessage, combined_ending

Signal: TypeAlias = StreamMessage[Any] | Ending
"""Whatever an edge carries."""


class Inbox:
    """Turns what the inputs say into what the node hears. Not thread safe."""

    __slots__ = ("_endings", "_merge")

    def __init__(self, inputs: int) -> None:
        self._merge = Merge(inputs)
        self._endings: list[Ending | None] = [None] * inputs

    def take(self, slot: int, signal: Signal) -> list[Signal]:
        """Take one signal from the input in `slot`; return what the node hears of it, in order."""
        if isinstance(signal, Data):
            return [signal]
        slept = self._asleep()
        moved = self._settle(slot, signal)
        heard: list[Signal] = []
        if slept and not self._asleep():
            heard.append(UNKNOWN)
        if moved and self._merge.combined is not UNKNOWN:
            heard.append(self._merge.combined)
        ending = combined_ending(self._endings)
        if ending is not None:
            heard.append(ending)
        elif self._asleep() and not slept:
            heard.append(IDLE)
        return heard

    def _settle(self, slot: int, signal: Signal) -> bool:
        if isinstance(signal, Ending):
            self._endings[slot] = signal
            return signal is Ending.GRACEFUL and self._merge.remove(slot)
        if signal is IDLE:
            return self._merge.idle(slot)
        if signal is UNKNOWN:
            self._merge.active(slot)
            return False
        assert isinstance(signal, int)
        return self._merge.update(slot, signal)

    def _asleep(self) -> bool:
        return self._merge.report.watermark is IDLE
