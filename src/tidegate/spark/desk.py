"""The desk: where a planner in the driver's process is asked by the process of its source.

Spark starts a new Python process for a streaming source, in every run. To plan there it would have
to import all of Tidegate first, which takes longer than many a run; the driver has done it. So a
source of a classic session asks its driver, which is always on the same machine, through a socket
that only its user can reach, with a key that only its sources have. Each run has a planner of its
own, which ends with it. A source that has no desk, as on Spark Connect, plans where it is. The
other side is in `light_source.py`.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from threading import Thread
from typing import Any, TypeAlias
from uuid import uuid4

from pyspark.sql import SparkSession

from tidegate.errors import TidegateError
from tidegate.spark.light_source import Answers
from tidegate.spark.session import on_connect

Place: TypeAlias = tuple[str, bytes, str]
"""Where to ask, with which key, for which planner."""
Opened: TypeAlias = Callable[[], Answers]
"""Gives what answers for a source, in one run."""


@dataclass
class _Known:
    """Who can be asked for, and whether for one run only."""

    opened: Opened
    once: bool


class Desk:
    """Answers the sources of this process's queries."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._listener = Listener(family="AF_UNIX", backlog=16, authkey=self._key)
        self._known: dict[str, _Known] = {}
        _in_background(self._receive)

    def place_for(self, opened: Opened, name: str | None) -> Place:
        """Where a source finds its planner: for one run, or under a name for as many as come."""
        key = uuid4().hex if name is None else name
        self._known[key] = _Known(opened, once=name is None)
        return str(self._listener.address), self._key, key

    def _receive(self) -> None:
        while True:
            try:
                asking = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):  # who came has gone, or has no key
                continue
            _in_background(partial(self._answer, asking))

    def _answer(self, asking: Connection[Any, Any]) -> None:
        """Answer one source until it goes. Its first word is the name of its planner."""
        name = ""
        with asking:
            try:
                name = asking.recv()
                known = self._known.get(name)
                if known is not None:
                    _serve(asking, known.opened)
            except (OSError, EOFError):
                known = self._known.get(name)
                if known is not None and known.once:
                    del self._known[name]


def _serve(asking: Connection[Any, Any], opened: Opened) -> None:
    """Answer question after question; one who cannot be opened answers each with why."""
    can, answers = _answered(opened)
    while True:
        what, *given = asking.recv()
        failed = (False, answers)
        asking.send(_answered(partial(getattr(answers, what), *given)) if can else failed)


def _answered(work: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether it was done, and what came of it: a result or an error, fit to travel."""
    try:
        return True, work()
    except TidegateError as error:
        return False, error
    except Exception:
        return False, RuntimeError(f"the planner failed\n{traceback.format_exc()}")


def _in_background(work: Callable[[], None]) -> None:
    Thread(target=work, name="tidegate-desk", daemon=True).start()


@lru_cache(maxsize=1)
def _desk(process: int) -> Desk | None:
    """The desk of this process; none where the system has no such sockets, or no place for one."""
    try:
        return Desk() if hasattr(socket, "AF_UNIX") else None
    except OSError:  # the folder of temporary files has too long a name, or is full
        return None


def place_for(spark: SparkSession, opened: Opened, name: str | None = None) -> Place | None:
    """Where a source asks for what `opened` gives; None where it must plan by itself."""
    desk = None if on_connect(spark) else _desk(os.getpid())
    return None if desk is None else desk.place_for(opened, name)
