"""Marks: what writers promise about time, and from which place in the log on it holds.

This room is for carrying exact event time through a log: writers note time, the marks of all of
them are combined into one with a cut, readers and planners find their time from their place. It may
import `tidegate.eventtime` and `tidegate.errors`; `now` is always an argument, and what must last
is plain data. Start reading in `cut.py` (a place in the log) and `lineage.py` (what scaling does to
places; `segment.py` and `ancestry.py` are its parts), then follow a promise: `writer_mark.py`,
`transaction_notes.py` (when it counts), `generation.py` (the controller's cycle), `mark.py` (what
comes out), `window.py` and `time_index.py` (what readers make of it).

>>> from datetime import timedelta
>>> lineage = Lineage.start(2)
>>> writers = WriterMarks()
>>> _ = writers.note("west", 100, Cut({"0.e0": 7}), lineage)
>>> _ = writers.note("east", 105, Cut({"1.e0": 3}), lineage)
>>> done = cycle(Generation(), writers, lineage, now=0, policy=MarkPolicy(timedelta(seconds=10)))
>>> time_at(Cut({"0.e0": 9, "1.e0": 3}), [done.mark], lineage)
100
"""

from tidegate.marks.ancestry import FLAT, Ancestry, FlatLineage
from tidegate.marks.cut import Cut, join_all
from tidegate.marks.generation import Cycle, Generation, MarkPolicy, Standing, cycle
from tidegate.marks.lineage import Lineage
from tidegate.marks.mark import Mark, combined
from tidegate.marks.segment import Segment, SegmentId
from tidegate.marks.time_index import TimeIndex, time_at
from tidegate.marks.transaction_notes import WriterNotes
from tidegate.marks.window import Side, TimeWindow, side_of, time_window
from tidegate.marks.writer_mark import WriterMark, WriterMarks

__all__ = [
    # places
    "Cut",
    "join_all",
    "Ancestry",
    "FLAT",
    "FlatLineage",
    "Lineage",
    "Segment",
    "SegmentId",
    # promises
    "WriterMark",
    "WriterMarks",
    "WriterNotes",
    # marks
    "Generation",
    "MarkPolicy",
    "Standing",
    "Cycle",
    "cycle",
    "Mark",
    "combined",
    # what readers make of them
    "Side",
    "side_of",
    "TimeWindow",
    "time_window",
    "TimeIndex",
    "time_at",
]
