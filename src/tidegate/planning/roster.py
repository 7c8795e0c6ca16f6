"""The roster: who is in the merge. Partitions enter, leave, vanish and return.

A sealed partition stays, with its number, until every predecessor of its successors is planned to
its sealed end; then, in one step, they leave and the successors enter with the minimum of their
numbers, at their first row. A partition nobody preceded enters where it begins, and holds the
watermark until it is known or idle. One that vanishes leaves the merge but not the memory: it
returns where it stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.planning.facts import Facts, Flags, Partitions, Positions, flags, numbers
from tidegate.planning.policy import Policy, Start
from tidegate.planning.state import StreamState


@dataclass(frozen=True, eq=False)
class Roster:
    """A stream's state with the partitions of this plan, and where to find each in the facts.

    `place` has the row in `facts.partitions` per row of the state, -1 for one that has vanished.
    """

    state: StreamState
    place: Positions
    rebalanced: bool


def call_roster(
    stream: str, state: StreamState, facts: Facts, policy: Policy, reach_back: timedelta
) -> Roster:
    """Bring the roster of one stream up to date, before anything is read."""
    partitions = facts.streams[stream].partitions
    before = state.names
    starting = not state.started
    if starting:
        state = _begin(stream, state, facts, policy, reach_back)
        before = state.names
    place = _settled(state, partitions)
    if place is None:
        where = {name: i for i, name in enumerate(partitions.names)}
        # Newcomers first: one that is sealed already may share successors with those that are here.
        state = _admit_newcomers(state, partitions, where)
        state = _replace_sealed(state, partitions, where, starting)
        place = np.array([where.get(name, -1) for name in state.names], dtype=np.intp)
    present = place >= 0
    rebalanced = state.names != before or not np.array_equal(present, state.present)
    _refuse_truncated(stream, state, partitions, place)
    # Who returns is active at once.
    idle = state.idle & present & state.present
    return Roster(replace(state, present=present, idle=idle), place, rebalanced)


def _settled(state: StreamState, partitions: Partitions) -> Positions | None:
    """Where everybody is, if all that are open are here and nobody else.

    Then those that are sealed are the past, however many they have become.
    """
    opened = np.flatnonzero(~partitions.sealed)
    if len(opened) != len(state.names):
        return None
    if len(opened) == len(partitions) and state.names == partitions.names:
        return opened
    where = {partitions.names[i]: i for i in opened.tolist()}
    places = [where.get(name, -1) for name in state.names]
    return None if -1 in places else np.array(places, dtype=np.intp)


# ---- the start, resolved once ----


def _begin(
    stream: str, state: StreamState, facts: Facts, policy: Policy, reach_back: timedelta
) -> StreamState:
    partitions = facts.streams[stream].partitions
    predecessors = _predecessors(partitions)
    cut: dict[str, int]
    if policy.start is Start.EARLIEST:
        cut = {
            name: int(partitions.start[i])
            for i, name in enumerate(partitions.names)
            if name not in predecessors
        }
    elif policy.start is Start.LATEST:
        cut = {
            name: int(partitions.latest[i])
            for i, name in enumerate(partitions.names)
            if not partitions.sealed[i]
        }
    elif isinstance(policy.start, Mapping):
        cut = dict(policy.start.get(stream, {}))
        _refuse_incomplete(stream, cut, partitions)
    else:
        cut = dict(facts.ask.cut_at(stream, policy.start - micros(reach_back)))
    opened = _append(state, cut, known=[False] * len(cut), number=[0] * len(cut))
    return replace(opened, started=True, start_cut=cut)


def _refuse_incomplete(stream: str, cut: Mapping[str, int], partitions: Partitions) -> None:
    related = set(cut) | _descendants(cut, partitions.successors)
    related |= _descendants(cut, _predecessors(partitions))
    missing = [name for name in partitions.names if name not in related]
    if missing:
        raise errors.start_cut_incomplete(stream, missing)


def _refuse_truncated(
    stream: str, state: StreamState, partitions: Partitions, place: Positions
) -> None:
    first = np.where(place >= 0, partitions.start[place], 0) if len(partitions) else place * 0
    behind = np.flatnonzero(state.position < first)
    if len(behind):
        row = int(behind[0])
        raise errors.rows_truncated(
            stream, state.names[row], int(state.position[row]), int(first[row])
        )


# ---- sealed partitions and their successors ----


def _replace_sealed(
    state: StreamState, partitions: Partitions, where: Mapping[str, int], starting: bool
) -> StreamState:
    """Let every completed group of sealed partitions leave, until no more can.

    Rows of a successor that were truncated while its predecessors were read are missing, and that
    is refused; a query that is starting takes what is left.
    """
    predecessors = _predecessors(partitions)
    past = _descendants(state.names, predecessors)
    while True:
        row_of = {name: i for i, name in enumerate(state.names)}
        done = {
            name
            for name in partitions.successors
            if name in row_of
            and name in where
            and partitions.sealed[where[name]]
            and state.position[row_of[name]] >= partitions.latest[where[name]]
        }
        groups = _completed_groups(done, row_of, where, partitions.successors, predecessors)
        if not groups:
            return state
        kept = np.ones(len(state.names), dtype=np.bool_)
        cut: dict[str, int] = {}
        inherited: dict[str, tuple[bool, int]] = {}
        for group in groups:
            leaving = [row_of[name] for name in group]
            known = bool(state.known[leaving].all())
            number = int(state.number[leaving].min()) if known else 0
            kept[leaving] = False
            for heir in sorted({heir for name in group for heir in partitions.successors[name]}):
                # One that is here, or was, entered while its predecessor had vanished.
                if heir not in row_of and heir not in past:
                    cut[heir] = int(partitions.start[where[heir]]) if starting else 0
                    inherited[heir] = known, number
        state = _append(
            _keep(state, kept),
            cut,
            known=[known for known, _ in inherited.values()],
            number=[number for _, number in inherited.values()],
        )
        if starting:
            state = replace(state, start_cut={**state.start_cut, **cut})


def _completed_groups(
    done: set[str],
    here: Collection[str],
    there: Collection[str],
    successors: Mapping[str, tuple[str, ...]],
    predecessors: Mapping[str, tuple[str, ...]],
) -> list[set[str]]:
    """Sealed partitions tied together by common successors, all planned to their sealed end.

    A successor that has vanished before it could enter is waited for.
    """
    if not done:
        return []
    waited_for = set(here) | _descendants(here, successors)
    judged: set[str] = set()
    completed: list[set[str]] = []
    for first in sorted(done):
        if first in judged:
            continue
        group, heirs, todo = {first}, set[str](), [first]
        while todo:
            for successor in successors[todo.pop()]:
                if successor not in heirs:
                    heirs.add(successor)
                    new = {name for name in predecessors[successor] if name in waited_for} - group
                    group |= new
                    todo.extend(new)
        judged |= group
        if group <= done and all(heir in there or heir in here for heir in heirs):
            completed.append(group)
    return completed


def _admit_newcomers(
    state: StreamState, partitions: Partitions, where: Mapping[str, int]
) -> StreamState:
    """Partitions that nobody preceded enter at once; ancestors of those here are the past."""
    known = set(state.names)
    strangers = [name for name in partitions.names if name not in known]
    if not strangers:
        return state
    predecessors = _predecessors(partitions)
    past = _descendants(known, predecessors)
    cut = {
        name: int(partitions.start[where[name]])
        for name in strangers
        if name not in predecessors and name not in past
    }
    # What was truncated before they were known is none of ours, and is not asked for. The others
    # need no start: one would say that whatever they succeed lies before the start, though it may
    # be a partition that was read and has vanished.
    truncated = {name: first for name, first in cut.items() if first}
    return replace(
        _append(state, cut, known=[False] * len(cut), number=[0] * len(cut)),
        start_cut={**state.start_cut, **truncated} if truncated else state.start_cut,
    )


def _predecessors(partitions: Partitions) -> dict[str, tuple[str, ...]]:
    """Who came before whom: the successors, turned round."""
    here = set(partitions.names)
    turned: dict[str, list[str]] = {}
    for name, successors in partitions.successors.items():
        if name in here:
            for successor in successors:
                turned.setdefault(successor, []).append(name)
    return {name: tuple(before) for name, before in turned.items()}


def _descendants(of: Iterable[str], links: Mapping[str, tuple[str, ...]]) -> set[str]:
    found: set[str] = set()
    todo = list(of)
    while todo:
        for name in links.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


# ---- rows of the state ----


def _append(
    state: StreamState, cut: Mapping[str, int], *, known: list[bool], number: list[int]
) -> StreamState:
    if not cut:
        return state
    none, false, true = np.zeros(len(cut), dtype=np.int64), [False] * len(cut), [True] * len(cut)
    return replace(
        state,
        names=(*state.names, *cut),
        position=np.concatenate([state.position, numbers(cut.values())]),
        number=np.concatenate([state.number, numbers(number)]),
        max_seen=np.concatenate([state.max_seen, none]),
        known=np.concatenate([state.known, flags(known)]),
        seen=np.concatenate([state.seen, flags(false)]),
        idle=np.concatenate([state.idle, flags(false)]),
        present=np.concatenate([state.present, flags(true)]),
    )


def _keep(state: StreamState, kept: Flags) -> StreamState:
    return replace(
        state,
        names=tuple(name for name, stays in zip(state.names, kept, strict=True) if stays),
        position=state.position[kept],
        number=state.number[kept],
        max_seen=state.max_seen[kept],
        known=state.known[kept],
        seen=state.seen[kept],
        idle=state.idle[kept],
        present=state.present[kept],
    )


def still_to_come(here: Iterable[str], partitions: Partitions) -> set[str]:
    """The partitions that will succeed those that are here; all others not here are the past."""
    names = set(here)
    return _descendants(names, partitions.successors) - names
