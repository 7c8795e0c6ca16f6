"""Parsers: what a row says about its time, turned into an instant.

A parser has two faces, one value and a whole Arrow column, and both give the same answer. What
cannot be read is a bad row with a reason, never an exception. Times finer than a microsecond are
rounded down. Start with `parser.py`; `units.py` holds the arithmetic of numbers; then one file per
kind of notation.

>>> import pyarrow as pa
>>> UnixTime("s").parse("1.5"), UnixTime("ms").parse("soon")
(1500000, <BadReason.UNPARSABLE: 'unparsable'>)
>>> parsed = UnixTime("ms").parse_column(pa.array([7, None, 1 << 62]))
>>> parsed.times.to_pylist(), parsed.reasons.to_pylist()
([7000, None, None], [None, 'missing', 'out of range'])
"""

from tidegate.eventtime.parsers.column import BadReason, Parsed, ParsedColumn
from tidegate.eventtime.parsers.function import FunctionTime
from tidegate.eventtime.parsers.iso import IsoTime
from tidegate.eventtime.parsers.parser import EventTimeParser
from tidegate.eventtime.parsers.pattern import PatternTime
from tidegate.eventtime.parsers.unix import UnixTime

__all__ = [
    "BadReason",
    "EventTimeParser",
    "FunctionTime",
    "IsoTime",
    "Parsed",
    "ParsedColumn",
    "PatternTime",
    "UnixTime",
]
