"""The files sink: results as Parquet, CSV or JSON files in a folder, each batch exactly once.

Tasks write files; when all are durable the driver puts one manifest that names them. A batch that
runs again after that writes nothing. Files that no manifest names are not part of the result: what
failed attempts of a batch left is deleted when it settles, and the rest by `clean`.

    sink = FilesSink("results/per-minute")            # any address that pyarrow knows
    windows(spark, "orders", size="1 minute", sink=sink, ...).run()
    read_files("results/per-minute")                  # a pyarrow table, in order
    spark.read.parquet(*files_of("results/per-minute"))

Rows keep their order: batch after batch, in a batch task after task, in a task as they were
computed. With `late = update` a row has `_op` and `_revision`, deletes among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import uuid4

import pyarrow as pa

from tidegate import errors
from tidegate.spark.sinks.formats import format_of
from tidegate.spark.sinks.manifests import (
    FolderFacts,
    Manifest,
    ResultFile,
    ResultFolder,
    absolute,
    data_folder,
    instant_or_none,
    open_folder,
)
from tidegate.spark.sinks.sink import Batch, TaskSink
from tidegate.store.files import make_durable
from tidegate.store.steps import reached
from tidegate.store.store import Store

TOGETHER: Final = 128 * 1024
"""So many rows are written at once: small row groups are slow to read."""


@dataclass(frozen=True)
class FilesSink(TaskSink):
    """Write files into a folder: `format` is parquet, csv or json (JSON lines).

    The folder is the job's alone, for one history of batches. It may be local, or an address like
    `s3://bucket/prefix`; every executor must be able to reach it.
    """

    folder: str
    format: str = "parquet"
    kind: ClassVar[str] = "files"

    def __init__(self, folder: str | Path, format: str = "parquet") -> None:
        format_of(format)
        object.__setattr__(self, "folder", absolute(folder))
        object.__setattr__(self, "format", format)

    # ---- what a job asks ----

    def prepare(self, store: Store, job: str, schema: pa.Schema, event_time: str | None) -> None:
        """Refuse columns that the format cannot hold, and a folder of somebody else."""
        format_of(self.format).check(schema)
        there = self._results.facts()
        if there is not None:
            self._check(there, job, schema)
            known = set(there.schema.names)
            added = [field for field in schema if field.name not in known]
            schema = pa.schema([*there.schema, *added])
        facts = FolderFacts(job, self.format, schema.remove_metadata())
        if there is None or there.schema != facts.schema:
            self._results.describe(facts)

    def settled(self, batch: Batch) -> int | None:
        """The rows of a batch that has a manifest; another history is refused here."""
        self._results.claim(batch.job, batch.lineage, batch.number)
        found = self._results.manifest(batch.number)
        if found is None:
            return None
        self._check_plan(found, batch)
        return found.rows

    def write(
        self, batches: Iterator[pa.RecordBatch], store: Store, batch: Batch, task: int
    ) -> ResultFile | None:
        """Write the rows of a task to a file that nobody names yet; none for no rows."""
        groups = _grouped(batches, batch.columns)
        first = next(groups, None)
        if first is None:
            return None
        made, files = format_of(self.format), self._results.files
        path = f"{data_folder(batch.number)}/{task:05d}-{uuid4().hex[:16]}.{made.suffix}"
        target, rows = files.full(path), 0
        reached("file: before upload")
        if files.has_folders:
            files.system.create_dir(target.rsplit("/", 1)[0], recursive=True)
        with files.system.open_output_stream(target) as out:
            with made.writer(out, batch.columns) as writer:
                for group in chain([first], groups):
                    writer.write(group)
                    rows += len(group)
            size = out.tell()
        if files.is_local:
            make_durable(target)
        reached("file: after upload")
        return ResultFile(path, rows, size)

    def settle(self, batch: Batch, written: Sequence[ResultFile | None]) -> None:
        """Put the manifest: from here on the batch is in the folder."""
        files = tuple(file for file in written if file is not None)
        if not files:  # the same plan gives nothing again: there is nothing to remember
            return
        interval = batch.interval
        made = Manifest(
            job=batch.job,
            lineage=batch.lineage,
            batch=batch.number,
            plan=batch.plan,
            start=None if interval is None else instant_or_none(interval.a),
            end=None if interval is None else interval.b,
            frontier=instant_or_none(batch.frontier),
            rows=self.rows_of(files),
            files=files,
        )
        results = self._results
        results.claim(batch.job, batch.lineage, batch.number)
        reached("files: before manifest")
        if not results.put_once(made.path, made.to_json()):
            there = results.manifest(batch.number)
            assert there is not None, "what is in the way of a manifest is a manifest"
            self._check_plan(there, batch)
            made = there
        reached("files: after manifest")
        results.tidy(made)

    def rerouted(
        self, store: Store, written: Sequence[ResultFile | None], sealed: Any
    ) -> Sequence[ResultFile | None]:
        """Files of a folder belong to no segment."""
        return written

    def rows_of(self, written: Sequence[ResultFile | None]) -> int:
        """How many rows were written."""
        return sum(file.rows for file in written if file is not None)

    # ---- what a user asks ----

    def clean(self) -> int:
        """Delete what failed attempts left; return how many files.

        Files of a batch behind the last settled one are not touched: it may be running.
        """
        return self._results.clean()

    # ---- inside ----

    @property
    def _results(self) -> ResultFolder:
        return ResultFolder(self.folder)

    def _check(self, there: FolderFacts, job: str, schema: pa.Schema) -> None:
        name = self._results.name
        if there.job != job:
            raise errors.files_of_another_job(name, job, there.job)
        if there.format != self.format:
            raise errors.files_differ(name, "format", there.format, self.format)
        for field in schema:
            place = there.schema.get_field_index(field.name)
            if place >= 0 and there.schema.field(place).type != field.type:
                has, asked = str(there.schema.field(place).type), str(field.type)
                raise errors.files_differ(name, f'column "{field.name}"', has, asked)

    def _check_plan(self, there: Manifest, batch: Batch) -> None:
        if not batch.is_planned_as(there.plan):
            raise errors.sink_fenced(
                f'"{self._results.name}"',
                batch.job,
                batch.lineage,
                batch.number,
                there.job,
                there.lineage,
            )


def manifests_of(folder: str | Path) -> list[Manifest]:
    """What every batch has brought, in order."""
    return open_folder(folder).manifests()


def files_of(folder: str | Path) -> list[str]:
    """The files that are the result, in the order of their rows: full paths for any reader."""
    found = open_folder(folder)
    return [
        found.files.full(file.path) for manifest in found.manifests() for file in manifest.files
    ]


def read_files(folder: str | Path) -> pa.Table:
    """The result, in order: exactly the rows that manifests name.

    Columns that were added later are null in earlier rows.
    """
    found = open_folder(folder)
    facts = found.facts()
    assert facts is not None, "an open folder has facts"
    made = format_of(facts.format)
    tables = [facts.schema.empty_table()]
    for manifest in found.manifests():
        for file in manifest.files:
            with found.files.open(file.path) as source:
                tables.append(made.read(source, facts.schema))
    return pa.concat_tables(tables, promote_options="default")


def _grouped(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows put together, so that no group but the last is small."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= TOGETHER:
            yield pa.Table.from_batches(waiting, schema=schema)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema=schema)
