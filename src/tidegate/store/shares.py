"""Fair shares: how many of some equal parts each member may have.

Shares differ by at most one and add up to all parts; those who have the most keep the extra ones,
so that nothing moves without need. Members may decide each for itself: equal facts, equal shares.

>>> shares({"a": 4, "b": 0}, parts=5)            # "b" has joined: "a" gives one up
{'a': 3, 'b': 2}
>>> shares({"a": 2, "b": 2, "c": 0}, parts=4)
{'a': 2, 'b': 1, 'c': 1}
"""

from __future__ import annotations

from collections.abc import Mapping


def shares(owned: Mapping[str, int], parts: int) -> dict[str, int]:
    """The share of every member, from what each has now."""
    if not owned:
        return {}
    least, extra = divmod(parts, len(owned))
    ordered = sorted(owned, key=lambda member: (-owned[member], member))
    return {member: least + (place < extra) for place, member in enumerate(ordered)}
