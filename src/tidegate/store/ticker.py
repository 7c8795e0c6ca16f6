"""A ticker: a small thread that lets a writer look at the clock now and then.

It decides nothing: it calls `act` once per period until it is stopped. What is due, by the store's
clock, is for the writer to say; without a ticker the same act can be called by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread, current_thread


class Ticker:
    """Runs as a daemon: a process that ends does not wait for it."""

    def __init__(self, period: timedelta, act: Callable[[], None]) -> None:
        self.period = period
        self._act = act
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="tidegate-ticker", daemon=True)
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """Let it end, and wait until it has."""
        self._stopped.set()
        if wait and self._thread is not current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self.period.total_seconds()):
            self._act()
