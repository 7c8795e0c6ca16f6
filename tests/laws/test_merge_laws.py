"""Laws of the merge and of what is built on it: tracker, lanes, alignment.

Every running thing is held against a naive one that looks at everything again, after every act of a
random script. What never goes back is checked on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.naive import ScanningTracker, instant_of, latest, scanned

from tidegate.errors import TidegateError
from tidegate.eventtime.alignment import AlignmentGroup, AlignmentMode
from tidegate.eventtime.lanes import CoreWatermarkState, GlobalWatermarkCollector
from tidegate.eventtime.merge import Merge, Report, combine
from tidegate.eventtime.tracker import PartitionedWatermarkTracker, PartitionId
from tidegate.eventtime.watermark import IDLE, UNKNOWN, Known
from tidegate.testing import ManualClock

law = settings(deadline=None, max_examples=150)

instants = st.integers(-9, 9)
known = st.just(UNKNOWN) | instants
reports = st.builds(Report, known) | st.builds(Report, st.just(IDLE), known)
slots = st.integers(0, 11)

Act = tuple[Any, ...]


def at_or_after(now: Known, before: Known) -> bool:
    return latest(before, now) == now


# ---- the rule ----


@law
@given(st.lists(reports, max_size=8), st.randoms(use_true_random=False))
def test_merge_is_commutative(parts: list[Report], random: Any) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)
    assert combine(shuffled) == combine(parts) == scanned(parts)


@law
@given(st.lists(st.lists(reports, max_size=4), max_size=5))
def test_merge_is_associative_merging_any_groups_equals_the_flat_merge(
    groups: list[list[Report]],
) -> None:
    flat = [report for group in groups for report in group]
    assert combine([combine(group) for group in groups]) == combine(flat) == scanned(flat)


@law
@given(st.lists(reports, max_size=6))
def test_merge_is_idempotent(parts: list[Report]) -> None:
    once = combine(parts)
    assert combine([once]) == once
    assert combine([once, once]) == once
    assert combine([*parts, *parts, once]) == once


# ---- the merge, kept incrementally ----

batches = st.lists(slots, max_size=6)
merge_acts = st.lists(
    st.one_of(
        st.tuples(st.just("update"), slots, instants),
        st.tuples(st.just("update"), slots, instants),
        st.tuples(st.just("idle"), slots),
        st.tuples(st.just("active"), slots),
        st.tuples(st.just("remove"), slots),
        st.tuples(st.just("add"), slots),
        st.tuples(st.just("grow"), st.integers(0, 3)),
        st.tuples(st.just("put"), slots, reports),
        st.tuples(st.just("put_many"), st.dictionaries(slots, reports, max_size=4)),
        st.tuples(st.just("update_many"), st.lists(st.tuples(slots, instants), max_size=6)),
        st.tuples(st.just("idle_many"), batches),
        st.tuples(st.just("remove_many"), batches),
        st.tuples(st.just("load"), st.lists(st.tuples(instants, st.booleans(), st.booleans()))),
    ),
    max_size=30,
)


@dataclass
class ScanningMerge:
    """Slots in a dictionary; a slot that is not there is skipped, as callers of the merge do."""

    slots: dict[int, Report] = field(default_factory=dict)
    size: int = 0
    combined: Known = UNKNOWN

    def settle(self) -> bool:
        before = self.combined
        self.combined = latest(before, instant_of(scanned(self.slots.values())))
        return self.combined != before

    def update(self, slot: int, instant: int) -> None:
        self.slots[slot] = Report(latest(instant_of(self.slots[slot]), instant))

    def idle(self, slot: int) -> None:
        self.slots[slot] = Report(IDLE, instant_of(self.slots[slot]))


def column(numbers: list[int]) -> Any:
    return np.array(numbers, dtype=np.intp)


def carry_out(act: Act, merge: Merge, naive: ScanningMerge) -> None:
    """Do the same to both; acts on slots that are not there are left out."""
    match act:
        case ("update", slot, instant) if slot in naive.slots:
            moved = merge.update(slot, instant)
            naive.update(slot, instant)
            assert moved == naive.settle()
        case ("idle", slot) if slot in naive.slots:
            moved = merge.idle(slot)
            naive.idle(slot)
            assert moved == naive.settle()
        case ("active", slot) if slot in naive.slots:
            merge.active(slot)
            naive.slots[slot] = Report(instant_of(naive.slots[slot]))
            assert not naive.settle(), "to wait for one more moves nothing"
        case ("remove", slot) if slot in naive.slots:
            moved = merge.remove(slot)
            del naive.slots[slot]
            assert moved == naive.settle()
        case ("add", slot) if slot not in naive.slots:
            merge.add(slot)
            naive.slots[slot] = Report(UNKNOWN)
            naive.size = max(naive.size, slot + 1)
        case ("grow", count):
            merge.grow(count)
            naive.slots |= {naive.size + i: Report(UNKNOWN) for i in range(count)}
            naive.size += count
        case ("put", slot, report) if slot in naive.slots:
            moved = merge.put(slot, report)
            naive.slots[slot] = report
            assert moved == naive.settle()
        case ("put_many", chosen):
            heard = {slot: report for slot, report in chosen.items() if slot in naive.slots}
            moved = merge.put_many(heard)
            naive.slots |= heard
            assert moved == naive.settle()
        case ("update_many", batch):
            there = [(slot, instant) for slot, instant in batch if slot in naive.slots]
            moved = merge.update_many(
                column([slot for slot, _ in there]),
                np.array([instant for _, instant in there], dtype=np.int64),
            )
            for slot, instant in there:
                naive.update(slot, instant)
            assert moved == naive.settle()
        case ("idle_many", batch):
            numbers = [slot for slot in batch if slot in naive.slots]
            moved = merge.idle_many(column(numbers))
            for slot in numbers:
                naive.idle(slot)
            assert moved == naive.settle()
        case ("remove_many", batch):
            numbers = [slot for slot in batch if slot in naive.slots]
            moved = merge.remove_many(column(numbers))
            naive.slots = {s: r for s, r in naive.slots.items() if s not in numbers}
            assert moved == naive.settle()
        case ("load", rows):
            merge.load(
                np.array([instant for instant, _, _ in rows], dtype=np.int64),
                np.array([is_known for _, is_known, _ in rows], dtype=np.bool_),
                np.array([idle for _, _, idle in rows], dtype=np.bool_),
            )
            stands = [(instant if is_known else UNKNOWN, idle) for instant, is_known, idle in rows]
            naive.slots = {
                slot: Report(IDLE, at) if idle else Report(at)
                for slot, (at, idle) in enumerate(stands)
            }
            naive.size = len(rows)
            naive.settle()


@law
@given(st.integers(0, 4), merge_acts)
def test_the_merge_equals_a_scan_after_every_act_and_never_goes_back(
    size: int, acts: list[Act]
) -> None:
    merge = Merge(size)
    naive = ScanningMerge({slot: Report(UNKNOWN) for slot in range(size)}, size)
    for act in acts:
        before = merge.combined
        carry_out(act, merge, naive)
        assert merge.combined == naive.combined
        assert at_or_after(merge.combined, before)
        assert merge.report == scanned(naive.slots.values())
        assert len(merge) == naive.size
        times, is_known, idle, present = (part.tolist() for part in merge.columns())
        for slot in range(naive.size):
            report = naive.slots.get(slot)
            assert merge.present(slot) == present[slot] == (report is not None)
            if report is not None:
                assert merge.instant(slot) == instant_of(report)
                assert merge.is_idle(slot) == idle[slot] == (report.watermark is IDLE)
                assert is_known[slot] == (instant_of(report) is not UNKNOWN)
                assert times[slot] == (instant_of(report) if is_known[slot] else 0)


# ---- the tracker ----

partitions = st.builds(PartitionId, st.integers(0, 2), st.integers(-1, 6))
lateness = st.integers(0, 5).map(lambda us: timedelta(microseconds=us))
TIMEOUT = timedelta(microseconds=3)

tracker_acts = st.lists(
    st.one_of(
        st.tuples(st.just("register_source"), st.integers(0, 2), st.integers(-1, 6)),
        st.tuples(st.just("update_partition"), partitions, instants),
        st.tuples(st.just("update_partition"), partitions, instants),
        st.tuples(st.just("update_partition_from_event"), partitions, instants, lateness),
        st.tuples(
            st.just("update_many"),
            st.lists(st.tuples(partitions, instants), max_size=5),
            st.none() | lateness,
        ),
        st.tuples(st.just("add_partition"), partitions),
        st.tuples(st.just("remove_partition"), partitions),
        st.tuples(st.just("mark_partition_idle"), partitions),
        st.tuples(st.just("mark_many_idle"), st.integers(0, 2), batches),
        st.tuples(st.just("mark_partition_active"), partitions),
        st.tuples(st.just("assign_partition_to_core"), partitions, st.integers(0, 3)),
        st.tuples(st.just("check_idle_partitions")),
        st.tuples(st.just("sleep"), st.integers(0, 4)),
    ),
    max_size=30,
)

Tracker = PartitionedWatermarkTracker | ScanningTracker


def outcome(act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call returns, or the whole text of what it raises."""
    try:
        return act(*arguments, **options)
    except TidegateError as error:
        return str(error)


