"""The shape of a job: which windows its rows stand in, said to both engines.

A job's frames have, beside the columns of the stream, `_event_time`; in windows also
`_window_start` and `_window_end`. A batch over [a, b) has exactly the windows that end in (a, b]; a
row stands once in each of them that holds it. A query that starts at a time, its origin, has no
window that begins before that. Windows align to the epoch, also before 1970.

>>> hopping = Windows(size=10, slide=4)
>>> hopping.windows_of(9)
[(0, 10), (4, 14), (8, 18)]
>>> Windows(size=10, slide=10).windows_of(-1)
[(-10, 0)]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.eventtime.instants import LIMIT, ceil_to, floor_to
from tidegate.eventtime.watermark import UNKNOWN, Known, later
from tidegate.planning.slices import Interval, shifted

EVENT_TIME: Final = "_event_time"
WINDOW_START: Final = "_window_start"
WINDOW_END: Final = "_window_end"
WINDOW_NUMBER: Final = "_window_number"
"""In DuckDB only, and not for users: the start of the window in microseconds."""
BOUNDS: Final = "bounds of the windows"
"""In DuckDB a relation of one row: `low` and `high`, between which windows of a task start."""


def panes_of(stream: str) -> str:
    """In DuckDB the relation of a stream's rows by pane; no stream has a name with blanks."""
    return f"{stream} by pane"


@dataclass(frozen=True)
class Plain:
    """No windows: rows in the order of their time, or joined with others around them."""

    columns: tuple[str, ...] = ()

    def in_spark(
        self, rows: DataFrame, interval: Interval, origin: Known, at: int | None = None
    ) -> DataFrame:
        """The rows as they are."""
        return rows

    def in_duckdb(self, rows: str, interval: Interval, origin: Known, at: int | None = None) -> str:
        """The rows as they are."""
        return rows


GIVEN_FROM: Final = "_given_from"
ALONE_FROM: Final = "_alone_from"
ALONE_BELOW: Final = "_alone_below"
MEETS_FROM: Final = "_meets_from"


@dataclass(frozen=True)
class Full:
    """A full join: rows as they are, and what of them is given out in this interval.

    Rows of the first stream from `_given_from` on; rows of the second that met nobody, from
    `_alone_from` to before `_alone_below`: that is when the last that could have met them has been
    given out. Nobody is said to have been alone before the query's start. A row that came late
    (`at`) has met nothing before `_meets_from`.
    """

    before: int
    after: int
    columns: tuple[str, ...] = (GIVEN_FROM, ALONE_FROM, ALONE_BELOW, MEETS_FROM)

    def in_spark(
        self, rows: DataFrame, interval: Interval, origin: Known, at: int | None = None
    ) -> DataFrame:
        """The rows with these times."""
        times = zip(self.columns, self._times(interval, origin, at), strict=True)
        return rows.withColumns({name: F.timestamp_micros(F.lit(time)) for name, time in times})

    def in_duckdb(self, rows: str, interval: Interval, origin: Known, at: int | None = None) -> str:
        """The same as SQL around the SQL of the rows."""
        times = zip(self.columns, self._times(interval, origin, at), strict=True)
        more = ", ".join(f"make_timestamptz({time}) AS {name}" for name, time in times)
        return f"SELECT *, {more} FROM ({rows})"

    def _times(self, interval: Interval, origin: Known, at: int | None) -> list[int]:
        alone = later(shifted(interval.a, -self.before), shifted(origin, self.after))
        times = (interval.a, alone, interval.b - self.before, UNKNOWN if at is None else at)
        return [-LIMIT if time is UNKNOWN else time for time in times]


