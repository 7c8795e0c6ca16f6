"""A writer's life that can be killed at every step, and what must hold afterwards.

The child appends, notes, commits, and scales; whatever was answered it tells in a file. The parent
looks at what is visible, opens the same id again, repeats from what is durable, and compares.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from tests.store.visible import visible

from tidegate.errors import TidegateError
from tidegate.eventtime.watermark import UNKNOWN
from tidegate.store import Store, Writer
from tidegate.store.catalog import streams, writers
from tidegate.store.steps import listening

START = 1_800_000_000_000_000
ROUNDS = 2
PLAIN = 6
"""Rows that a round appends outside of a transaction; the fourth of them is bad."""
INSIDE = 5
KEYS = 5


def plain_rows() -> list[dict[str, Any]]:
    """All rows outside of transactions; times of round r lie in [100 r, 100 r + 99]."""
    return [
        {"id": None if n % PLAIN == 3 else n % KEYS, "n": n, "at": _at(n // PLAIN, n)}
        for n in range(ROUNDS * PLAIN)
    ]


def inside_rows(round: int) -> list[dict[str, Any]]:
    """The rows of a round's transaction."""
    return [
        {"id": n % KEYS, "n": 1000 * (round + 1) + n, "at": _at(round, n)} for n in range(INSIDE)
    ]


def _at(round: int, n: int) -> str:
    return f"1970-01-01T00:00:00.{100 * round + n % 50:06d}Z"


def live(url: str, data: str, told: str, kill_at: int) -> None:
    """The child: works through all rounds, and is killed before its n-th step."""
    passed = 0
    with open(told, "ab", buffering=0) as file:

        def step(_: str) -> None:
            nonlocal passed
            passed += 1
            if passed == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        with listening(step), Store.open(url, data=data, clock=lambda: START) as store:
            writer = _opened(store)
            rows = plain_rows()
            for round in range(ROUNDS):
                transaction = writer.begin(id=f"t{round}")
                transaction.append(inside_rows(round)[:3])
                writer.append(rows[PLAIN * round : PLAIN * (round + 1)])
                file.write(f"durable {writer.flush()}\n".encode())
                if round == 1:
                    store.scale("orders", ["0.e0"], [("0", "1/4"), ("1/4", "1/2")])
                transaction.append(inside_rows(round)[3:])
                transaction.commit(time=100 * (round + 1))
                file.write(f"committed {round}\n".encode())
                writer.note_time(100 * (round + 1) + 50)
                file.write(f"noted {100 * (round + 1) + 50}\n".encode())
            writer.close()
        file.write(f"steps {passed}\n".encode())


def _opened(store: Store) -> Writer:
    return store.writer(
        "orders", "w", notes_time=True, flush_age=None, flush_rows=3, bad_rows="route"
    )


def recover(store: Store, told: Path) -> None:
    """The parent: nothing that was answered is lost, nothing else is visible, nothing twice."""
    answered = [line.split() for line in told.read_text().splitlines()]
    last = {word: int(number) for word, number in answered}
    before = _numbers(store)
    assert max(before.values(), default=0) <= 1
    _check_note(store, last.get("noted", 0))
    with _opened(store) as writer:
        assert writer.durable >= last.get("durable", 0)
        committed = [round for round in range(ROUNDS) if _committed(writer, round)]
        assert [r for r in committed if r <= last.get("committed", -1)] == list(
            range(last.get("committed", -1) + 1)
        )
        expected = _expected(writer.durable, committed)
        assert before == expected
        assert _bad(store) == _expected_bad(writer.durable)
        rows = plain_rows()
        writer.append(rows, first_row=0)
        writer.flush()
        for round in set(range(ROUNDS)) - set(committed):
            with writer.begin() as transaction:
                transaction.append(inside_rows(round))
    assert _numbers(store) == _expected(len(rows), list(range(ROUNDS)))
    assert _bad(store) == _expected_bad(len(rows))
    _check_order(store)


def _numbers(store: Store) -> Counter[int]:
    return Counter(row["n"] for part in visible(store, "orders").values() for row in part)


def _bad(store: Store) -> int:
    if "orders.errors" not in store.list_streams():
        return 0
    return sum(len(part) for part in visible(store, "orders.errors").values())


def _expected(durable: int, committed: list[int]) -> Counter[int]:
    plain = [row["n"] for row in plain_rows()[:durable] if row["id"] is not None]
    return Counter([*plain, *(row["n"] for round in committed for row in inside_rows(round))])


def _expected_bad(durable: int) -> int:
    return sum(row["id"] is None for row in plain_rows()[:durable])


def _committed(writer: Writer, round: int) -> bool:
    try:
        return writer.transaction(f"t{round}").status == "committed"
    except TidegateError as unknown:
        if unknown.code != "unknown-transaction":
            raise
        return False


def _check_note(store: Store, noted: int) -> None:
    """The writer's note is what was answered at least, and all rows before it lie before it."""

    def work(on: Connection) -> writers.WriterRow | None:
        return writers.look(on, streams.get(on, "orders").id, "w")

    found = store.database.read(work)
    if found is None:
        assert noted == 0
        return
    mark = found.notes.mark
    assert (0 if mark.time is UNKNOWN else mark.time) >= noted
    if mark.time is UNKNOWN:
        return
    lineage = store.database.read(lambda on: streams.lineage(on, streams.get(on, "orders").id))
    passed = lineage.ancestors_of(mark.position)
    behind: set[int] = set()
    for name, part in visible(store, "orders").items():
        end = len(part) if name in passed else mark.position.get(name, 0)
        behind |= {row["n"] for row in part[:end]}
    rounds = mark.time // 100
    promised = _expected(PLAIN * rounds, list(range(rounds)))
    assert set(promised) <= behind


def _check_order(store: Store) -> None:
    found = visible(store, "orders")
    names = sorted(found, key=lambda name: int(name.split("e")[1]))
    rows = [row for name in names for row in found[name]]
    for key in range(KEYS):
        numbers = [row["n"] for row in rows if row["id"] == key and row["n"] < 1000]
        assert numbers == sorted(numbers)