def do(tracker: Tracker, act: Act) -> Any:
    match act:
        case ("update_many", batch, max_lateness):
            there = [partition for partition, _ in batch]
            times = np.array([time for _, time in batch], dtype=np.int64)
            result = outcome(tracker.update_many, there, times, max_lateness=max_lateness)
        case ("mark_many_idle", source, numbers):
            result = outcome(tracker.mark_many_idle, source, column(numbers))
        case (name, *arguments):
            return outcome(getattr(tracker, name), *arguments)
    # Of several that are not there, any may be named.
    return "refused" if isinstance(result, str) else result


def seen(tracker: Tracker) -> list[Any]:
    """Everything that can be asked of a tracker."""
    answers: list[Any] = [tracker.current_watermark(), tracker.sources(), tracker.metrics()]
    for source in range(3):
        answers += [
            outcome(tracker.source_watermark, source),
            outcome(tracker.partition_count, source),
            outcome(tracker.active_partition_count, source),
        ]
        for number in range(-1, 8):
            partition = PartitionId(source, number)
            answers += [
                outcome(tracker.partition_state, partition),
                outcome(tracker.partition_watermark, partition),
                outcome(tracker.is_partition_idle, partition),
                outcome(tracker.partition_core, partition),
            ]
    return answers


@law
@given(st.lists(st.integers(0, 5), max_size=3), tracker_acts)
def test_the_tracker_equals_a_scan_per_update_and_never_goes_back(
    counts: list[int], acts: list[Act]
) -> None:
    clock = ManualClock(at=100)
    tracker = PartitionedWatermarkTracker(idle_timeout=TIMEOUT, clock=clock.seconds)
    naive = ScanningTracker(idle_timeout=TIMEOUT, clock=clock.seconds)
    for source, count in enumerate(counts):
        tracker.register_source(source, count)
        naive.register_source(source, count)
    for act in acts:
        if act[0] == "sleep":
            clock.advance(timedelta(microseconds=act[1]))
            continue
        before = tracker.current_watermark()
        assert do(tracker, act) == do(naive, act)
        assert seen(tracker) == seen(naive)
        assert at_or_after(tracker.current_watermark(), before)


