"""The frames on which both kernels are asked the same: small, and full of odd values."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    {
        "_window_start": pa.timestamp("us", "UTC"),
        "_window_end": pa.timestamp("us", "UTC"),
        "_event_time": pa.timestamp("us", "UTC"),
        "id": pa.int64(),
        "k": pa.int32(),
        "b": pa.bool_(),
        "i": pa.int32(),
        "l": pa.int64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "x": pa.float64(),
        "s": pa.string(),
        "m": pa.decimal128(18, 2),
        "t": pa.timestamp("us", "UTC"),
        "y": pa.date32(),
    }
)
"""`d` has every double there is a question about; in `x` all are finite, so that sums mean much."""

WINDOW = timedelta(minutes=1)
ORIGIN = datetime(1969, 12, 31, 23, 58, tzinfo=UTC)

INTS = [0, 1, -1, 2, 3, 7, -7, 10, 1_000, -32_768, 46_340, None]
LONGS = [0, 1, -1, 5, -9, 3_000_000_000, -3_000_000_000, 1 << 40, None]
FLOATS = [0.0, -0.0, 1.5, -2.25, 0.1, 3.0e5, math.nan, math.inf, -math.inf, None]
DOUBLES = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    0.1,
    1e-9,
    2.675,
    1e15,
    math.nan,
    math.inf,
    -math.inf,
    None,
]
FINITE = [0.0, 0.25, 1.5, 2.5, 3.75, 0.1, 12.5, 100.0, 1e6, None]
TEXTS = [
    *("", " ", "a", "A", "ab", "b", "abc", " ab ", "aab%", "a_b", "x'y", "é", "e\u0301", "ß"),
    *("日本語", "🤦🏼\u200d♂️", "z\ty", "{brace}", "a\\b", None),
]
DECIMALS = [Decimal(text) for text in ("0", "0.05", "1.55", "-1.55", "2.45", "100.00", "-99999.99")]
SPANS = [0, 1, 999, -1, -1_500_001, 59_999_999, 86_400_000_000, -86_400_000_001]
FAR = [datetime(1, 1, 20, tzinfo=UTC), datetime(1600, 2, 29, 12, tzinfo=UTC)]
FAR += [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC)]


def frame(seed: int, rows: int, first_id: int = 0) -> pa.Table:
    """Rows of four windows around 1970; the third has none."""
    draw = random.Random(seed)
    made: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for number in range(rows):
        window = ORIGIN + WINDOW * draw.choice([0, 0, 1, 3])
        at = window + timedelta(microseconds=draw.randrange(60_000_000))
        times = [at + timedelta(microseconds=span) for span in SPANS] + FAR
        values = {
            "_window_start": window,
            "_window_end": window + WINDOW,
            "_event_time": at,
            "id": first_id + number,
            "k": draw.choice([1, 1, 1, 2, 2, 3, None]),
            "b": draw.choice([True, False, None]),
            "i": draw.choice(INTS),
            "l": draw.choice(LONGS),
            "f": draw.choice(FLOATS),
            "d": draw.choice(DOUBLES),
            "x": draw.choice([*FINITE, draw.uniform(-1e3, 1e3), draw.random()]),
            "s": draw.choice(TEXTS),
            "m": draw.choice([*DECIMALS, None]),
            "t": draw.choice([*times, None]),
            "y": draw.choice([*(time.date() for time in times), date(2023, 12, 31), None]),
        }
        for name, value in values.items():
            made[name].append(value)
    return pa.table(made, schema=SCHEMA)


def frames(seed: int = 7) -> dict[str, pa.Table]:
    """Two streams, `a` and `b`, and `c`, which has no rows."""
    return {"a": frame(seed, 60), "b": frame(seed + 1, 40, first_id=1_000), "c": frame(0, 0)}
