"""The input of a stock query from files: in the order in which Spark's file source takes them.

That order is the modification time, in milliseconds; among equals Spark has none, and here it is
the name. Names that begin with `_` or a dot are nobody's rows. A partition is the folder of a file,
or the value of a column, which may also stand in the names of folders as `column=value`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from pyarrow import fs

from tidegate import errors
from tidegate.cli.doctor.arrivals import Arrivals, Batching, Codes, Piece
from tidegate.eventtime.declaration import EventTimeDeclaration
from tidegate.eventtime.registry import EventTimeRegistry
from tidegate.logs.file_formats import FORMATS
from tidegate.logs.file_listing import said

SUFFIXES: Final = {
    ".parquet": "parquet",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
}
_PACKED: Final = (".gz", ".bz2", ".zst", ".lz4")
_NULL: Final = "null"


class InputFile(NamedTuple):
    """A file, when it was changed in milliseconds, its format, and what its folders say."""

    path: Path
    modified: int
    format: str
    folder: str
    keys: dict[str, str]


def read_files(
    path: str, column: str, kind: str, partition: str | None, batching: Batching
) -> Arrivals:
    """All rows below a path, as a query with this batching meets them."""
    files = list_files(Path(path))
    dates = [file.modified for file in files]
    reader = _Reader(EventTimeDeclaration(column, kind), partition)
    pieces = [reader.read(file) for file in files]
    return Arrivals.joined(
        list(reader.names),
        pieces,
        batching,
        files=len(files),
        equal_dates=len(dates) - len(set(dates)),
    )


def list_files(root: Path) -> list[InputFile]:
    """The files below a path in order; one that is no input of ours is an error."""
    if not root.exists():
        raise errors.input_not_read(str(root), "there is no such file or folder")
    found = []
    try:
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            inside = path.relative_to(root if root.is_dir() else root.parent)
            if path.is_file() and not any(_hidden(part) for part in inside.parts):
                found.append(_listed(path, inside))
    except OSError as failure:
        raise errors.input_not_read(str(root), failure.strerror or str(failure)) from None
    if not found:
        raise errors.input_not_read(str(root), "there is no file in it")
    return sorted(found, key=lambda file: (file.modified, str(file.path)))


def _listed(path: Path, inside: Path) -> InputFile:
    name = path.name
    for packed in _PACKED:
        name = name.removesuffix(packed)
    kind = SUFFIXES.get(Path(name).suffix)
    if kind is None or (kind == "parquet" and name != path.name):
        listed = ", ".join(SUFFIXES)
        raise errors.input_not_read(str(path), f"its name does not end in one of {listed}")
    folders = inside.parent.parts
    keys = dict(part.split("=", 1) for part in folders if "=" in part)
    modified = path.stat().st_mtime_ns // 1_000_000
    decoded = {key: unquote(value) for key, value in keys.items()}
    return InputFile(path, modified, kind, "/".join(folders) or ".", decoded)


def _hidden(name: str) -> bool:
    """As Spark has it: a folder `_key=value` is one of rows."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


@dataclass
class _Reader:
    """Reads the two columns of one file after the other, and gives every partition a number."""

    time: EventTimeDeclaration
    partition: str | None
    names: dict[str, int] = field(default_factory=dict)
    registry: EventTimeRegistry = field(default_factory=EventTimeRegistry)

    def read(self, file: InputFile) -> Piece:
        """The rows of a file."""
        try:
            parts = list(self._batches(file)) if file.path.stat().st_size else []
        except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
            raise errors.input_not_read(str(file.path), said(failure)) from failure
        times = pa.chunked_array([part[0] for part in parts], type=pa.int64())
        codes = [np.zeros(0, np.int32), *(part[1] for part in parts)]
        return Piece(
            times.fill_null(0).to_numpy(), times.is_valid().to_numpy(), np.concatenate(codes)
        )

    def _batches(self, file: InputFile) -> Iterator[tuple[pa.Array, Codes]]:
        there = _columns(file, self.time.column)
        for column in (self.time.column, self.partition):
            if column is not None and column not in there.names and column not in file.keys:
                known = [*there.names, *file.keys]
                raise errors.input_column_missing(str(file.path), column, known)
        if self.time.column not in there.names:
            reason = f'"{self.time.column}" is the name of a folder, not of a column'
            raise errors.input_not_read(str(file.path), reason)
        parser = self.time.validate(there, self.registry, stream=str(file.path))
        wanted = {self.time.column, self.partition}
        schema = pa.schema([field for field in there if field.name in wanted])
        with _opened(file) as source:
            for _, batch in FORMATS[file.format].read(source, schema):
                times, _ = parser.parse_column(batch.column(self.time.column))
                yield times, self._codes(file, batch)

    def _codes(self, file: InputFile, batch: pa.RecordBatch) -> Codes:
        if self.partition is None or self.partition not in batch.schema.names:
            name = file.folder if self.partition is None else file.keys[self.partition]
            return np.full(batch.num_rows, self._code(name), dtype=np.int32)
        texts = pc.cast(batch.column(self.partition), pa.string()).fill_null(_NULL)
        found = texts.dictionary_encode()
        codes = np.array([self._code(name) for name in found.dictionary.to_pylist()], np.int32)
        places: Codes = found.indices.to_numpy()
        return codes[places]

    def _code(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


def _columns(file: InputFile, time: str) -> pa.Schema:
    """The columns of a file; from a text only its first block is read for it."""
    with _opened(file) as source:
        if file.format == "parquet":
            return pq.read_schema(source).remove_metadata()
        if file.format == "csv":
            # Texts, so that a time in a notation of its own is not guessed at.
            names = pa.csv.open_csv(source).schema.names
            return pa.schema([pa.field(name, pa.string()) for name in names])
        found = pa.json.open_json(source).schema
    if time in found.names and pa.types.is_temporal(found.field(time).type):
        found = found.set(found.get_field_index(time), pa.field(time, pa.string()))
    return found


def _opened(file: InputFile) -> pa.NativeFile:
    system = fs.LocalFileSystem()
    if file.format == "parquet":
        return system.open_input_file(str(file.path))
    return system.open_input_stream(str(file.path))  # unpacked by the end of its name
