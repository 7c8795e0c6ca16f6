"""A log in memory with writers that append, note time and use transactions, told naively.

Writers keep their promises and do nothing else in order: rows come from any time on that was
promised, transactions overlap, segments are scaled, writers fall silent and come back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from tests.laws.lineages import ancestors

from tidegate.eventtime.watermark import UNKNOWN
from tidegate.marks import (
    Cut,
    Generation,
    Lineage,
    Mark,
    MarkPolicy,
    WriterMark,
    WriterMarks,
    WriterNotes,
    cycle,
)


class Row(NamedTuple):
    step: int
    writer: str
    segment: str
    offset: int
    time: int

    def lies_before(self, cut: Cut, lineage: Lineage) -> bool:
        if self.segment in cut:
            return self.offset < cut[self.segment]
        return any(self.segment in ancestors(lineage, name) for name in cut)


@dataclass
class Writer:
    name: str
    notes: WriterNotes
    promised: int = 0
    own: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    buffers: dict[str, list[tuple[Fraction, int]]] = field(default_factory=dict)


class MarkedLog:
    def __init__(self, segments: int, timeout: int) -> None:
        self.lineage = Lineage.start(segments)
        self.policy = MarkPolicy(timedelta(microseconds=timeout))
        self.registry = WriterMarks()
        self.state = json.dumps(Generation().to_json())
        self.writers: dict[str, Writer] = {}
        self.tails: dict[str, int] = {}
        self.rows: list[Row] = []
        self.counted: list[tuple[int, str, int]] = []
        self.marks: list[Mark] = []
        self.step = self.now = 0

    def writer(self, name: str) -> Writer:
        return self.writers.setdefault(name, Writer(name, WriterNotes(WriterMark(name))))

    # ---- what writers do ----

    def register(self, name: str) -> None:
        writer = self.writer(name)
        writer.notes = replace(writer.notes, mark=self.registry.register(name))

    def append(self, name: str, key: Fraction, ahead: int) -> None:
        self._place(self.writer(name), key, self.writer(name).promised + ahead)

    def begin(self, name: str) -> None:
        writer = self.writer(name)
        transaction = f"t{self.step}"
        writer.notes = writer.notes.begin(transaction)
        writer.buffers[transaction] = []

    def put(self, name: str, key: Fraction, ahead: int, which: int) -> None:
        writer = self.writer(name)
        if writer.buffers:
            chosen = sorted(writer.buffers)[which % len(writer.buffers)]
            writer.buffers[chosen].append((key, writer.promised + ahead))

    def commit(self, name: str, which: int, ahead: int | None) -> None:
        writer = self.writer(name)
        if writer.buffers:
            chosen = sorted(writer.buffers)[which % len(writer.buffers)]
            for row in writer.buffers.pop(chosen):
                self._place(writer, *row)
            time = None if ahead is None else writer.promised + ahead
            self._noted(
                writer, writer.notes.commit(chosen, self._at(writer), self.lineage, time=time)
            )
            writer.promised = max(writer.promised, time or 0)

    def abort(self, name: str, which: int) -> None:
        writer = self.writer(name)
        if writer.buffers:
            chosen = sorted(writer.buffers)[which % len(writer.buffers)]
            del writer.buffers[chosen]
            self._noted(writer, writer.notes.abort(chosen, self._at(writer), self.lineage))

    def note(self, name: str, ahead: int) -> None:
        writer = self.writer(name)
        writer.promised += ahead
        self._noted(writer, writer.notes.note(writer.promised, self._at(writer), self.lineage))

    def goodbye(self, name: str) -> None:
        writer = self.writer(name)
        while writer.buffers:
            self.abort(name, 0)
        if self.registry.get(name) is not None:
            said = self.registry.goodbye(name, Cut(writer.own), self.lineage)
            writer.notes = replace(writer.notes, mark=said)

    # ---- what happens to the stream ----

    def scale(self, place: int, inner: set[int]) -> None:
        segments = self.lineage.open_in(self.lineage.epoch)
        first = place % len(segments)
        run = segments[first : first + 2]
        low, high = run[0].low, run[-1].high
        bounds = [low, *(low + (high - low) * Fraction(n, 6) for n in sorted(inner)), high]
        self.lineage = self.lineage.scale((segment.name for segment in run), pairwise(bounds))

    def cycle(self, passed: int) -> None:
        self.now += passed
        state = Generation.from_json(json.loads(self.state))
        done = cycle(state, self.registry, self.lineage, now=self.now, policy=self.policy)
        self.state = json.dumps(done.state.to_json())
        for seen in done.dropped:
            # The controller forgets the writer; the writer does not forget what it has promised.
            self.registry.remove(seen)
        if done.mark is not None:
            self.marks.append(Mark.from_json(json.loads(json.dumps(done.mark.to_json()))))

    # ---- inside ----

    def _place(self, writer: Writer, key: Fraction, time: int) -> None:
        for segment in self.lineage.open_in(self.lineage.epoch):
            if segment.low <= key < segment.high:
                offset = self.tails.get(segment.name, 0)
                self.tails[segment.name] = writer.own[segment.name] = offset + 1
                self.rows.append(Row(self.step, writer.name, segment.name, offset, time))

    def _at(self, writer: Writer) -> Cut:
        """Where the writer stands; segments it has told about may be left out."""
        fresh = {name: end for name, end in writer.own.items() if writer.told.get(name) != end}
        return Cut(fresh if self.step % 2 else writer.own)

    def _noted(self, writer: Writer, notes: WriterNotes) -> None:
        before = writer.notes.mark
        writer.notes = WriterNotes.from_json(json.loads(json.dumps(notes.to_json())))
        mark = notes.mark
        if mark != before and mark.time is not UNKNOWN:
            self.registry.note(writer.name, mark.time, mark.position, self.lineage)
            self.counted.append((self.step, writer.name, mark.time))
            writer.told = dict(writer.own)