@law
@given(
    st.lists(st.tuples(slots, instants), min_size=1, max_size=12),
    st.lists(st.tuples(slots, instants), max_size=12),
    batches,
)
def test_a_batch_equals_single_updates_in_any_order_once_everybody_is_awake(
    history: list[tuple[int, int]], batch: list[tuple[int, int]], idle: list[int]
) -> None:
    one, many = PartitionedWatermarkTracker(), PartitionedWatermarkTracker()
    for tracker in (one, many):
        tracker.register_source(0, 12)
        for number, time in history:
            tracker.update_partition(PartitionId(0, number), time)
        tracker.mark_many_idle(0, column(idle))
    many.update_many(
        column([number for number, _ in batch]),
        np.array([time for _, time in batch], dtype=np.int64),
    )
    for number, _ in batch:
        one.mark_partition_active(PartitionId(0, number))
    for number, time in reversed(batch):
        one.update_partition(PartitionId(0, number), time)
    assert one.current_watermark() == many.current_watermark()
    for number in range(12):
        partition = PartitionId(0, number)
        assert one.partition_state(partition) == many.partition_state(partition)


@law
@given(st.lists(st.tuples(instants, st.booleans(), st.booleans()), max_size=9), tracker_acts)
def test_a_tracker_loaded_from_columns_goes_on_as_the_one_they_came_from(
    rows: list[tuple[int, bool, bool]], acts: list[Act]
) -> None:
    clock = ManualClock()
    first = PartitionedWatermarkTracker(idle_timeout=TIMEOUT, clock=clock.seconds)
    first.register_source(0, len(rows))
    for number, (time, is_known, idle) in enumerate(rows):
        if is_known:
            first.update_partition(PartitionId(0, number), time)
        if idle:
            first.mark_partition_idle(PartitionId(0, number))
    restarted = PartitionedWatermarkTracker(idle_timeout=TIMEOUT, clock=clock.seconds)
    times, is_known_column, idle_column, _ = first.source_columns(0)
    restarted.load_source(0, times, is_known_column, idle_column)
    before = first.current_watermark()
    assert at_or_after(before, restarted.current_watermark())
    for act in acts:
        if act[0] == "sleep":
            clock.advance(timedelta(microseconds=act[1]))
            continue
        do(first, act)
        do(restarted, act)
        # What was said before the restart stands; beyond it both say the same.
        assert latest(before, restarted.current_watermark()) == first.current_watermark()


