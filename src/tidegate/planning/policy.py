"""The policy: everything a user can decide about event time, as one frozen value.

The table `SETTINGS` is the one place where the names users write (our own, the SQL keys, the
`eventtime.*` options) become fields of the policy. A name that is not in it is refused.

>>> policy = Policy.from_options({"watermark.max_out_of_orderness": "5s", "late": "drop"})
>>> policy.tolerance, policy.late
(datetime.timedelta(seconds=5), <Late.DROP: 'drop'>)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from tidegate import errors
from tidegate.eventtime.instants import (
    Instant,
    format_duration,
    from_datetime,
    parse_duration,
    parse_instant,
)
from tidegate.eventtime.lateness import Late


class Strategy(Enum):
    """How W is found."""

    AUTO = "auto"
    EVENTS = "events"
    MARKS = "marks"
    PROCESSING = "processing"


class Release(Enum):
    """In which order rows are given out."""

    ARRIVAL = "arrival"
    TIME = "time"


class Start(Enum):
    """Where a job begins, unless it is at a time or at a cut."""

    EARLIEST = "earliest"
    LATEST = "latest"


class OnUnreadable(Enum):
    """What becomes of a partition that cannot be read."""

    HOLD = "hold"
    FAIL = "fail"


class Auto(Enum):
    """`auto`, as a tolerance."""

    AUTO = "auto"


class OfStream(Enum):
    """The stream's own setting."""

    STREAM = "stream"


AUTO: Final = Auto.AUTO
OF_STREAM: Final = OfStream.STREAM
NEVER: Final = None
"""As a duration: this never happens."""


