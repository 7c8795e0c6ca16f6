"""Routing: which segment a row belongs to, by a stable hash of its key.

The same key has the same hash in every process, on every machine and in every version: placing a
row again must find the place of its predecessors. A hash is a number of 64 bits; divided by 2^64 it
is the row's place in `[0, 1)`, and a segment owns a range of that.

How a hash is made (it must never change; a test pins it):

- integers, booleans, dates, times and timestamps are one word of 64 bits: the number as stored;
  floats the bits of the double, with one zero and one NaN; decimals two words, low and high;
- a word w turns a hash h into `mix((h + GOLDEN) ^ w)`, with `mix` the finaliser of SplitMix64;
- numbers begin with h = 0. Texts and bytes of up to 128 bytes begin with their length and take
  their bytes in words of eight, little endian, the last one filled with zeros; an empty one is the
  word 0, longer ones are their BLAKE2b of eight bytes;
- a key of several columns takes the hash of each column as one word, beginning with h = 0; null
  counts as the word 0.

>>> rows = pa.table({"id": [1, 2, 1], "name": ["a", "b", "a"]})
>>> hashes(rows, ["id"]).tolist()[0] == hashes(rows, ["id"]).tolist()[2]
True
>>> from tidegate.marks.lineage import Lineage
>>> segment_index(np.array([0, 1 << 63], dtype=np.uint64), Lineage.start(2).open_in(0)).tolist()
[0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b
from math import ceil
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as kinds

from tidegate import errors
from tidegate.marks.segment import Segment

Hashes: TypeAlias = npt.NDArray[np.uint64]

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
SPACE: Final = 1 << 64
LONG: Final = 128
"""Texts longer than this many bytes are hashed one by one."""

_BLOCK: Final = 16_384
"""Texts that are hashed at once: few enough for the processor's cache."""

_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_KEPT: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)


def hashes(table: pa.Table | pa.RecordBatch, key: Sequence[str]) -> Hashes:
    """The hash of every row's key, whole columns at a time."""
    found = [_column(table.column(name), name) for name in key]
    if len(found) == 1:
        return found[0]
    together: Hashes = np.zeros(table.num_rows, dtype=np.uint64)
    for column in found:
        together = _taken(together, column)
    return together


def hash_of(text: str) -> Hashes:
    """The hash of one text, as an array of one."""
    return _array(pa.array([text]), "")


def segment_index(found: Hashes, segments: Sequence[Segment]) -> npt.NDArray[np.intp]:
    """For every hash the place of its segment among `segments`.

    They cover the key space, in key order.
    """
    # A place h / 2^64 is at or after a bound exactly when h is at or after the bound's ceiling. A
    # bound so close to 1 that no hash lies behind it is left out: its segment gets no rows.
    bounds = [ceil(segment.low * Fraction(SPACE)) for segment in segments[1:]]
    reachable = np.array([bound for bound in bounds if bound < SPACE], dtype=np.uint64)
    return np.searchsorted(reachable, found, side="right")


def can_route_by(kind: pa.DataType) -> bool:
    """Whether a column of this type can be part of a routing key."""
    if kinds.is_dictionary(kind):
        return can_route_by(kind.value_type)
    return bool(_is_word(kind) or _is_bytes(kind) or kinds.is_decimal128(kind))


# ---- columns ----


