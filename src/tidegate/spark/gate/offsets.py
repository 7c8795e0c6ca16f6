"""The offset of a gate: what Spark keeps of a source between two batches.

The planner's state is in it, as in the plan stream of slices; and, of the batch that led to it,
where that began and by which W its rows are judged. So the late rows of a batch follow from its end
alone, whenever they are looked for: at once by the tasks that leave them out, and later, when the
offset is durable, by whoever routes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tidegate.eventtime.watermark import UNKNOWN, Known, from_json, to_json
from tidegate.planning.batch import BatchPlan
from tidegate.planning.facts import Questions
from tidegate.planning.replay import replay
from tidegate.planning.state import PlannerState, StreamState
from tidegate.spark.gate.spec import Gate

BEGINNING: Final = {"state": "beginning"}
"""The offset before the first plan: a symbol, for Spark asks for it again in every replay."""


@dataclass(frozen=True)
class Offset:
    """The state after a batch, the state before it as far as it matters, and the judge's W."""

    state: PlannerState
    before: StreamState
    judge: Known
    told: str = "{}"
    """What only an observer wants to know of the plan."""
    sent: Known = UNKNOWN
    """What Spark has been told by the end of the batch. It does not go back, as Spark does not,
    though a setting may since be another."""
    news: bool = True
    """Whether the batch told Spark anything that the next one is to act on."""

    @staticmethod
    def read(value: dict[str, Any]) -> Offset | None:
        """An offset that Spark has kept; None at the beginning."""
        if value["state"] == BEGINNING["state"]:
            return None
        return Offset(
            PlannerState.from_json(value["state"]),
            StreamState.from_json(value["before"]),
            known(value["judge"]),
            value["told"],
            known(value["sent"]),
            value["news"],
        )

    def written(self) -> dict[str, Any]:
        """As Spark keeps it."""
        return {
            "state": self.state.to_json(),
            "before": self.before.to_json(),
            "judge": to_json(self.judge),
            "told": self.told,
            "sent": to_json(self.sent),
            "news": self.news,
        }

    def batch(self, gate: Gate, ask: Questions) -> BatchPlan:
        """The batch that led here: what was new in it, and what of that is late."""
        before = replace(
            self.state,
            streams={gate.stream: self.before},
            watermark=self.judge,
            finished=False,
        )
        return replay(before, self.state, ask, gate.query, gate.policy, cores=gate.cores)


def known(value: int | str) -> Known:
    """A time from its JSON, or UNKNOWN."""
    found = from_json(value)
    return found if isinstance(found, int) else UNKNOWN


def fingerprint(value: Mapping[str, Any]) -> str:
    """What tells one offset, or one plan, from another."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
