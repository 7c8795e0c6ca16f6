"""Where the rows of a driver come from, stage by stage: streams of the store, or folders of files.

Either goes on from what is durable: a stage that was put before is not put again.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from tidegate.logs.files import FileLog
from tidegate.logs.log import Log
from tidegate.store import Store

S = 1_000_000
STAGES = 4
PER_STAGE = 40
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


class Source(Protocol):
    """Some streams, and who puts rows into them."""

    @property
    def logs(self) -> dict[str, Log]:
        """Those that are not the store's own."""

    def stages(self) -> int:
        """How many stages are there."""

    def put(self, stage: int) -> None:
        """Put the rows of a stage."""


def rows_of(stream: str, stage: int) -> pa.Table:
    """The rows of a stage: most of them new, some late, some lost."""
    random_ = random.Random(f"{stream} {stage}")
    top = 60 * stage * S
    times = [top + random_.randint(-70, 60) * S for _ in range(PER_STAGE - 8)] + [top + 60 * S] * 8
    columns = {
        "k": [f"k{n % 8}" for n in range(len(times))],
        "v": list(range(len(times))),
        "at": pa.array(times).cast(SCHEMA.field("at").type),
    }
    return pa.table(columns, schema=SCHEMA)


class Streams:
    """Streams of the store, with a writer each."""

    def __init__(self, store: Store, names: Sequence[str]) -> None:
        self.logs: dict[str, Log] = {}
        for name in names:
            store.create_stream(
                name, SCHEMA, exist_ok=True, event_column="at", routing_key=("k",), segments=2
            )
        self._writers = [store.writer(name, "w", flush_age=None) for name in names]

    def stages(self) -> int:
        """How many stages every writer has put."""
        return min(writer.durable for writer in self._writers) // PER_STAGE

    def put(self, stage: int) -> None:
        """Append the rows of a stage."""
        for writer in self._writers:
            writer.append(rows_of(writer.stream, stage), first_row=stage * PER_STAGE)
            writer.flush()


class Folders:
    """The stream "orders" as others write it: two folders of files, with bad rows in every file.

    The files of a stage come one after the other, and a plan may see the first of them alone. Both
    end at the same time, so that moves nothing, and what is late is late in either case.
    """

    PARTITIONS: Final = ("p0", "p1")
    BAD: Final[Mapping[str, tuple[int, str | None]]] = {
        "missing": (3, None),
        "unparsable": (7, "noon"),
        "future": (11, "2286-11-20T17:46:39Z"),
    }
    """By reason where such a row stands in a file, and its time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for partition in self.PARTITIONS:
            (root / partition).mkdir(parents=True, exist_ok=True)
        schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", pa.string())])
        self.logs: dict[str, Log] = {
            "orders": FileLog("orders", root, format="jsonl", event_column="at", schema=schema)
        }

    def stages(self) -> int:
        """How many stages every folder has."""
        return min(len(list((self._root / name).glob("*.json"))) for name in self.PARTITIONS)

    def put(self, stage: int) -> None:
        """Move a file into every folder that does not have it."""
        rows = rows_of("orders", stage).to_pylist()
        for number, partition in enumerate(self.PARTITIONS):
            place = self._root / partition / f"{stage:04d}.json"
            if not place.exists():
                mine = [{**row, "at": row["at"].isoformat()} for row in rows[number::2]]
                for at, time in self.BAD.values():
                    mine.insert(at, {"k": "bad", "v": stage, "at": time})
                hidden = place.with_name("_new")
                hidden.write_text("".join(json.dumps(row) + "\n" for row in mine))
                hidden.rename(place)

    @classmethod
    def bad(cls) -> Counter[tuple[str, str, int]]:
        """All bad rows of all stages: reason, partition, offset."""
        in_file = PER_STAGE // len(cls.PARTITIONS) + len(cls.BAD)
        return Counter(
            (reason, partition, stage * in_file + at)
            for reason, (at, _) in cls.BAD.items()
            for partition in cls.PARTITIONS
            for stage in range(STAGES)
        )