def _column(column: pa.Array | pa.ChunkedArray, name: str) -> Hashes:
    if not isinstance(column, pa.ChunkedArray):
        return _array(column, name)
    if column.num_chunks == 1:
        return _array(column.chunk(0), name)
    parts = [_array(chunk, name) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _array(column: pa.Array, name: str) -> Hashes:
    kind = column.type
    if kinds.is_dictionary(kind):
        # Every value is hashed once, however often it occurs.
        values = _array(column.dictionary, name)
        nothing = _array(pa.nulls(1, kind.value_type), name)
        places = column.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        each: Hashes = np.concatenate([values, nothing])[places]
        return each
    if kinds.is_null(kind):
        column = column.cast(pa.int64())
    elif not can_route_by(kind):
        raise errors.routing_key_not_hashable(name, str(kind))
    if _is_bytes(kind):
        return _bytes(column)
    begin = np.zeros(len(column), dtype=np.uint64)
    if kinds.is_decimal128(kind):
        pairs = _pairs(column)
        return _taken(_taken(begin, pairs[:, 0]), pairs[:, 1])
    return _taken(begin, _words(column))


def _words(column: pa.Array) -> Hashes:
    kind = column.type
    if kinds.is_floating(kind):
        doubles = column.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False) + 0.0
        doubles = np.where(np.isnan(doubles), np.nan, doubles)
        floats: Hashes = doubles.view(np.uint64)
        return floats
    if kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_null(kind):
        plain = column
    else:
        plain = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    wide = pa.uint64() if kinds.is_uint64(plain.type) else pa.int64()
    counts: npt.NDArray[Any] = plain.cast(wide).fill_null(0).to_numpy(zero_copy_only=False)
    words: Hashes = counts.view(np.uint64)
    return words


def _pairs(column: pa.Array) -> Hashes:
    whole = np.frombuffer(column.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    pairs = whole[column.offset : column.offset + len(column)]
    if column.null_count:
        pairs = np.where(column.is_null().to_numpy(zero_copy_only=False)[:, None], 0, pairs)
    return pairs


def _bytes(column: pa.Array) -> Hashes:
    if _is_text(column.type):
        column = column.cast(pa.large_string()).view(pa.large_binary())
    else:
        column = column.cast(pa.large_binary())
    if column.null_count:
        column = column.fill_null(b"")
    ends = np.frombuffer(column.buffers()[1], dtype=np.int64)
    ends = ends[column.offset : column.offset + len(column) + 1]
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    # Eight bytes more, so that the last word may be read whole.
    used = np.zeros(int(ends[-1] - ends[0]) + 8, dtype=np.uint8)
    data = column.buffers()[2]
    if data is not None:
        used[:-8] = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]
    # The same memory as words that begin at every byte.
    words: Hashes = np.ndarray((len(used) - 7,), dtype="<u8", buffer=used, strides=(1,))
    found: Hashes = lengths.astype(np.uint64)
    for first in range(0, len(lengths), _BLOCK):
        block = slice(first, first + _BLOCK)
        found[block] = _hashed(words, starts[block], lengths[block], found[block])
    for row in np.flatnonzero(lengths > LONG):
        text = used[starts[row] : starts[row] + lengths[row]].tobytes()
        found[row] = int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
    found[lengths == 0] = _mix(np.full(1, GOLDEN))[0]
    return found


def _hashed(
    words: Hashes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], found: Hashes
) -> Hashes:
    """Take the texts word by word, all that are long enough at once."""
    longest = min(int(lengths.max()), LONG)
    whole = min(int(lengths.min()), LONG) // 8 * 8
    for at in range(0, whole, 8):
        found = _taken(found, words[starts + at])
    for at in range(whole, longest, 8):
        left = lengths - at
        read = words[np.where(left > 0, starts + at, 0)] & _KEPT[np.clip(left, 0, 8)]
        found = np.where(left > 0, _taken(found, read), found)
    return found


def _taken(before: Hashes, words: Hashes) -> Hashes:
    return _mix((before + GOLDEN) ^ words)


def _mix(h: Hashes) -> Hashes:
    h = (h ^ (h >> np.uint64(30))) * _FIRST
    h = (h ^ (h >> np.uint64(27))) * _SECOND
    return h ^ (h >> np.uint64(31))


def _is_word(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_integer(kind)
        or kinds.is_floating(kind)
        or kinds.is_boolean(kind)
        or kinds.is_null(kind)
        or kinds.is_timestamp(kind)
        or kinds.is_date(kind)
        or kinds.is_time(kind)
        or kinds.is_duration(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        _is_text(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_fixed_size_binary(kind)
    )
