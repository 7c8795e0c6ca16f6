"""The files of a store, on any file system that pyarrow knows.

A path is relative to the store's data address and never reused. A file is written under its final
name before anything in the catalog speaks of it, and made durable before the catalog does.

Local folders, S3 (`s3://key:secret@bucket/prefix?endpoint_override=...&scheme=http`) and HDFS are
opened by their address. What an address holds of secrets is not shown.

>>> shown("s3://key:secret@bucket/shop?scheme=http")
's3://***@bucket/shop?scheme=http'
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from tidegate import errors
from tidegate.store.steps import reached


class DataFiles:
    """A root on a file system. Thread safe."""

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)
        try:
            if "://" in self.address:
                self.system, self.root = fs.FileSystem.from_uri(self.address)
            else:
                self.system, self.root = fs.LocalFileSystem(), str(Path(address).resolve())
            self.has_folders = self.system.type_name != "s3"
            # Of a bucket it is enough that it is there: folders in it would be objects of their
            # own, and whoever only reads could not make them.
            needed = self.root if self.has_folders else self.root.split("/", 1)[0]
            self.system.create_dir(needed, recursive=True)
        except (OSError, pa.ArrowException) as failure:
            reason = str(failure).replace(self.address, shown(self.address)).rstrip(".")
            # Without its cause, whose text may show the secrets of the address.
            raise errors.data_unavailable(shown(self.address), reason) from None
        self.is_local = isinstance(self.system, fs.LocalFileSystem)

    def full(self, path: str) -> str:
        """The path on the file system."""
        return f"{self.root}/{path}"

    def write(self, path: str, content: pa.Buffer | bytes) -> int:
        """Write a file in one go, make it durable, and return its size."""
        target = self.full(path)
        reached("file: before upload")
        if self.has_folders:
            self.system.create_dir(target.rsplit("/", 1)[0], recursive=True)
        with self.system.open_output_stream(target) as out:
            out.write(content)
            reached("file: during upload")
        if self.is_local:
            make_durable(target)
        reached("file: after upload")
        return len(content)

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for reading at random places."""
        return self.system.open_input_file(self.full(path))

    def delete(self, path: str) -> None:
        """Delete a file; one that is gone already is no error."""
        reached("file: before delete")
        try:
            self.system.delete_file(self.full(path))
        except FileNotFoundError:
            return
        reached("file: after delete")

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        found = self.system.get_file_info(self.full(path)).type
        return bool(found == fs.FileType.File)

    def list(self, under: str = "") -> Iterator[str]:
        """All files below a folder, as paths of the store."""
        base = self.full(under) if under else self.root
        selector = fs.FileSelector(base, allow_not_found=True, recursive=True)
        for info in self.system.get_file_info(selector):
            if info.type == fs.FileType.File:
                yield info.path.removeprefix(self.root).lstrip("/")


def shown(address: str) -> str:
    """An address for messages: without the key and the secret that may stand in it."""
    # Up to the last @, as a secret that was not quoted may hold any character.
    return re.sub(r"://.*:.*@", "://***@", address, count=1, flags=re.DOTALL)


def make_durable(path: str) -> None:
    """Have the operating system write a file and its folder entry to the disk."""
    for name in (path, os.path.dirname(path)):
        handle = os.open(name, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
