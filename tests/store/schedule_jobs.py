"""A job of the schedules: a planner that runs beside everything else, checked batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pyarrow as pa
from tests.store.noting import marks_of
from tests.store.schedule_model import WINDOW, JobModel, Model, Offsets

from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.logs.log import facts_of
from tidegate.logs.store_log import StoreLog
from tidegate.planning.batch import BatchPlan
from tidegate.planning.plan import plan
from tidegate.planning.policy import Policy, Release, Strategy
from tidegate.planning.query import Query
from tidegate.planning.state import PlannerState
from tidegate.store import Store
from tidegate.testing import ManualClock

IDLE_AFTER = timedelta(seconds=3)
QUERY = Query.windows(["s"], timedelta(microseconds=WINDOW))


class Job:
    """One query over the stream; it holds what it needs, as a running job does."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: ManualClock,
        model: Model,
        release: Release,
        tolerance: int | None,
    ) -> None:
        self.name, self.store, self.clock = name, store, clock
        self.log = StoreLog(store, "s")
        self.policy = Policy(
            release=release,
            watermark=Strategy.MARKS if tolerance is None else Strategy.EVENTS,
            tolerance=timedelta(microseconds=tolerance or 0),
            idle_after=IDLE_AFTER if release is Release.TIME else None,
            max_rows=7,
        )
        self.state = PlannerState.fresh(name, ["s"])
        self.model = JobModel(model, release is Release.TIME, tolerance)
        self.last: tuple[BatchPlan, Counter[int], Counter[int]] | None = None
        self._hold({}, UNKNOWN)

    def restart(self) -> None:
        """Begin a new run from the state as it was kept."""
        self.state = PlannerState.from_json(self.state.to_json()).begin_run()

    def step(self) -> bool:
        """Plan and run one batch; return whether there was one. The model has just looked."""
        # What a batch has read it may read again, until the next one is asked for.
        self.last = None
        self._hold(self.state.streams["s"].cut(), self.state.released)
        facts = facts_of({"s": self.log}, self.state)
        self.state, batch = plan(self.state, facts, QUERY, self.policy, self.clock.now())
        if not batch.moved:
            return False
        made = marks_of(self.store, "s")
        model, part = self.model, batch.streams["s"]
        new = model.new_rows(part.cut)
        late, lost = model.judged(new)
        arrivals, given_up = self._arrivals(batch, late)
        assert arrivals == Counter(new)
        assert given_up == lost
        model.check_late(late, made)
        model.arrived |= new
        model.lost.update(lost)
        model.check_watermark(_number(batch.watermark), part.cut, made)
        slices = self._slices(batch)
        if batch.slice is not None:
            a, b = batch.slice.interval.a, batch.slice.interval.b
            assert (_number(a), b % WINDOW) == (model.closed, 0)
            assert batch.watermark is not UNKNOWN
            assert b <= batch.watermark + 1
            assert slices == Counter(model.to_release(b))
            model.released.update(slices)
            model.closed = b
        elif not model.in_time_order:
            model.released.update(new - lost)
        model.watermark = _number(batch.watermark)
        self.last = (batch, arrivals, slices)
        model.check_accounts()
        return True

    def catch_up(self) -> None:
        """Run until there is nothing to do."""
        for _ in range(300):
            if not self.step():
                return
        raise AssertionError("the job does not come to an end")

    def replay(self) -> None:
        """The last batch again, after whatever has happened to the files: the same rows."""
        if self.last is not None:
            batch, arrivals, slices = self.last
            assert self._arrivals(batch, set())[0] == arrivals
            assert self._slices(batch) == slices

    # ---- reading ----

    def _arrivals(self, batch: BatchPlan, late: set[int]) -> tuple[Counter[int], set[int]]:
        """The new rows as the plan says where they lie, and those it takes for lost."""
        found, lost = Counter[int](), set[int]()
        part = batch.streams["s"]
        for segment, (start, end) in part.ranges().items():
            for rows in self.log.read(segment, start, end, ["n", "_event_time"]):
                numbers = rows.column(0).to_pylist()
                said = part.judge(rows.column(1).cast(pa.int64()).to_numpy())
                found.update(numbers)
                lost.update(n for n, is_lost in zip(numbers, said.lost, strict=True) if is_lost)
                taken = {n for n, is_late in zip(numbers, said.late, strict=True) if is_late}
                assert not late or taken == late & set(numbers)
        return found, lost

    def _slices(self, batch: BatchPlan) -> Counter[int]:
        return Counter(self._released(batch)) if batch.slice is not None else Counter()

    def _released(self, batch: BatchPlan) -> Iterator[int]:
        assert batch.slice is not None
        for task in batch.slice.tasks:
            spans, times = task.reads["s"], (task.interval.a, task.interval.b)
            for place, start, end in zip(spans.partition, spans.start, spans.end, strict=True):
                segment = spans.names[place]
                for rows in self.log.read(segment, int(start), int(end), ["n"], times):
                    yield from rows.column(0).to_pylist()

    def _hold(self, cut: Offsets | None, released: Known) -> None:
        """Keep what is unread, and what is read and not given out."""
        self.store.hold("s", f"{self.name}: unread", cut or {})
        if self.model.in_time_order:
            kept = {} if released is UNKNOWN else self.log.cut_at(released)
            self.store.hold("s", f"{self.name}: not given out", kept)


def _number(known: Known) -> int | None:
    return None if known is UNKNOWN else known
