"""Manifests: which files of a folder are the results of a job, batch by batch.

A file counts if and only if the manifest of its batch names it, and the manifest appears whole, in
one step, after all its files are durable. So a batch is in the folder once or not at all, whatever
was left behind by tasks that failed. Whether a batch is there is one question for one name: nothing
is listed.

    folder/_tidegate/folder.json               whose results these are, their format and columns
    folder/_tidegate/lineage.json              the one history of batches that may write here
    folder/_tidegate/batches/000000005.json    batch 5: its files, in order
    folder/_batch=000000005/00000-8c1f.parquet

>>> Manifest("j", "l", 5, "p", None, 0, 60, 2, ()).path
'_tidegate/batches/000000005.json'
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from tidegate import errors
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.store.files import DataFiles, make_durable, shown

VERSION: Final = 1
OWN: Final = "_tidegate"
FOLDER: Final = f"{OWN}/folder.json"
LINEAGE: Final = f"{OWN}/lineage.json"
BATCHES: Final = f"{OWN}/batches"

_MANIFEST: Final = re.compile(rf"{BATCHES}/(\d+)\.json")
_TEMPORARY: Final = re.compile(rf"{BATCHES}/(\d+)\.json\.\w+\.tmp")
_DATA: Final = re.compile(r"_batch=(\d+)/[^/]+")


@dataclass(frozen=True)
class ResultFile:
    """A file of results: its path in the folder, its rows and its bytes."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """What a batch has brought: its files in the order of their rows."""

    job: str
    lineage: str
    batch: int
    plan: str
    start: int | None
    """The interval of event time is [start, end); without a start it is the first."""
    end: int | None
    frontier: int | None
    rows: int
    files: tuple[ResultFile, ...]

    @property
    def path(self) -> str:
        """Its own name in the folder."""
        return f"{BATCHES}/{self.batch:09d}.json"

    def to_json(self) -> bytes:
        """As it is written: one object, so that any JSON reader can ask for files."""
        return _encoded({"version": VERSION, **asdict(self)})

    @staticmethod
    def from_json(text: bytes) -> Manifest:
        """The inverse."""
        told = json.loads(text)
        told.pop("version")
        files = tuple(ResultFile(**file) for file in told.pop("files"))
        return Manifest(**told, files=files)


@dataclass(frozen=True)
class FolderFacts:
    """Whose results a folder holds, and how they are written."""

    job: str
    format: str
    schema: pa.Schema

    def to_json(self) -> bytes:
        """As it is written: types as words for people, and exactly for us."""
        return _encoded(
            {
                "version": VERSION,
                "job": self.job,
                "format": self.format,
                "columns": {field.name: str(field.type) for field in self.schema},
                "schema": b64encode(self.schema.serialize().to_pybytes()).decode(),
            }
        )

    @staticmethod
    def from_json(text: bytes) -> FolderFacts:
        """The inverse."""
        told = json.loads(text)
        schema = pa.ipc.read_schema(pa.py_buffer(b64decode(told["schema"])))
        return FolderFacts(told["job"], told["format"], schema)


class ResultFolder:
    """A folder on any file system that pyarrow knows, with its manifests."""

    def __init__(self, address: str) -> None:
        self.files = _files(address, os.getpid())
        self.name = shown(address)

    # ---- whose it is ----

    def facts(self) -> FolderFacts | None:
        """Whose results are here; None before the first job."""
        text = self._text(FOLDER)
        return None if text is None else FolderFacts.from_json(text)

    def describe(self, facts: FolderFacts) -> None:
        """Say whose results are here, or that they have more columns than before."""
        content = facts.to_json()
        if not self.put_once(FOLDER, content):
            _replace(self.files, FOLDER, content)

    def claim(self, job: str, lineage: str, batch: int) -> None:
        """Let one history of batches write here, and refuse every other."""
        text = self._text(LINEAGE)
        if text is None:
            self.put_once(LINEAGE, _encoded({"job": job, "lineage": lineage}))
            text = self._text(LINEAGE)
        told = json.loads(text or b"{}")
        if told.get("lineage") != lineage:
            raise errors.sink_fenced(
                f'"{self.name}"', job, lineage, batch, told.get("job", ""), told.get("lineage", "")
            )

    # ---- batches ----

    def manifest(self, batch: int) -> Manifest | None:
        """What a batch has brought; None when it is not settled, or brought nothing."""
        text = self._text(f"{BATCHES}/{batch:09d}.json")
        return None if text is None else Manifest.from_json(text)

    def manifests(self) -> list[Manifest]:
        """All of them, in the order of batches."""
        return [found for number in self._settled() if (found := self.manifest(number))]

    def put_once(self, path: str, content: bytes) -> bool:
        """Have a file appear whole, if it is not there; return whether it was put.

        In a local folder two who try at once cannot both succeed. On object storage the last one
        wins in that instant, so that two drivers of one job must not be let loose on it.
        """
        if self.files.is_local:
            return _linked(self.files.full(path), content)
        if self.files.exists(path):
            return False
        _replace(self.files, path, content)
        return True

    # ---- what failed attempts left ----

    def tidy(self, manifest: Manifest) -> int:
        """Delete files of a settled batch that are not its own; return how many."""
        kept = {file.path for file in manifest.files}
        return self._delete(
            path for path in self.files.list(data_folder(manifest.batch)) if path not in kept
        )

    def clean(self) -> int:
        """Delete what no manifest names, up to the last settled batch; return how many.

        A batch behind the last settled one may be running: its files are not touched.
        """
        # Looked at once: a batch that settles meanwhile must not be the last and yet unknown.
        settled = self.manifests()
        named = {file.path for manifest in settled for file in manifest.files}
        last = max((manifest.batch for manifest in settled), default=0)

        def is_dead(path: str) -> bool:
            found = _DATA.fullmatch(path) or _TEMPORARY.fullmatch(path)
            return found is not None and int(found[1]) <= last and path not in named

        return self._delete([path for path in self.files.list() if is_dead(path)])

    def _delete(self, paths: Iterable[str]) -> int:
        count = 0
        for path in paths:
            self.files.delete(path)
            count += 1
        return count

    def _settled(self) -> list[int]:
        found = (_MANIFEST.fullmatch(path) for path in self.files.list(BATCHES))
        return sorted(int(name[1]) for name in found if name)

    def _text(self, path: str) -> bytes | None:
        try:
            with self.files.open(path) as source:
                return bytes(source.read())
        except FileNotFoundError:
            return None


def data_folder(batch: int) -> str:
    """Where the files of a batch lie: readers of Hive's folders see its number as a column."""
    return f"_batch={batch:09d}"


