"""The listing of a log of files: which folders there are, and which files in each, in order.

Names that begin with `_` or a dot are nobody's rows; empty files are files that have not come yet.
Where a listing sees the marker of an end, it also sees every file that was there before the marker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pyarrow import fs

from tidegate import errors
from tidegate.eventtime.instants import Instant

END_MARKER: Final = "_END"
"""A file of this name says that its partition gets no more rows."""
_TRIES: Final = 10
"""Listings before a folder that is never there for long is a failure."""


class ListedFile(NamedTuple):
    """A file as the listing shows it; `name` is its path inside the partition."""

    name: str
    path: str
    size: int
    modified_at: Instant


@dataclass
class Folder:
    """A partition as the listing shows it; modified when its last file was, or when it was made."""

    files: list[ListedFile] = field(default_factory=list)
    ended: bool = False
    modified_at: Instant | None = None

    def add(self, name: str, info: fs.FileInfo) -> None:
        """A file, in the order of names."""
        at = _modified(info)
        if at is not None:
            known = self.modified_at if self.files else None
            self.modified_at = at if known is None else max(known, at)
        self.files.append(ListedFile(name, info.path, info.size, at or 0))


def list_folders(log: str, system: fs.FileSystem, root: str) -> dict[str, Folder]:
    """The partitions below a folder, by name."""
    folders = _list_once(log, system, root)
    if any(folder.ended for folder in folders.values()):
        # The marker comes last, but one pass may see it and have missed a file before it.
        folders = _list_once(log, system, root)
    return folders


def _list_once(log: str, system: fs.FileSystem, root: str) -> dict[str, Folder]:
    infos = _list_all(log, system, root)
    folders: dict[str, Folder] = {}
    for info in sorted(infos, key=lambda info: info.path.split("/")):
        partition, *inside = info.path.removeprefix(root).strip("/").split("/")
        if _hidden(partition):
            continue
        if info.type == fs.FileType.Directory:
            if not inside:
                folders.setdefault(partition, Folder(modified_at=_modified(info)))
        elif not inside:
            raise errors.file_outside_partitions(log, partition)
        elif inside == [END_MARKER]:
            folders.setdefault(partition, Folder()).ended = True
        elif info.size and not any(_hidden(part) for part in inside):
            folders.setdefault(partition, Folder()).add("/".join(inside), info)
    return folders


def _list_all(log: str, system: fs.FileSystem, root: str) -> list[fs.FileInfo]:
    """Everything below a folder.

    A listing is not one step: it sees a folder, and looks into it later. One that was renamed or
    removed in between is no fault of the root, and the next listing does not see it.
    """
    everything = fs.FileSelector(root, recursive=True)
    tries = 0
    while True:
        try:
            return list(system.get_file_info(everything))
        except OSError as failure:
            tries += 1
            moved = isinstance(failure, FileNotFoundError) and _is_there(system, root)
            if not moved or tries == _TRIES:
                raise errors.files_unreachable(log, root, said(failure)) from failure


def _is_there(system: fs.FileSystem, root: str) -> bool:
    try:
        return bool(system.get_file_info(root).type == fs.FileType.Directory)
    except OSError:
        return False


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _modified(info: fs.FileInfo) -> Instant | None:
    """Object stores know no time of a folder."""
    return None if info.mtime_ns is None else info.mtime_ns // 1000


def said(failure: Exception) -> str:
    """What a failure says, as part of a sentence."""
    return str(failure).strip().split("\n")[0].rstrip(".")
