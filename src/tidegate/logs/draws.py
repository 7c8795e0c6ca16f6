"""Draws: random numbers without a state, each a function of (seed, event, field).

Any draw of any event can be made at any time, alone or in a column, in any process, and is always
the same; different fields of one event are independent.

>>> draws = Draws(7)
>>> events = np.arange(4, dtype=np.int64)
>>> bool((draws.below(events, 1, 10)[2:] == draws.below(events[2:], 1, 10)).all())
True
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.planning.facts import Flags, Numbers

_EVENT: Final = np.uint64(0x9E3779B97F4A7C15)
_FIELD: Final = 0xD1B54A32D192ED03
_SEED: Final = 0x8CB92BA72F3D8DD7
_WORD: Final = (1 << 64) - 1
_HALF: Final = np.uint64(32)


class Draws:
    """A family of random numbers."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def bits(self, events: Numbers, field: int) -> npt.NDArray[np.uint64]:
        """64 random bits per event: the finaliser of splitmix64 over a counter."""
        salt = np.uint64((self.seed * _SEED + field * _FIELD + 1) & _WORD)
        mixed = events.astype(np.uint64) * _EVENT + salt
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return mixed

    def below(self, events: Numbers, field: int, bound: Any) -> Numbers:
        """Whole numbers in [0, bound); the bound, one or a column, is below 2^32."""
        high = self.bits(events, field) >> _HALF
        found: Numbers = ((high * np.asarray(bound, dtype=np.uint64)) >> _HALF).astype(np.int64)
        return found

    def unit(self, events: Numbers, field: int) -> npt.NDArray[np.float64]:
        """Numbers in [0, 1)."""
        whole = (self.bits(events, field) >> np.uint64(11)).astype(np.float64)
        return whole * 2.0**-53

    def chance(self, events: Numbers, field: int, probability: float) -> Flags:
        """True with this probability."""
        found: Flags = self.unit(events, field) < probability
        return found