@dataclass(frozen=True)
class Windows:
    """Tumbling windows where the slide is the size, hopping ones otherwise; in microseconds."""

    size: int
    slide: int
    columns: tuple[str, ...] = (WINDOW_START, WINDOW_END)

    @property
    def tumbling(self) -> bool:
        """Whether every row stands in one window."""
        return self.size == self.slide

    @property
    def most(self) -> int:
        """In how many windows a row can stand."""
        return -(-self.size // self.slide)

    @property
    def pane(self) -> int:
        """The longest piece of time of which every window is a whole number."""
        return gcd(self.size, self.slide)

    def windows_of(self, time: int) -> list[tuple[int, int]]:
        """All windows that hold a time: what both engines compute, in the plainest words."""
        first = time // self.slide * self.slide
        starts = [first - n * self.slide for n in range(self.most)]
        return sorted((start, start + self.size) for start in starts if start + self.size > time)

    def in_spark(
        self, rows: DataFrame, interval: Interval, origin: Known, at: int | None = None
    ) -> DataFrame:
        """The rows with their windows; `at`: as if each had this time."""
        time = F.unix_micros(EVENT_TIME) if at is None else F.lit(at)
        first = time - F.pmod(time, F.lit(self.slide))
        if self.tumbling:
            return rows.withColumns(
                {
                    WINDOW_START: F.timestamp_micros(first),
                    WINDOW_END: F.timestamp_micros(first + F.lit(self.size)),
                }
            )
        starts = F.array(*[first - F.lit(n * self.slide) for n in range(self.most)])
        end = F.col("_start") + F.lit(self.size)
        return (
            rows.withColumn("_time", time)
            .withColumn("_start", F.explode(starts))
            .where((end > F.col("_time")) & self._inside(end, interval, origin))
            .withColumns(
                {WINDOW_START: F.timestamp_micros("_start"), WINDOW_END: F.timestamp_micros(end)}
            )
            .drop("_time", "_start")
        )

    def in_duckdb(self, rows: str, interval: Interval, origin: Known, at: int | None = None) -> str:
        """The same as SQL around the SQL of the rows."""
        if self.tumbling:
            return self._stretched(rows, self.size, interval, at)
        time, first = self._floored(self.slide, interval, at)
        steps = ", ".join(f"{n * self.slide}" for n in range(self.most))
        low, high = self.starts(interval, origin)
        return (
            f"SELECT * EXCLUDE (_start), make_timestamptz(_start) AS {WINDOW_START},"
            f" make_timestamptz(_start + {self.size}) AS {WINDOW_END}, _start AS {WINDOW_NUMBER}"
            f" FROM (SELECT *, {first} - unnest([{steps}]) AS _start FROM ({rows}))"
            f" WHERE _start + {self.size} > {time} AND _start BETWEEN {low} AND {high}"
        )

    def panes_in_duckdb(
        self, rows: str, interval: Interval, origin: Known, at: int | None = None
    ) -> str:
        """The rows with their panes instead, under the same names; hopping windows consist of them.

        A row stands in one pane. `duckdb_panes.py` makes windows of them.
        """
        made = self._stretched(rows, self.pane, interval, at)
        low, high = self.starts(interval, origin)
        number = WINDOW_NUMBER
        # A row that stands in no window of the task is not looked at: if it cannot be computed,
        # that is no error, or not yet.
        if self.pane == self.slide:
            return made if low != origin else f"SELECT * FROM ({made}) WHERE {number} >= {low}"
        first, last = ceil_to(low, self.slide), floor_to(high, self.slide)
        start = f"least({number} - ({number} + {self.lift(self.slide)}) % {self.slide}, {last})"
        stands = f"{start} >= {first} AND {start} + {self.size} > {number}"
        return f"SELECT * FROM ({made}) WHERE {stands}"

    def starts(self, interval: Interval, origin: Known) -> tuple[int, int]:
        """The first and the last time at which a window of this interval can start."""
        low = later(shifted(interval.a, 1 - self.size), origin)
        return -LIMIT if low is UNKNOWN else low, interval.b - self.size

    @staticmethod
    def lift(step: int) -> int:
        """Some steps that make any time positive: a remainder has the sign of its number."""
        return -(-LIMIT // step) * step

    def _stretched(self, rows: str, length: int, interval: Interval, at: int | None) -> str:
        """The rows with pieces of time of this length, of which each stands in one."""
        _, first = self._floored(length, interval, at)
        return (
            f"SELECT *, make_timestamptz({first}) AS {WINDOW_START},"
            f" make_timestamptz({first} + {length}) AS {WINDOW_END},"
            f" {first} AS {WINDOW_NUMBER} FROM ({rows})"
        )

    def _floored(self, step: int, interval: Interval, at: int | None) -> tuple[str, str]:
        """The time of a row, and that rounded down."""
        time = f"epoch_us({EVENT_TIME})" if at is None else f"{at:d}::BIGINT"
        positive = interval.a is not UNKNOWN and interval.a >= self.size and at is None
        above = time if positive else f"({time} + {self.lift(step)})"
        return time, f"({time} - {above} % {step})"

    @staticmethod
    def _inside(end: Column, interval: Interval, origin: Known) -> Column:
        inside = end <= F.lit(interval.b)
        if interval.a is not UNKNOWN:
            inside &= end > F.lit(interval.a)
        return inside if origin is UNKNOWN else inside & (F.col("_start") >= F.lit(origin))


Shape: TypeAlias = Plain | Windows | Full
