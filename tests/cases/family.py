"""A family of cases: how its steps are carried out and its checks are answered.

A family is a class. It is made from a case's `init`; a step `{do: op}` calls its method `do_op`, a
step `{check: what}` its method `check_what`, with what else the step says as arguments. What comes
back is compared with `ret` or `is`. Anything a family does not know fails the case, by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest
from tests.cases.conventions import Refusal, agrees

from tidegate.errors import TidegateError

Step = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One case as it is written."""

    id: str
    family: str
    init: Mapping[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else it says, for families that have no steps."""

    @staticmethod
    def read(entry: Mapping[str, Any]) -> Case:
        """A case from an entry of the file."""
        rest = {k: v for k, v in entry.items() if k not in {"id", "family", "note"}}
        init, steps = rest.pop("init", {}), rest.pop("steps", [])
        return Case(entry["id"], entry["family"], init, steps, rest)


class Family:
    """The base of all families."""

    @classmethod
    def replay(cls, case: Case) -> None:
        """Carry out a whole case, which must have steps and nothing beside them."""
        if case.facts or not case.steps:
            fail(case, f"is told by its steps, not by {sorted(case.facts) or 'nothing'}")
        there = call(case, "init", cls, case.init)
        for number, step in enumerate(case.steps, start=1):
            there.carry_out(case, f"step {number}", step)

    def carry_out(self, case: Case, place: str, step: Step) -> None:
        """Carry out one step, and compare."""
        kind, wanted = ("check", "is") if "check" in step else ("do", "ret")
        name = step.get(kind)
        method = getattr(self, f"{kind}_{name}", None)
        if method is None:
            known = sorted(n[len(kind) + 1 :] for n in dir(self) if n.startswith(f"{kind}_"))
            fail(case, f"{place}: no {kind} {name!r}; there are: {', '.join(known)}")
        arguments = {k: v for k, v in step.items() if k not in {kind, wanted, "note"}}
        if "expected" in inspect.signature(method).parameters:
            arguments["expected"] = step.get(wanted)
        place = f"{place}, {kind} {name}"
        try:
            result = call(case, place, method, arguments)
        except TidegateError as error:
            if wanted not in step:
                raise
            result = Refusal(error, asked=kind == "check")
        if kind == "check" and wanted not in step:
            fail(case, f"{place}: a check without `is`")
        if wanted in step and not agrees(step[wanted], result):
            fail(case, f"{place} {arguments}: expected {step[wanted]!r}, got {result!r}")


def call(case: Case, place: str, act: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call with the arguments of a step; one that is not known fails the case."""
    try:
        inspect.signature(act).bind(**arguments)
    except TypeError as problem:
        fail(case, f"{place}: {problem}")
    return act(**arguments)


def fail(case: Case, problem: str) -> NoReturn:
    """Fail a case, saying which."""
    pytest.fail(f"case {case.id} of {case.family}: {problem}")