@dataclass(frozen=True)
class Policy:
    """The settings, each with its default.

    `max_rows` and `max_bytes` are without limit here; `fitted` chooses them for given executors.
    `max_amplification`: a plan that reads more than so many rows for each it releases says so.
    `max_future` is carried here and judged by the log, where a row meets the clock it came in by.
    """

    watermark: Strategy = Strategy.AUTO
    tolerance: timedelta | Auto = timedelta(0)
    idle_after: timedelta | None = timedelta(minutes=1)
    max_drift: timedelta | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    max_future: timedelta | OfStream | None = OF_STREAM
    release: Release = Release.ARRIVAL
    late: Late = Late.ROUTE
    allowed_lateness: timedelta = timedelta(0)
    start: Start | Instant | Mapping[str, Mapping[str, int]] = Start.EARLIEST
    on_unreadable: OnUnreadable = OnUnreadable.HOLD
    max_amplification: float = 8.0

    def __post_init__(self) -> None:
        for name in ("tolerance", "idle_after", "max_drift", "max_future", "allowed_lateness"):
            value = getattr(self, name)
            if isinstance(value, timedelta) and value < timedelta(0):
                raise errors.wrong_setting(name, format_duration(-value), ["0 or more"])
        for name in ("max_rows", "max_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise errors.wrong_setting(name, value, ["1 or more"])
        if self.max_amplification < 1:
            raise errors.wrong_setting("max_amplification", self.max_amplification, ["1 or more"])
        if self.late is Late.UPDATE and self.release is Release.ARRIVAL:
            raise errors.update_needs_slices()

    @staticmethod
    def from_options(options: Mapping[str, Any]) -> Policy:
        """The policy of these options, by any of their names; unknown names are refused."""
        known = {name: setting for setting in SETTINGS for name in setting.names}
        chosen: dict[str, Any] = {}
        for name, value in options.items():
            setting = known.get(name)
            if setting is None:
                raise errors.unknown_setting(name, known)
            parsed = setting.parse(name, value)
            for where, what in parsed.items():
                if where in chosen and chosen[where] != what:
                    raise errors.setting_given_twice(where, list(options))
                chosen[where] = what
        return Policy(**chosen)

    def fitted(self, *, cores: int, memory_bytes: int, held: bool = False) -> Policy:
        """The same with limits such that a batch fits executors of this size.

        What is aggregated is streamed through, so a batch may be as much of the log as there is
        memory, though a row takes several times its place in a file; an eighth of that where rows
        are `held`, to be put in order. At least 16 MiB per core, so that a batch is worth its
        overhead. Limits that were chosen stay.
        """
        if self.max_rows is not None or self.max_bytes is not None:
            return self
        return replace(self, max_bytes=max(memory_bytes // (8 if held else 1), cores * (16 << 20)))


Parsed = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """One field of the policy, every name it goes by, and how its values are read."""

    field: str
    aliases: tuple[str, ...]
    read: Callable[[str, Any], Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Our own name first."""
        return (self.field, *self.aliases)

    def parse(self, name: str, value: Any) -> Parsed:
        """The fields that this value sets."""
        parsed = self.read(name, value)
        return parsed if isinstance(parsed, _Several) else {self.field: parsed}


class _Several(dict[str, Any]):
    """A value that sets more than one field."""


def _choice(kind: type[Enum], words: Mapping[str, Any]) -> Callable[[str, Any], Any]:
    choices = {**{member.value: member for member in kind}, **words}

    def read(name: str, value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if str(value).lower() in choices:
            return choices[str(value).lower()]
        raise errors.wrong_setting(name, value, choices)

    return read


def _duration(**words: Any) -> Callable[[str, Any], Any]:
    def read(name: str, value: Any) -> Any:
        if value is None or isinstance(value, timedelta | Enum):
            return value
        if str(value).lower() in words:
            return words[str(value).lower()]
        if isinstance(value, str):
            return parse_duration(value)
        raise errors.wrong_setting(name, value, ["a duration such as 5s", *words])

    return read


def _count(name: str, value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        raise errors.wrong_setting(name, value, ["a whole number"]) from None


def _ratio(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise errors.wrong_setting(name, value, ["a number"]) from None


def _start(name: str, value: Any) -> Any:
    if isinstance(value, Start | Mapping | int):
        return value
    if isinstance(value, datetime):
        return from_datetime(value)
    words = {start.value: start for start in Start}
    if isinstance(value, str):
        return words.get(value.lower()) or parse_instant(value)
    raise errors.wrong_setting(name, value, [*words, "a time", "a cut"])


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "watermark",
        ("watermark.strategy",),
        _choice(
            Strategy,
            {
                "bounded_out_of_orderness": Strategy.EVENTS,
                "ascending_timestamps": _Several(watermark=Strategy.EVENTS, tolerance=timedelta(0)),
                "processing_time": Strategy.PROCESSING,
            },
        ),
    ),
    Setting(
        "tolerance",
        (
            "watermark.max_out_of_orderness",
            "eventtime.late_tolerance",
            "eventtime.lateTolerance",
            "lateTolerance",
        ),
        _duration(auto=AUTO),
    ),
    Setting("idle_after", ("watermark.idle.timeout",), _duration(never=NEVER)),
    Setting("max_drift", ("watermark.max_drift",), _duration(none=NEVER)),
    Setting("max_rows", ("max.rows.per.batch",), _count),
    Setting("max_bytes", ("max.bytes.per.batch",), _count),
    Setting("max_future", (), _duration(never=NEVER, stream=OF_STREAM)),
    Setting("release", (), _choice(Release, {})),
    Setting(
        "late",
        ("late.data.strategy",),
        _choice(
            Late,
            {
                "dead_letter": Late.ROUTE,
                "include_in_next_window": Late.NEXT,
                "update_previous": Late.UPDATE,
            },
        ),
    ),
    Setting("allowed_lateness", ("allowed.lateness",), _duration()),
    Setting("start", ("auto.offset.reset",), _start),
    Setting("on_unreadable", (), _choice(OnUnreadable, {})),
    Setting("max_amplification", (), _ratio),
)

assert [setting.field for setting in SETTINGS] == [f.name for f in fields(Policy)]


@dataclass(frozen=True)
class Pressure:
    """Limits and pauses of single partitions; they may change from plan to plan.

    Keys are (stream, partition). A limit is a number of rows per plan; a pause has a reason.
    """

    max_rows: Mapping[tuple[str, str], int] = field(default_factory=dict)
    paused: Mapping[tuple[str, str], str] = field(default_factory=dict)


NO_PRESSURE: Final = Pressure()
