"""What a source of the gate answers, as Spark asks for offsets.

`start` is durable, and the question comes after every batch, also after the last of a run that ends
with what there is. So this is where the late and bad rows of the batch that led to `start` are
routed and where progress is told, in one transaction that is a compare-and-set on the record of the
source: once, however often the question is asked. What is returned may never be used, and nothing
depends on it.

Rows flow in the order of their arrival, paced by time. A batch that only moves time is a batch with
one message and no row. The first batch of a run repeats W, because Spark remembers only the least
of all sources.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.logs.log import questions_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning import PlannerState, plan
from tidegate.planning.batch import Idleness
from tidegate.planning.facts import Offsets
from tidegate.spark import totals
from tidegate.spark.gate.offsets import Offset, fingerprint
from tidegate.spark.gate.routing import Routed, route
from tidegate.spark.gate.siblings import Said, Siblings
from tidegate.spark.gate.spec import Gate
from tidegate.spark.plan_source import HOLD, told
from tidegate.spark.watch import Watch
from tidegate.store.catalog import holds, queries, streams
from tidegate.store.catalog.chunks import SegmentSealed
from tidegate.store.staging import publish_staged, reroute
from tidegate.store.steps import reached


class GatePlanner:
    """Plans one source of a query. One per run."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._store = gate.store()
        self._log = gate.open_log()
        self._logs = {gate.stream: self._log}
        self._watch = Watch(self._store, self._logs)
        self._siblings = Siblings(gate, self._store)
        self._fresh = PlannerState.fresh(uuid4().hex, [gate.stream])
        self._begun = False
        self._routed = -1
        self._said: Any = None
        self._held = float("-inf")
        self._at_end = 0

    # ---- what Spark asks ----

    def stop_at_what_is_there(self) -> None:
        """Go no further than what there is now, by rows and by the clock."""
        self._watch.stop_at_what_is_there()

    def after(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the next batch; the same offset when there is none."""
        self._siblings.ask()
        here = Offset.read(start)
        before = self._fresh if here is None else here.state
        if not self._begun:
            self._may_go_on(before)
        elif self._siblings.settled and self._watch.nothing_new(start, self._siblings.seen):
            return start
        reached("gate: asked")
        after, standing, told_ = self._planned(start, before)
        sent = UNKNOWN if here is None else here.sent
        judge = self._siblings.judge(before.watermark, sent)
        if after is before and here is not None and self._wants_one_more(here):
            after = replace(before, batch=before.batch + 1)
        end = self._offset(here, before, after, judge, told_)
        answer = start if after is before else end.written()
        asked, plan_ = self._siblings.asked, fingerprint(answer)
        words = Said.of(here, end, before, standing, asked, plan_)
        self._settle(start, here, end, words)
        if after is not before:
            reached("gate: planned")
        return answer

    # ---- planning ----

    def _offset(
        self,
        here: Offset | None,
        before: PlannerState,
        after: PlannerState,
        judge: Known,
        told_: str,
    ) -> Offset:
        """The end of a batch; what Spark is told by it never goes back."""
        stream = before.streams[self._gate.stream]
        message = self._gate.message(after.watermark, finished=after.finished)
        known = UNKNOWN if here is None else here.sent
        sent = known if message is None else later(known, message)
        news = after.finished > before.finished or sent != known
        return Offset(after, stream, judge, told_, sent, news)

    def _wants_one_more(self, here: Offset) -> bool:
        """Whether a batch must follow for what the last one told, though nothing has come.

        A batch of ours notes the frontier, and the end, of its start. Where operators have state
        Spark runs a batch for a new watermark; where they have none it would not.
        """
        if not here.news or not self._siblings.settled:
            return False
        found = self._store.database.read(lambda on: queries.look(on, self._gate.name))
        return found is not None

    def _planned(
        self, start: dict[str, Any], before: PlannerState
    ) -> tuple[PlannerState, Idleness, str]:
        if not self._begun and self._siblings.seen:
            # Who belongs to the query is known when each has spoken: no row is judged before.
            self._begun = True
            again = replace(before, run=before.run + 1, batch=before.batch + 1)
            return again, Idleness(), "{}"
        now, versions = self._watch.now, self._watch.versions()
        after, batch = plan(
            before,
            self._watch.facts(before, now),
            self._gate.query,
            self._gate.policy,
            now,
            cores=self._gate.cores,
            beside=self._siblings.beside(),
        )
        if not self._begun:
            # Spark remembers one watermark for all: every source repeats its own, once a run.
            self._begun = True
            after = replace(after, run=before.run + 1, batch=before.batch + 1)
        if after is not before:
            self._watch.found_something()
        elif not before.finished or self._at_end:
            self._watch.found_nothing(start, versions, self._siblings.seen)
        said = json.dumps(told(batch, self._gate.cores)) if batch.moved else "{}"
        return after, batch.standing, said

    def _may_go_on(self, before: PlannerState) -> None:
        """Refuse to plan for a source whose record has gone on without us, or has ended."""
        found = self._store.database.read(lambda on: queries.look(on, self._gate.record))
        if found is not None and found.finished:
            raise errors.query_finished(self._gate.name)
        step = queries.Step(self._gate.record, before.lineage, before.batch, "", UNKNOWN)
        if before.batch:
            queries.check(found, step)
        elif found is not None:
            raise queries.fenced(step, found)

    # ---- what has become durable ----

    def _settle(self, start: dict[str, Any], here: Offset | None, end: Offset, words: Said) -> None:
        """The one transaction: late and bad rows, how far this source is, and what it says."""
        found: Routed | None = None
        if here is not None and here.state.batch > self._routed:
            batch = here.batch(self._gate, questions_of(self._logs))
            found = route(self._gate, self._store, self._log, batch)
        # Asked a second time when all are at the end: what their messages called for has been run.
        self._at_end += here is not None and here.state.finished and self._siblings.all_finished
        renewed = time.monotonic() - self._held > HOLD
        news = (replace(words, asked=0), self._siblings.settled, self._at_end > 1)
        if found is None and news == self._said and not renewed:
            return
        staged = [] if found is None else list(found.staged)

        def work(on: Connection) -> None:
            now = self._store.clock()
            if here is not None and found is not None:
                record = queries.commit(on, _step(self._gate, start, here.state), now)
                if record is not None:
                    publish_staged(on, self._store, staged, now)
                    counted = totals.added(record.totals, found.counted(json.loads(here.told)))
                    queries.count(on, self._gate.record, counted)
            if self._at_end > 1:
                queries.finish(on, self._gate.record, now)
            if here is not None and (found is not None or renewed):
                self._hold(on, here.state, now)
            self._siblings.tell(on, words, *self._progress(here), now)

        while True:
            try:
                self._store.database.write(work)
                break
            except SegmentSealed as sealed:
                staged = reroute(self._store, staged, sealed)
        self._said = news
        if here is not None:
            self._hold_elsewhere(here.state)
            self._routed, self._held = here.state.batch, time.monotonic()
        reached("gate: settled")

    def _progress(self, here: Offset | None) -> tuple[Known, dict[str, Any]]:
        """How far the source is, and what is told of its partitions."""
        if here is None:
            return UNKNOWN, {}
        told = json.loads(here.told)
        more = totals.partitions_of(here.state.streams[self._gate.stream])
        return totals.told_number(told, self._gate.stream), {**more, **told}

    def _hold(self, on: Connection, state: PlannerState, now: Instant) -> None:
        """Keep back from retention what a replay of the next batch would read."""
        if not isinstance(self._log, StoreLog) or self._log.store is not self._store:
            return
        record = streams.get(on, self._log.name)
        if state.finished:
            holds.release(on, record, self._gate.record)
        else:
            holds.hold(on, record, self._gate.record, self._needed(state), now)

    def _hold_elsewhere(self, state: PlannerState) -> None:
        """The same in the stream's own store, where that is not the one of the query's record."""
        log = self._log
        if isinstance(log, StoreLog) and log.store is not self._store and not state.finished:
            log.store.hold(log.name, self._gate.record, self._needed(state))

    def _needed(self, state: PlannerState) -> Offsets:
        stream = state.streams[self._gate.stream]
        return stream.cut() or stream.start_cut


def _step(gate: Gate, start: dict[str, Any], state: PlannerState) -> queries.Step:
    """The batch that led to an offset, as a step of the record of its source."""
    return queries.Step(
        gate.record, state.lineage, state.batch, fingerprint(start), state.watermark
    )