# ---- lanes ----

LANES = 3
lane_acts = st.lists(
    st.one_of(
        st.tuples(st.just("update"), partitions, instants),
        st.tuples(st.just("update"), partitions, instants),
        st.tuples(st.just("idle"), partitions),
        st.tuples(st.just("remove"), partitions),
        st.tuples(st.just("add"), partitions, st.integers(0, LANES - 1)),
        st.tuples(st.just("add"), partitions, st.integers(0, LANES - 1)),
        st.tuples(st.just("move"), partitions, st.integers(0, LANES - 1)),
        st.tuples(st.just("move"), partitions, st.integers(0, LANES - 1)),
    ),
    max_size=40,
)


@law
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, LANES - 1)), max_size=6),
    lane_acts,
)
def test_lanes_and_collector_equal_one_tracker_for_every_assignment_and_reassignment(
    assignment: list[tuple[int, int]], acts: list[Act]
) -> None:
    tracker = PartitionedWatermarkTracker()
    for source in range(3):
        tracker.register_source(source, 0)
    lanes = [CoreWatermarkState(core) for core in range(LANES)]
    collector = GlobalWatermarkCollector(LANES)
    lane_of: dict[PartitionId, CoreWatermarkState] = {}
    for number, (source, core) in enumerate(assignment):
        lane_of[PartitionId(source, number)] = lanes[core]
        tracker.add_partition(PartitionId(source, number))
        lanes[core].assign(PartitionId(source, number))
    collector.gather(lanes)
    assert collector.global_watermark == tracker.current_watermark()
    for act in acts:
        before = collector.global_watermark
        partition = act[1]
        here = lane_of.get(partition)
        changed = [here] if here else []
        match act:
            case ("update", _, time) if here:
                tracker.update_partition(partition, time)
                here.update(partition, time)
            case ("idle", _) if here:
                tracker.mark_partition_idle(partition)
                here.mark_idle(partition)
            case ("remove", _) if here:
                tracker.remove_partition(partition)
                assert here.remove(partition)
                del lane_of[partition]
            case ("add", _, core) if not here and partition.partition >= 0:
                tracker.add_partition(partition)
                lanes[core].assign(partition)
                lane_of[partition] = lanes[core]
                changed = [lanes[core]]
            case ("move", _, core) if here and here.core != core:
                there = lanes[core]
                there.assign(partition, here.watermark(partition), idle=here.is_idle(partition))
                here.remove(partition)
                lane_of[partition] = there
                changed = [here, there]
        moved = collector.gather(changed)
        assert collector.global_watermark == tracker.current_watermark()
        assert moved == (collector.global_watermark != before)
        assert at_or_after(collector.global_watermark, before)
        collector.broadcast(lanes)
        for lane in lanes:
            assert lane.global_watermark == collector.global_watermark
            held = [p for p, owner in lane_of.items() if owner is lane]
            stands = [tracker.partition_state(p) for p in held]
            assert lane.report() == scanned(
                Report(IDLE, state.watermark) if state.idle else Report(state.watermark)
                for state in stands
            )


