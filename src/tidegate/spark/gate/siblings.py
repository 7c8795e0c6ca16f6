"""Siblings: the sources of one query, each with a planner of its own, as they hear of each other.

Spark plans every source of a query by itself, one after the other, in one thread. What a source has
to say stands in the catalog, in its row among the nodes of the query: the W of its *start* offset,
which is durable, and the W that it has sent for the end of the batch that is being made, which may
come to nothing. Others go along with the first. Rows are judged by what Spark will have when the
batch runs: the starts of all, and the start of a source that is asked after this one is what it
sent the last time.

A row may be left over from a run with other sources. Spark opens all sources of a query before it
asks any of them, and then asks them in turn: so from the second question on, who has not spoken
since this one was opened does not belong to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known, later, to_json
from tidegate.planning.batch import Idleness
from tidegate.planning.beside import ALONE, Beside, Other
from tidegate.planning.state import PlannerState
from tidegate.spark.gate.offsets import Offset, known
from tidegate.spark.gate.spec import Gate
from tidegate.store.catalog import progress
from tidegate.store.catalog.progress import NodeProgress
from tidegate.store.store import Store


@dataclass(frozen=True)
class Said:
    """What a source says of itself. `sent` is what Spark was told: whole milliseconds."""

    start: Known = UNKNOWN
    start_sent: Known = UNKNOWN
    end: Known = UNKNOWN
    end_sent: Known = UNKNOWN
    idle: bool = False
    ended: bool = False
    closing: Known = UNKNOWN
    finished: bool = False
    """The start is the end of all: what Spark was sent closes everything that was open."""
    asked: int = 0
    """Which question of this run it answers."""
    plan: str = ""
    """A fingerprint of the offset that it answered with."""

    @staticmethod
    def of(
        here: Offset | None,
        end: Offset,
        before: PlannerState,
        standing: Idleness,
        asked: int,
        plan: str,
    ) -> Said:
        """From what is durable, and what may be next."""
        return Said(
            before.watermark,
            UNKNOWN if here is None else here.sent,
            end.state.watermark,
            end.sent,
            standing.idle,
            standing.ended,
            standing.closing,
            before.finished,
            asked,
            plan,
        )

    def to_json(self) -> dict[str, Any]:
        """As a part of what is told of a node."""
        return {
            "start": to_json(self.start),
            "start_sent": to_json(self.start_sent),
            "end": to_json(self.end),
            "end_sent": to_json(self.end_sent),
            "idle": self.idle,
            "ended": self.ended,
            "closing": to_json(self.closing),
            "finished": self.finished,
            "asked": self.asked,
            "plan": self.plan,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Said:
        """The inverse of `to_json`."""
        return Said(
            known(value["start"]),
            known(value["start_sent"]),
            known(value["end"]),
            known(value["end_sent"]),
            value["idle"],
            value["ended"],
            known(value["closing"]),
            value["finished"],
            value["asked"],
            value["plan"],
        )


def said(node: NodeProgress) -> Said:
    """What the row of a source holds; nothing, before it has spoken."""
    return Said.from_json(node.detail["gate"]) if "gate" in node.detail else Said()


def sources_of(nodes: Mapping[str, NodeProgress]) -> dict[str, NodeProgress]:
    """The sources that have spoken in the run that is on; all, where none of them has yet."""
    every = {name: node for name, node in nodes.items() if name.startswith("source:")}
    opened = max((node.detail.get("opened", 0) for node in every.values()), default=0)
    spoken = {name: node for name, node in every.items() if node.detail.get("spoke", 0) >= opened}
    return spoken or every


class Siblings:
    """The other sources of the query of one, seen from that one."""

    def __init__(self, gate: Gate, store: Store) -> None:
        self._gate, self._store = gate, store
        self.asked = 0
        self._alone = False
        self._others: list[Said] = []
        self.opened = store.clock()
        self._open()

    def ask(self) -> None:
        """Spark asks this source once more; look around."""
        self.asked += 1
        if self._alone:
            return
        nodes = self._store.database.read(lambda on: progress.told(on, self._gate.name))
        others = [
            node
            for name, node in nodes.items()
            if name.startswith("source:") and name != self._gate.node
        ]
        if self.asked > 1:
            others = [node for node in others if node.detail.get("spoke", 0) >= self.opened]
        self._others = [said(node) for node in others]
        self._alone = self.asked > 1 and not others

    @property
    def seen(self) -> tuple[Said, ...]:
        """What the others have said: a plan from it is the same while it is the same."""
        return tuple(self._others)

    @property
    def settled(self) -> bool:
        """Whether it is known who belongs to the query."""
        return self.asked > 1

    def beside(self) -> Beside:
        """The others for a plan. Before they are known none is waited for, and none has ended."""
        if not self._others:
            return ALONE
        if not self.settled:
            return Beside.of([Other(UNKNOWN, idle=False)])
        return Beside.of(Other(o.start, o.idle, o.ended, o.closing) for o in self._others)

    def judge(self, watermark: Known, sent: Known) -> Known:
        """The W of the whole query as Spark will have it in the next batch: who is behind is late.

        Who has been asked in this round has said what his start is; the start of the others is what
        they sent when they were last asked. `sent` is what Spark was told for the start of this
        one. Sources may allow different lateness, or have done so before: a row that Spark would
        drop by what it was told is late whatever our own W says.
        """
        told = [
            (o.start, o.start_sent)
            if o.asked >= self.asked
            else (later(o.start, o.end), later(o.start_sent, o.end_sent))
            for o in self._others
        ]
        lowest = Beside.of(Other(w, idle=False) for w, _ in told).lowest(watermark)
        theirs = [sent, *(s for _, s in told)]
        heard = [s for s in theirs if s is not UNKNOWN]
        if len(heard) < len(theirs):
            return lowest
        return later(lowest, self._gate.claimed(min(heard)))

    @property
    def all_finished(self) -> bool:
        """Whether the others are at the end of all, and Spark has been told so."""
        return all(other.finished for other in self._others)

    def tell(
        self, on: Connection, words: Said, frontier: Known, more: Mapping[str, Any], now: Instant
    ) -> None:
        """Say it, within a transaction."""
        detail = {**more, "gate": words.to_json(), "opened": self.opened, "spoke": now}
        progress.tell(on, self._gate.name, self._gate.node, frontier, detail, now)

    def _open(self) -> None:
        """Let the others know that this source belongs to the query of this run."""

        def work(on: Connection) -> None:
            found = progress.told(on, self._gate.name).get(self._gate.node)
            detail = {} if found is None else dict(found.detail)
            progress.tell(
                on,
                self._gate.name,
                self._gate.node,
                UNKNOWN,
                {**detail, "opened": self.opened},
                self.opened,
            )

        self._store.database.write(work)
