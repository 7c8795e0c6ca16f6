"""Steps: named points in the work of the store, where a test may stop it.

Every catalog transaction and every file operation passes through `reached` before and after it
takes effect. In production nothing listens. A fault campaign hangs a listener in and kills the
process at the n-th step: whatever was acknowledged before must be there afterwards, and nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]

_listeners: list[Listener] = []


def reached(step: str) -> None:
    """Tell whoever listens that a step begins or has ended."""
    for listener in _listeners:
        listener(step)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear every step for a while."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