def instant_or_none(value: Known) -> int | None:
    """An instant for JSON; what is unknown is null."""
    return None if value is UNKNOWN else value


def open_folder(folder: str | Path) -> ResultFolder:
    """The results in a folder; an error when no job has written there."""
    address = absolute(folder)
    if "://" not in address and not Path(address, FOLDER).is_file():
        raise errors.no_result_files(address)
    found = ResultFolder(address)
    if found.facts() is None:
        raise errors.no_result_files(found.name)
    return found


def absolute(folder: str | Path) -> str:
    """An address that means the same in every process."""
    return str(folder) if "://" in str(folder) else str(Path(folder).resolve())


@lru_cache(maxsize=64)
def _files(address: str, process: int) -> DataFiles:
    """Opened once per process: to greet an object store costs more than a small file."""
    return DataFiles(address)


def _encoded(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def _linked(target: str, content: bytes) -> bool:
    """Write a file elsewhere, make it durable, and give it its name if that is free."""
    temporary = f"{target}.{uuid4().hex}.tmp"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(temporary, "xb") as out:
        out.write(content)
    make_durable(temporary)
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    make_durable(target)
    return True


def _replace(files: DataFiles, path: str, content: bytes) -> None:
    """Have a file appear whole in place of what there was."""
    if not files.has_folders:  # an object appears when its upload is complete
        files.write(path, content)
        return
    temporary = f"{path}.{uuid4().hex}.tmp"
    files.write(temporary, content)
    files.system.move(files.full(temporary), files.full(path))
