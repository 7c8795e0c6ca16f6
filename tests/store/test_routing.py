"""Routing: the same key, the same place, for ever."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.marks.lineage import Lineage
from tidegate.store import Store
from tidegate.store.routing import GOLDEN, hash_of, hashes, segment_index

GOLDEN_VALUES = [
    (
        pa.array([0, 1, -1, None], pa.int64()),
        [16294208416658607535, 16490336266968443936, 15999695513772384452, 16294208416658607535],
    ),
    (pa.array([1], pa.uint8()), [16490336266968443936]),
    (pa.array([True]), [16490336266968443936]),
    (pa.array([1], pa.timestamp("us", tz="UTC")), [16490336266968443936]),
    (pa.array([date(1970, 1, 2)]), [16490336266968443936]),
    (pa.array([0.0, -0.0, 1.5]), [16294208416658607535, 16294208416658607535, 9832619553069098951]),
    (
        pa.array(["", "a", "customer-17"]),
        [16294208416658607535, 17360999193197444373, 14114673081494298],
    ),
    (pa.array([b"a"]), [17360999193197444373]),
    (pa.array([Decimal("1.50")]), [5456262584813215386]),
    (pa.array(["x" * 129]), [11792093813925010968]),
]


def naive_hash(value: bytes) -> int:
    """The rule of the module's head for bytes, one step after the other."""
    mask = (1 << 64) - 1

    def mix(h: int) -> int:
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & mask
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & mask
        return h ^ (h >> 31)

    h = len(value)
    for at in range(0, max(len(value), 1), 8):
        h = mix(((h + int(GOLDEN)) & mask) ^ int.from_bytes(value[at : at + 8], "little"))
    return h


@pytest.mark.parametrize(("column", "expected"), GOLDEN_VALUES)
def test_a_hash_never_changes(column: pa.Array, expected: list[int]) -> None:
    assert hashes(pa.table({"key": column}), ["key"]).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=128), max_size=8), st.integers(0, 3))
def test_bytes_are_hashed_as_the_rule_says(values: list[bytes], cut: int) -> None:
    column = pa.array(values, pa.binary()).slice(cut)
    assert hashes(pa.table({"key": column}), ["key"]).tolist() == [
        naive_hash(value) for value in values[cut:]
    ]


def test_how_a_column_is_stored_does_not_matter() -> None:
    plain = pa.array(["a", None, "b", "a"])
    expected = hashes(pa.table({"key": plain}), ["key"]).tolist()
    others = [
        plain.dictionary_encode(),
        plain.cast(pa.large_string()),
        plain.cast(pa.binary()),
        pa.chunked_array([plain[:1], plain[1:]]),
    ]
    for other in others:
        assert hashes(pa.table({"key": other}), ["key"]).tolist() == expected


def test_a_key_of_several_columns_goes_by_their_order() -> None:
    rows = pa.table({"a": [1, 2], "b": [2, 1]})
    there, back = hashes(rows, ["a", "b"]), hashes(rows, ["b", "a"])
    assert there[0] != there[1]
    assert there.tolist() == back.tolist()[::-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.integers(1, 40))
def test_a_hash_lies_in_the_range_of_its_segment(values: list[int], count: int) -> None:
    segments = Lineage.start(count).open_in(0)
    found = segment_index(np.array(values, dtype=np.uint64), segments)
    for value, index in zip(values, found, strict=True):
        place = Fraction(value, 2**64)
        assert segments[index].low <= place < segments[index].high


def test_a_segment_too_small_for_any_hash_gets_no_rows() -> None:
    edge = 1 - Fraction(1, 2**70)
    segments = Lineage.start([(0, edge), (edge, 1)]).open_in(0)
    assert segment_index(np.array([2**64 - 1], dtype=np.uint64), segments).tolist() == [0]


def test_keys_are_spread_evenly() -> None:
    rows = pa.table({"key": [f"customer-{n}" for n in range(20_000)]})
    found = segment_index(hashes(rows, ["key"]), Lineage.start(8).open_in(0))
    counts = np.bincount(found, minlength=8)
    assert counts.min() > 2_300
    assert counts.max() < 2_700
    assert hash_of("customer-0").tolist() == hashes(rows.slice(0, 1), ["key"]).tolist()


def test_a_column_without_a_stable_hash_cannot_route(tmp_path: Path) -> None:
    schema = pa.schema([("tags", pa.list_(pa.string()))])
    with Store.open(tmp_path) as store, pytest.raises(TidegateError) as caught:
        store.create_stream("orders", schema, routing_key=("tags",))
    assert caught.value.code == "routing-key-not-hashable"
