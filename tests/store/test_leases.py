"""Controllers share the buckets evenly, take over from the dead, and notice being fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.noting import SCHEMA, marks_of, note

from tidegate.store import Store
from tidegate.store.catalog import leases
from tidegate.store.catalog.streams import BUCKETS
from tidegate.store.controller import MarkController
from tidegate.store.shares import shares
from tidegate.testing import ManualClock

LEASE = timedelta(seconds=10)


@settings(deadline=None)
@given(
    st.dictionaries(st.text("abc", min_size=1), st.integers(0, 64), min_size=1), st.integers(0, 99)
)
def test_shares_add_up_differ_by_one_and_leave_the_extra_with_who_has_most(
    owned: dict[str, int], parts: int
) -> None:
    given_out = shares(owned, parts)
    assert sum(given_out.values()) == parts
    assert max(given_out.values()) - min(given_out.values()) <= 1
    assert all(given_out[a] >= given_out[b] for a in owned for b in owned if owned[a] > owned[b])


def test_controllers_share_the_buckets_as_they_join_leave_and_die(
    store: Store, open_store: Callable[..., Store], clock: ManualClock
) -> None:
    first = MarkController(store, "first", lease=LEASE)
    first.balance()
    assert sorted(first.tokens) == list(range(BUCKETS))
    second, third = (MarkController(open_store(), name, lease=LEASE) for name in ("b", "c"))
    everyone = [first, second, third]
    for _ in range(2):
        for one in (third, second, first):
            one.balance()
    for one in (second, third):
        one.balance()
    assert sorted(len(one.tokens) for one in everyone) == [21, 21, 22]
    owned = Counter(bucket for one in everyone for bucket in one.tokens)
    assert set(owned) == set(range(BUCKETS))
    assert set(owned.values()) == {1}

    second.retire()
    third.balance()
    first.balance()
    assert len(first.tokens) == len(third.tokens) == BUCKETS // 2

    clock.advance(LEASE)  # The third is silent for too long.
    first.balance()
    assert len(first.tokens) == BUCKETS


def test_a_fenced_controller_changes_nothing_and_notices(
    store: Store, open_store: Callable[..., Store], clock: ManualClock
) -> None:
    store.create_stream("orders", SCHEMA)
    slow, quick = (MarkController(s, "same name", lease=LEASE) for s in (store, open_store()))
    slow.balance()
    clock.advance(LEASE)
    quick.balance()
    note(store, "orders", "w", 10, s0_e0=3)
    kept = dict(slow.tokens)
    slow.balance = lambda: None  # type: ignore[method-assign]  # It wakes up in its cycle.
    assert slow.run_marks() == {}
    assert len(slow.tokens) == len(kept) - 1
    assert marks_of(store, "orders") == []
    assert list(quick.run_marks()) == ["orders"]
    assert len(marks_of(store, "orders")) == 1


def test_a_lease_that_lapsed_is_still_its_owners_until_somebody_takes_it(store: Store) -> None:
    store.database.write(leases.ensure)
    taken = store.database.write(lambda on: leases.take(on, "me", [3], 0, 10))
    hold = store.database.write
    assert hold(lambda on: leases.hold(on, "me", 3, taken[3]))
    assert store.database.write(lambda on: leases.take(on, "you", [3], 9, 20)) == {}
    assert store.database.write(lambda on: leases.take(on, "you", [3], 10, 20)) == {3: taken[3] + 1}
    assert not hold(lambda on: leases.hold(on, "me", 3, taken[3]))
