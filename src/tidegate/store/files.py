"""The files of a store, on any file system that pyarrow knows.

A path is relative to the store's data address and never reused. A file is written under its final
name before anything in the catalog speaks of it, and made durable before the catalog does.

Local folders, S3 (`s3://bucket/prefix?endpoint_override=...&scheme=http`) and HDFS are opened by
their address.
"""

from __future__ import annotations

import os
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
            self.system.create_dir(self.root, recursive=True)
        except (OSError, pa.ArrowException) as failure:
            raise errors.data_unavailable(self.address, str(failure)) from failure
        self.is_local = isinstance(self.system, fs.LocalFileSystem)

    def full(self, path: str) -> str:
        """The path on the file system."""
        return f"{self.root}/{path}"

    def write(self, path: str, content: pa.Buffer | bytes) -> int:
        """Write a file in one go, make it durable, and return its size."""
        target = self.full(path)
        reached("file: before upload")
        self.system.create_dir(target.rsplit("/", 1)[0], recursive=True)
        with self.system.open_output_stream(target) as out:
            out.write(content)
        if self.is_local:
            _make_durable(target)
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


def _make_durable(path: str) -> None:
    """Have the operating system write a file and its folder entry to the disk."""
    for name in (path, os.path.dirname(path)):
        handle = os.open(name, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
