"""Cuts form a lattice over any history of segments."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.lineages import (
    END,
    ancestors,
    covers_exactly_once,
    lineages,
    owners,
    partial_cuts,
    steps,
    whole_cuts,
)

from tidegate.errors import TidegateError
from tidegate.marks import FLAT, Cut, Lineage, SegmentId

few = settings(max_examples=60, deadline=None)
flat_cuts = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)).map(Cut)


@few
@given(lineages())
def test_every_epoch_covers_the_key_space_exactly_once(lineage: Lineage) -> None:
    for epoch in range(lineage.epoch + 1):
        names = [segment.name for segment in lineage.open_in(epoch)]
        assert covers_exactly_once(lineage, names)
        assert lineage.is_whole(names)


@few
@given(lineages())
def test_who_comes_before_whom_is_what_walking_the_segments_says(lineage: Lineage) -> None:
    for name in lineage.segments:
        before = ancestors(lineage, name)
        assert lineage.ancestors_of([name]) == before
        assert {other for other in lineage.segments if lineage.is_ancestor(other, name)} == before
        assert all(name in lineage.successors_of(p) for p in lineage.predecessors_of(name))


@few
@given(lineages())
def test_a_lineage_survives_json(lineage: Lineage) -> None:
    assert Lineage.from_json(json.loads(json.dumps(lineage.to_json()))) == lineage


@few
@given(lineages(), st.data())
def test_the_order_is_the_order_of_the_steps_taken(lineage: Lineage, data: st.DataObject) -> None:
    left, right = data.draw(partial_cuts(lineage)), data.draw(partial_cuts(lineage))
    assert left.less_equal(right, lineage) == (steps(lineage, left) <= steps(lineage, right))
    assert left.less_than(right, lineage) == (steps(lineage, left) < steps(lineage, right))


@few
@given(lineages(), st.data())
def test_the_join_takes_the_steps_of_both_and_no_other(
    lineage: Lineage, data: st.DataObject
) -> None:
    left, right = data.draw(partial_cuts(lineage)), data.draw(partial_cuts(lineage))
    joined = left.join(right, lineage)
    # Taking exactly the union makes it the least of all cuts at or after both.
    assert steps(lineage, joined) == steps(lineage, left) | steps(lineage, right)
    assert not any(ancestors(lineage, name) & joined.keys() for name in joined)


@few
@given(lineages(), st.data())
def test_joining_is_commutative_associative_and_idempotent(
    lineage: Lineage, data: st.DataObject
) -> None:
    a, b, c = (data.draw(partial_cuts(lineage)) for _ in range(3))
    assert a.join(b, lineage) == b.join(a, lineage)
    assert a.join(b, lineage).join(c, lineage) == a.join(b.join(c, lineage), lineage)
    assert a.join(a, lineage) == a.reduced(lineage)
    assert a.reduced(lineage).reduced(lineage) == a.reduced(lineage)


@few
@given(lineages(), st.data())
def test_whole_cuts_form_a_distributive_lattice(lineage: Lineage, data: st.DataObject) -> None:
    a, b, c = (data.draw(whole_cuts(lineage)) for _ in range(3))
    met, joined = a.meet(b, lineage), a.join(b, lineage)
    assert met == b.meet(a, lineage)
    assert a.meet(a, lineage) == a
    assert met.meet(c, lineage) == a.meet(b.meet(c, lineage), lineage)
    assert a.join(met, lineage) == a
    assert a.meet(joined, lineage) == a
    assert a.meet(b.join(c, lineage), lineage) == met.join(a.meet(c, lineage), lineage)
    assert steps(lineage, met) == steps(lineage, a) & steps(lineage, b)
    assert covers_exactly_once(lineage, met)
    assert covers_exactly_once(lineage, joined)


@few
@given(lineages(), st.data())
def test_partial_cuts_meet_exactly_when_a_cut_takes_their_common_steps(
    lineage: Lineage, data: st.DataObject
) -> None:
    left = data.draw(partial_cuts(lineage)).reduced(lineage)
    right = data.draw(partial_cuts(lineage)).reduced(lineage)
    common = steps(lineage, left) & steps(lineage, right)
    furthest: dict[str, int] = {}
    for name, step in common:
        furthest[name] = max(step, furthest.get(name, 0))
    inside = Cut({name: step for name, step in furthest.items() if step < END})
    if steps(lineage, inside) == common:
        assert left.meet(right, lineage) == inside
    else:
        with pytest.raises(TidegateError, match="no last cut lies before both"):
            left.meet(right, lineage)


@few
@given(lineages(), st.data())
def test_being_whole_is_covering_every_key_exactly_once(
    lineage: Lineage, data: st.DataObject
) -> None:
    cut = data.draw(partial_cuts(lineage))
    assert cut.is_whole(lineage) == covers_exactly_once(lineage, cut)
    assert data.draw(whole_cuts(lineage)).is_whole(lineage)


@few
@given(lineages(), st.data())
def test_gaps_are_filled_as_one_would_do_it_by_hand(lineage: Lineage, data: st.DataObject) -> None:
    cut = data.draw(partial_cuts(lineage)).reduced(lineage)
    expected = dict(cut)
    epoch = max((SegmentId.parse(name).epoch for name in cut), default=0)
    while set(owners(lineage, expected)) != {1}:
        missing = owners(lineage, expected)
        for tile in lineage.open_in(epoch):
            mine = owners(lineage, [tile.name])
            if any(own and not there for own, there in zip(mine, missing, strict=True)):
                expected[tile.name] = 0
        passed = {before for name in expected for before in ancestors(lineage, name)}
        expected = {name: offset for name, offset in expected.items() if name not in passed}
    filled = cut.completed(lineage)
    assert filled == Cut(expected)
    assert covers_exactly_once(lineage, filled)
    assert cut.less_equal(filled, lineage)


@few
@given(flat_cuts, flat_cuts, flat_cuts)
def test_cuts_over_partitions_side_by_side_form_a_lattice_too(a: Cut, b: Cut, c: Cut) -> None:
    joined, met = a.join(b, FLAT), a.meet(b, FLAT)
    for name in "abcd":
        pair = a.get(name, -1), b.get(name, -1)
        assert (joined.get(name, -1), met.get(name, -1)) == (max(pair), min(pair))
    assert a.join(met, FLAT) == a.meet(joined, FLAT) == a
    assert met.join(c, FLAT) == a.join(c, FLAT).meet(b.join(c, FLAT), FLAT)
    assert a.less_equal(b, FLAT) == (joined == b) == (met == a)
    assert Cut.from_json(json.loads(json.dumps(a.to_json()))) == a
