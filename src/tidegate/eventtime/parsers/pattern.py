"""Times in a notation of the user's own, described by a pattern as for `strptime`.

Single texts are read by Python's `strptime`. A column is taken apart by a regular expression and
put together as ISO 8601, where the pattern allows that and the text fills every field; any other
text is read one by one. A pattern must tell the day: a time of day alone is no event time.

>>> PatternTime("%d/%m/%Y %H:%M").parse("31/01/2026 12:00")
1769860800000000
>>> PatternTime("%d/%b/%Y:%H:%M:%S %z").parse("31/Jan/2026:12:00:00 +0100")
1769857200000000
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import errors
from tidegate.eventtime.instants import from_datetime
from tidegate.eventtime.parsers.column import BadReason, Parsed
from tidegate.eventtime.parsers.iso import joined, read_extended
from tidegate.eventtime.parsers.parser import BLANKS, TEXT, Notation, Swift

# A day that no missing field could give by chance: strptime fills up with 1900-01-01.
_SAMPLE: Final = datetime(2026, 7, 31, 11, 22, 33, 444444, tzinfo=UTC)

_TOKEN: Final = re.compile(r"%(.)|(\s+)|([^%\s]+)")
_FIELDS: Final = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "[0-9]{2}",
    "d": "[0-9]{2}",
    "H": "[0-9]{2}",
    "M": "[0-9]{2}",
    "S": "[0-9]{2}",
    "f": "[0-9]{1,6}",
    "z": "(?:Z|[+-][0-9]{2}:?[0-9]{2})",
}
_NOTHING: Final = Swift(
    np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
)


@dataclass(frozen=True)
class PatternTime(Notation):
    """Texts that `strptime` reads with this pattern; without %z they are UTC."""

    pattern: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", self.pattern.strip(BLANKS))
        if "%Z" in self.pattern.replace("%%", ""):
            raise errors.event_time_pattern_refused(
                self.pattern, "names of zones (%Z) mean different hours in different places"
            )
        try:
            read = datetime.strptime(_SAMPLE.strftime(self.pattern), self.pattern)  # noqa: DTZ007
        except (ValueError, re.error) as problem:
            raise errors.event_time_pattern_refused(self.pattern, str(problem)) from None
        if read.date() != _SAMPLE.date():
            raise errors.event_time_pattern_refused(self.pattern, "it does not tell the day")

    @property
    def reads(self) -> str:
        """What it can read, in words."""
        return f'texts like "{_SAMPLE.strftime(self.pattern)}", timestamps and dates'

    def read_text(self, text: str) -> Parsed:
        """One text."""
        try:
            return from_datetime(datetime.strptime(text, self.pattern))  # noqa: DTZ007
        except (ValueError, OverflowError):
            return BadReason.UNPARSABLE

    def read_texts(self, texts: pa.Array) -> Swift:
        """The texts that fill every field of a pattern of plain fields."""
        if self._regex is None:
            return _NOTHING
        found = pc.extract_regex(texts, self._regex)
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        found = found.drop_null()
        fields = {field.name: found.field(field.name) for field in found.type}
        swift = read_extended(_as_iso(fields, len(found)))
        return Swift(rows[swift.rows], swift.times, swift.inside)

    @cached_property
    def _regex(self) -> str | None:
        """The pattern with every field filled; None where `strptime` knows more than this."""
        fields = dict(_FIELDS, b="|".join(map(re.escape, _month_names())))
        parts: list[str] = []
        used: set[str] = set()
        for directive, blank, literal in _TOKEN.findall(self.pattern):
            if directive == "%":
                parts.append("%")
            elif directive in fields:
                parts.append(f"(?P<{directive}>{fields[directive]})")
                used.add(directive)
            elif directive:
                return None
            else:
                parts.append(" " if blank else re.escape(literal))
        one_each = all(len(used & kind) == 1 for kind in ({"Y", "y"}, {"m", "b"}, {"d"}))
        # A fraction or a zone before digits could end in several places: strptime decides where.
        ambiguous = re.search(r"%f(?:[0-9]|%[^z%])|%z(?:[0-9]|%[^%])", self.pattern)
        return f"^{''.join(parts)}$" if one_each and not ambiguous else None


def _as_iso(fields: dict[str, pa.Array], count: int) -> pa.Array:
    """ISO 8601 texts from the fields of a pattern; a field that it has not is zero."""

    def field(name: str, default: str) -> pa.Array:
        return fields[name] if name in fields else pa.repeat(default, count)

    day = joined("-", _year(fields), _month(fields), fields["d"])
    clock = joined(":", field("H", "00"), field("M", "00"), field("S", "00"))
    return joined("", joined("T", day, joined(".", clock, field("f", "0"))), field("z", "Z"))


def _year(fields: dict[str, pa.Array]) -> pa.Array:
    if "Y" in fields:
        return fields["Y"]
    # As in POSIX: 69 to 99 are the last century's.
    century = pc.if_else(pc.less(fields["y"], "69"), "20", "19")
    return joined("", century, fields["y"])


def _month(fields: dict[str, pa.Array]) -> pa.Array:
    if "m" in fields:
        return fields["m"]
    place = pc.index_in(fields["b"], pa.array(_month_names(), TEXT))
    return pa.array([f"{month:02d}" for month in range(1, 13)]).take(place)


def _month_names() -> list[str]:
    return [calendar.month_abbr[month] for month in range(1, 13)]
