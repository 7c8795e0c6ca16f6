"""Every error code has a test that sees its full text.

`TEXTS` maps the name of each factory in `tidegate.errors` to an example of it and the whole text a user reads.
"""

from __future__ import annotations

import inspect
import pickle

import pytest

from tidegate import errors

TEXTS: dict[str, tuple[errors.TidegateError, str]] = {
    "instant_out_of_range": (
        errors.instant_out_of_range(1 << 62),
        "instant is out of range\n"
        "Detail: 4611686018427387904 microseconds is more than about 73,000 years away from 1970.\n"
        "Hint: check the unit: instants are integer microseconds since the epoch, UTC.",
    ),
    "instant_not_parsed": (
        errors.instant_not_parsed("noon"),
        "not an instant\n"
        "Detail: 'noon' is not an ISO 8601 date and time.\n"
        "Hint: write it like 2026-01-31T12:00:00Z or 2026-01-31T12:00:00.123456+01:00.",
    ),
    "duration_not_parsed": (
        errors.duration_not_parsed("5 moons", ["ms", "s"]),
        "not a duration\n"
        "Detail: '5 moons' is not a number followed by a unit; units are: ms, s.\n"
        "Hint: write it like 500ms, 5s, '5 minutes' or 1h.",
    ),
    "time_went_back": (
        errors.time_went_back("input", 5, 3),
        "time cannot go back\n"
        "Detail: input is at 5, asked to go to 3.\n"
        "Hint: advance to an equal or later time; rows before it are late rows.",
    ),
    "unknown_source": (
        errors.unknown_source(7, [0, 1]),
        "unknown source\n"
        "Detail: source 7 is not registered; registered are: 0, 1.\n"
        "Hint: call register_source first.",
    ),
    "unknown_partition": (
        errors.unknown_partition(0, 1, [0, 2]),
        "unknown partition\n"
        "Detail: source 0 has no partition 1; it has: 0, 2.\n"
        "Hint: call add_partition first.",
    ),
    "partition_out_of_range": (
        errors.partition_out_of_range(0, 4, 4),
        "partition is out of range\n"
        "Detail: source 0 has partitions 0 to 3, asked for 4.\n"
        "Hint: register the source with more partitions, or call add_partition.",
    ),
    "partition_exists": (
        errors.partition_exists(0, 0),
        "partition exists already\n"
        "Detail: source 0 has a partition 0.\n"
        "Hint: update it, or remove it before adding it again.",
    ),
    "unknown_core": (
        errors.unknown_core(4, 2),
        "unknown core\n"
        "Detail: there are cores 0 to 1, asked for 4.\n"
        "Hint: make the collector with as many cores as there are lanes.",
    ),
    "unknown_member": (
        errors.unknown_member("c", ["a", "b"]),
        "unknown member of the alignment group\n"
        "Detail: 'c' is not registered; registered are: a, b.\n"
        "Hint: call register first.",
    ),
}


def factories() -> dict[str, object]:
    """The functions of `tidegate.errors` that make an error."""
    return {
        name: function
        for name, function in inspect.getmembers(errors, inspect.isfunction)
        if not name.startswith("_")
        and str(inspect.signature(function).return_annotation).endswith("Error")
    }


def test_every_factory_has_its_text_in_the_table() -> None:
    assert set(factories()) == set(TEXTS)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_user_reads_this_text(name: str) -> None:
    error, text = TEXTS[name]
    assert str(error) == text


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_code_is_the_name_of_the_factory(name: str) -> None:
    assert TEXTS[name][0].code == name.replace("_", "-")


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_an_error_survives_pickling(name: str) -> None:
    error, text = TEXTS[name]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == text
    assert copy.fields == error.fields
    assert copy.retryable == error.retryable
