"""ISO 8601 texts, such as 2026-01-31T12:00:00.5+01:00; without a zone they are UTC.

Single texts are read by `parse_instant`. A column goes through Arrow's own reader, which is strict
and fails as a whole: so only texts that are known to be valid are handed to it, and the rest (week
dates, basic format, the years before 1000) is read one by one.

>>> IsoTime().parse("1969-12-31T23:59:59.9999999Z")        # rounded down
-1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import errors
from tidegate.eventtime.instants import parse_instant
from tidegate.eventtime.parsers.column import BadReason, Parsed
from tidegate.eventtime.parsers.parser import TEXT, Notation, Swift

_LEAP_DAY: Final = (
    r"(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29"
)
_DAY_OF_YEAR: Final = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)"
)
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"
_ZONE: Final = r"(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"
_VALID: Final = rf"^(?:[1-9][0-9]{{3}}-{_DAY_OF_YEAR}|{_LEAP_DAY})(?:[T ]{_CLOCK}(?:{_ZONE})?)?$"
_ENDS_WITH_ZONE: Final = rf":[0-9.]+{_ZONE}$"
_TOO_FINE: Final = r"(\.[0-9]{6})[0-9]+"
_DATE_LENGTH: Final = len("2026-01-31")


@dataclass(frozen=True)
class IsoTime(Notation):
    """A date, or a date and time of day, in ISO 8601."""

    @property
    def reads(self) -> str:
        """What it can read, in words."""
        return "ISO 8601 texts, timestamps and dates"

    def read_text(self, text: str) -> Parsed:
        """One text."""
        try:
            return parse_instant(text)
        except errors.InputError:
            return BadReason.UNPARSABLE

    def read_texts(self, texts: pa.Array) -> Swift:
        """The extended format from the year 1000 on: what nearly everybody writes."""
        return read_extended(texts)


def read_extended(texts: pa.Array) -> Swift:
    """The texts of a column in the extended format, by Arrow's reader."""
    valid = pc.match_substring_regex(texts, _VALID)
    chosen = _completed(texts.filter(valid))
    times = chosen.cast(pa.timestamp("us", "UTC")).view(pa.int64()).to_numpy()
    return Swift(
        np.flatnonzero(valid.to_numpy(zero_copy_only=False)),
        times,
        np.ones(len(times), dtype=np.bool_),  # the years 1000 to 9999
    )


def joined(separator: str, *parts: pa.Array) -> pa.Array:
    """The texts of several columns put together, row by row."""
    wide = [part.cast(TEXT) for part in parts]
    return pc.binary_join_element_wise(*wide, pa.scalar(separator, TEXT))


def _completed(texts: pa.Array) -> pa.Array:
    """The same instants in the one form that Arrow reads: date, time, at most 6 digits, zone."""
    clock = pc.if_else(pc.equal(pc.binary_length(texts), _DATE_LENGTH), "T00:00:00Z", "")
    texts = joined("", texts, clock)
    zone = pc.if_else(pc.match_substring_regex(texts, _ENDS_WITH_ZONE), "", "Z")
    texts = joined("", texts, zone)
    fine = pc.match_substring_regex(texts, _TOO_FINE)
    if pc.any(fine).as_py():
        texts = pc.replace_substring_regex(texts, _TOO_FINE, r"\1")
    return texts
