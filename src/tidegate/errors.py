"""Every error a user can meet.

One base class, few children by who must act. An error has a stable `code`, its facts as `fields`,
and a text of up to three lines: what is wrong, the detail with the numbers, a hint what to do.
Errors are made by the named factories below, so that each text stands in one place; every code has
a test that sees its full text.

>>> print(unknown_source(7, known=[0, 1]))
unknown source
Detail: source 7 is not registered; registered are: 0, 1.
Hint: call register_source first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class TidegateError(Exception):
    """Base of all errors of Tidegate: `code`, `fields`, `hint`, `retryable`; it pickles."""

    def __init__(
        self,
        code: str,
        primary: str,
        *,
        detail: str = "",
        hint: str = "",
        fields: Mapping[str, Any] | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(primary)
        self.code = code
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.fields = dict(fields or {})
        self.retryable = retryable

    def __str__(self) -> str:
        lines = [self.primary]
        if self.detail:
            lines.append(f"Detail: {self.detail}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[TidegateError], state: dict[str, Any]) -> TidegateError:
    error = kind(state["code"], state["primary"])
    error.__dict__.update(state)
    return error


class InputError(TidegateError):
    """The caller asked for something that cannot be.

    A wrong name, a wrong value, a wrong moment.
    """


class DataError(TidegateError):
    """The data of a stream is not what it was declared to be."""


class ConflictError(TidegateError):
    """Somebody else was there first: fenced, superseded, changed in between."""


class InternalError(TidegateError):
    """A promise of our own is broken: a defect of Tidegate, to be reported."""


def listed(names: Iterable[object], *, most: int = 10) -> str:
    """The valid choices for an error text, cut short when there are many.

    >>> listed(["b", "a"]), listed([]), listed(range(12), most=3)
    ('a, b', 'none', '0, 1, 2 and 9 more')
    """
    ordered = list(names)
    try:
        ordered.sort()
    except TypeError:
        ordered.sort(key=str)
    if not ordered:
        return "none"
    shown = ", ".join(str(name) for name in ordered[:most])
    return shown if len(ordered) <= most else f"{shown} and {len(ordered) - most} more"


# ---- instants and durations ----


def instant_out_of_range(value: object) -> InputError:
    """An event time beyond what we can order and pack: some 73,000 years around 1970."""
    return InputError(
        "instant-out-of-range",
        "instant is out of range",
        detail=f"{value} microseconds is more than about 73,000 years away from 1970.",
        hint="check the unit: instants are integer microseconds since the epoch, UTC.",
        fields={"value": value},
    )


def instant_not_parsed(text: object) -> InputError:
    """A text that is not an ISO 8601 instant."""
    return InputError(
        "instant-not-parsed",
        "not an instant",
        detail=f"{text!r} is not an ISO 8601 date and time.",
        hint="write it like 2026-01-31T12:00:00Z or 2026-01-31T12:00:00.123456+01:00.",
        fields={"text": text},
    )


def duration_not_parsed(text: object, units: Iterable[str]) -> InputError:
    """A text that is not a duration."""
    return InputError(
        "duration-not-parsed",
        "not a duration",
        detail=f"{text!r} is not a number followed by a unit; units are: {', '.join(units)}.",
        hint="write it like 500ms, 5s, '5 minutes' or 1h.",
        fields={"text": text},
    )


def time_went_back(what: str, at: object, to: object) -> InputError:
    """Somebody asked time to go back."""
    return InputError(
        "time-went-back",
        "time cannot go back",
        detail=f"{what} is at {at}, asked to go to {to}.",
        hint="advance to an equal or later time; rows before it are late rows.",
        fields={"what": what, "at": at, "to": to},
    )


# ---- partitions and sources ----


def unknown_source(source: object, known: Iterable[object]) -> InputError:
    """A source nobody registered."""
    return InputError(
        "unknown-source",
        "unknown source",
        detail=f"source {source} is not registered; registered are: {listed(known)}.",
        hint="call register_source first.",
        fields={"source": source},
    )


def unknown_partition(source: object, partition: object, known: Iterable[object]) -> InputError:
    """A partition of a known source that was removed, or was never added."""
    return InputError(
        "unknown-partition",
        "unknown partition",
        detail=f"source {source} has no partition {partition}; it has: {listed(known)}.",
        hint="call add_partition first.",
        fields={"source": source, "partition": partition},
    )


def partition_out_of_range(source: object, partition: object, count: int) -> InputError:
    """A partition number at or beyond the source's range, or below zero."""
    return InputError(
        "partition-out-of-range",
        "partition is out of range",
        detail=f"source {source} has partitions 0 to {count - 1}, asked for {partition}."
        if count
        else f"source {source} has no partitions, asked for {partition}.",
        hint="register the source with more partitions, or call add_partition.",
        fields={"source": source, "partition": partition, "count": count},
    )


def partition_exists(source: object, partition: object) -> InputError:
    """A partition that is there already."""
    return InputError(
        "partition-exists",
        "partition exists already",
        detail=f"source {source} has a partition {partition}.",
        hint="update it, or remove it before adding it again.",
        fields={"source": source, "partition": partition},
    )


def unknown_core(core: object, cores: int) -> InputError:
    """A lane the collector does not have."""
    return InputError(
        "unknown-core",
        "unknown core",
        detail=f"there are cores 0 to {cores - 1}, asked for {core}.",
        hint="make the collector with as many cores as there are lanes.",
        fields={"core": core, "cores": cores},
    )


def unknown_member(member: object, known: Iterable[object]) -> InputError:
    """A member an alignment group does not have."""
    return InputError(
        "unknown-member",
        "unknown member of the alignment group",
        detail=f"{member!r} is not registered; registered are: {listed(known)}.",
        hint="call register first.",
        fields={"member": member},
    )
