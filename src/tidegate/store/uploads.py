"""Uploads: the threads that write the files of a store, shared by all its writers.

Encoding and writing a file is work for a processor and for a disk, so a few threads are enough for
any number of writers; threads of each writer's own would only wait for each other. On storage far
away most of an upload is waiting, and more of them go side by side. The threads are there as long
as somebody who has used them is.

>>> uploads = Uploads(at_once=2)
>>> share = uploads.share()
>>> share.all(len, ["one", "three"])
[3, 5]
>>> share.close()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

NEAR: Final = max(2, os.cpu_count() or 1)
"""Files that are written side by side into a folder of this machine."""

FAR: Final = 16
"""The same on object storage and the like."""


class Uploads:
    """The threads of one store. Thread safe."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lock = Lock()
        self._sharing = 0
        self._pool: ThreadPoolExecutor | None = None

    def share(self) -> Share:
        """A share for one who will write files."""
        return Share(self)

    def join(self) -> ThreadPoolExecutor:
        """Count one more user of the threads."""
        with self._lock:
            self._sharing += 1
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="tidegate-upload")
            return self._pool

    def leave(self) -> None:
        """Count one less; the last one ends the threads."""
        with self._lock:
            self._sharing -= 1
            if self._sharing or self._pool is None:
                return
            ended, self._pool = self._pool, None
        ended.shutdown()


class Share:
    """One user's way to the threads. Not thread safe: its owner holds a lock."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._pool: ThreadPoolExecutor | None = None

    def all(self, work: Callable[[T], R], given: Iterable[T]) -> list[R]:
        """Do the work for each of them, side by side; what one raises is raised at the end."""
        if self._pool is None:
            self._pool = self._uploads.join()
        jobs = [self._pool.submit(work, one) for one in given]
        # Nobody goes on while a file of his is still being written.
        wait(jobs)
        return [job.result() for job in jobs]

    def close(self) -> None:
        """Give the share back; using it again takes a new one."""
        if self._pool is not None:
            self._pool = None
            self._uploads.leave()