# ---- alignment ----

members = st.sampled_from("abcd")
alignment_acts = st.lists(
    st.one_of(
        st.tuples(st.just("register"), members),
        st.tuples(st.just("register"), members),
        st.tuples(st.just("report"), members, instants),
        st.tuples(st.just("report"), members, instants),
        st.tuples(st.just("idle"), members),
        st.tuples(st.just("remove"), members),
    ),
    max_size=30,
)


@law
@given(st.integers(0, 6), st.sampled_from(AlignmentMode), alignment_acts)
def test_alignment_equals_a_scan_over_its_members(
    drift: int, mode: AlignmentMode, acts: list[Act]
) -> None:
    group = AlignmentGroup(timedelta(microseconds=drift), mode)
    position: dict[str, Known] = {}
    counted: set[str] = set()

    def slowest() -> Known:
        return min((at for m in counted if (at := position[m]) is not UNKNOWN), default=UNKNOWN)

    def verdict(member: str) -> str:
        at, slow = position[member], slowest()
        too_far = at is not UNKNOWN and slow is not UNKNOWN and at - slow > drift
        return mode.value if too_far else "continue"

    for act in acts:
        match act:
            case ("register", member):
                group.register(member)
                position.setdefault(member, UNKNOWN)
            case ("report", member, at) if member in position:
                verdict_given = group.report(member, at)
                position[member] = latest(position[member], at)
                counted.add(member)
                assert verdict_given.value == verdict(member)
            case ("idle", member) if member in position:
                group.mark_idle(member)
                counted.discard(member)
            case ("remove", member) if member in position:
                group.remove(member)
                counted.discard(member)
                del position[member]
        slow = slowest()
        assert group.slowest() == slow
        assert group.horizon() == (UNKNOWN if slow is UNKNOWN else slow + drift)
        for member in position:
            assert group.should_resume(member) == (verdict(member) != "pause")


@law
@given(st.integers(0, 6), st.lists(st.tuples(instants, st.booleans()), max_size=8))
def test_a_group_over_columns_equals_the_same_reports_one_by_one(
    drift: int, columns: list[tuple[int, bool]]
) -> None:
    allowed = timedelta(microseconds=drift)
    whole = AlignmentGroup.over(
        allowed,
        np.array([at for at, _ in columns], dtype=np.int64),
        np.array([counts for _, counts in columns], dtype=np.bool_),
    )
    single = AlignmentGroup(allowed)
    for member, (at, counts) in enumerate(columns):
        single.register(member)
        single.report(member, at)
        if not counts:
            single.mark_idle(member)
    assert whole.horizon() == single.horizon()
    for member in range(len(columns)):
        assert whole.should_resume(member) == single.should_resume(member)
