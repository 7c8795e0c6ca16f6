"""Rows from a file or from standard input, a batch at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from tidegate import errors

BATCH = 10_000


def batches_of(file: str, schema: pa.Schema) -> Iterator[list[dict[str, Any]] | pa.RecordBatch]:
    """The rows of a Parquet, CSV or JSON lines file, or `-`: JSON lines from standard input."""
    if file == "-":
        yield from _json_lines(sys.stdin, "standard input")
        return
    path = Path(file)
    if not path.is_file():
        raise errors.rows_file_not_read(file, "there is no such file")
    try:
        if path.suffix == ".parquet":
            yield from pq.ParquetFile(path).iter_batches(BATCH)
        elif path.suffix == ".csv":
            # Texts are read in the types of the stream, so that nothing is guessed.
            kinds = {field.name: field.type for field in schema}
            options = arrow_csv.ConvertOptions(column_types=kinds)
            yield from arrow_csv.open_csv(path, convert_options=options)
        elif path.suffix in (".jsonl", ".json", ".ndjson"):
            with path.open() as lines:
                yield from _json_lines(lines, file)
        else:
            raise errors.rows_file_not_read(file, "it is not .parquet, .csv or .jsonl")
    except (OSError, pa.ArrowException, UnicodeDecodeError) as failure:
        raise errors.rows_file_not_read(file, str(failure)) from failure


def _json_lines(lines: Iterable[str], where: str) -> Iterator[list[dict[str, Any]]]:
    numbered = ((n, line) for n, line in enumerate(lines, start=1) if line.strip())
    while chunk := list(islice(numbered, BATCH)):
        yield [_parsed(line, f"{where}, line {n}") for n, line in chunk]


def _parsed(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as failure:
        raise errors.rows_file_not_read(where, str(failure)) from None
    if not isinstance(row, dict):
        raise errors.rows_file_not_read(where, "it is not a JSON object")
    return row
