"""Questions about transactions: what is open, what it holds, how it ended.

A transaction's row is locked by whoever changes it, after the row of its writer. Its end is written
in the transaction that makes its rows visible, or that makes sure they never will be; so whoever
asks again, after a lost answer or a crash, finds out which it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from tidegate.eventtime.instants import Instant
from tidegate.store.catalog import intents, writers
from tidegate.store.catalog.chunks import Piece
from tidegate.store.catalog.schema import segments, transaction_chunks, transactions
from tidegate.store.catalog.writers import WriterRow

OPEN: Final = "open"
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
TIMED_OUT: Final = "timed out"


@dataclass(frozen=True)
class TransactionRow:
    """A transaction as the catalog has it."""

    id: str
    stream_id: int
    writer: str | None
    token: int | None
    status: str
    expires_at: Instant
    result: Mapping[str, Any]


def begin(
    on: Connection,
    transaction: str,
    stream_id: int,
    writer: WriterRow | None,
    now: Instant,
    expires_at: Instant,
) -> None:
    """Open a transaction; opening the same again, after a lost answer, changes nothing."""
    if look(on, transaction) is not None:
        return
    on.execute(
        insert(transactions).values(
            id=transaction,
            stream_id=stream_id,
            writer=None if writer is None else writer.name,
            token=None if writer is None else writer.token,
            status=OPEN,
            begun_at=now,
            expires_at=expires_at,
            ended_at=None,
            result="",
        )
    )
    if writer is not None:
        writers.put(on, writer, writer.notes.begin(transaction))


def look(on: Connection, transaction: str) -> TransactionRow | None:
    """A transaction's row, locked."""
    row = on.execute(
        select(transactions).where(transactions.c.id == transaction).with_for_update()
    ).one_or_none()
    return None if row is None else _row(row)


def open_ones(
    on: Connection,
    *,
    stream_id: int | None = None,
    writer: str | None = None,
    expired_at: Instant | None = None,
) -> list[TransactionRow]:
    """The open transactions, of a stream and writer, or those whose time is over."""
    asked = select(transactions).where(transactions.c.status == OPEN).order_by(transactions.c.id)
    if stream_id is not None:
        asked = asked.where(transactions.c.stream_id == stream_id)
    if writer is not None:
        asked = asked.where(transactions.c.writer == writer)
    if expired_at is not None:
        asked = asked.where(transactions.c.expires_at <= expired_at)
    return [_row(row) for row in on.execute(asked)]


def end(
    on: Connection,
    transaction: str,
    status: str,
    now: Instant,
    result: Mapping[str, Any] | None = None,
) -> bool:
    """Close an open transaction; return whether it was this call that did."""
    moved = on.execute(
        update(transactions)
        .where(transactions.c.id == transaction, transactions.c.status == OPEN)
        .values(status=status, ended_at=now, result=json.dumps(result or {}))
    )
    return moved.rowcount == 1


def abort(
    on: Connection,
    found: TransactionRow,
    writer: WriterRow | None,
    status: str,
    now: Instant,
) -> tuple[WriterRow | None, list[str]]:
    """Make sure that a transaction's rows never appear; return the files nobody wants any more.

    The row of its writer, if it has one, is locked by the caller.
    """
    if not end(on, found.id, status, now):
        return writer, []
    paths = [piece.path for piece in pieces(on, found.id)]
    on.execute(delete(transaction_chunks).where(transaction_chunks.c.transaction_id == found.id))
    if writer is not None and found.id in writer.notes.open:
        place, lineage = writers.position(on, found.stream_id)
        writer = writers.put(on, writer, writer.notes.abort(found.id, place, lineage))
    return writer, paths


# ---- what it holds ----


def pieces(on: Connection, transaction: str) -> list[Piece]:
    """The files of a transaction, in the order of their rows."""
    rows = on.execute(
        select(transaction_chunks, segments.c.epoch)
        .join(transactions, transactions.c.id == transaction_chunks.c.transaction_id)
        .join(
            segments,
            (segments.c.stream_id == transactions.c.stream_id)
            & (segments.c.number == transaction_chunks.c.segment),
        )
        .where(transaction_chunks.c.transaction_id == transaction)
        .order_by(transaction_chunks.c.id)
    )
    return [
        Piece(
            f"{row.segment}.e{row.epoch}",
            row.path,
            row.rows,
            row.bytes,
            row.min_time,
            row.max_time,
            row.disorder,
        )
        for row in rows
    ]


def add_pieces(on: Connection, transaction: str, added: Sequence[Piece]) -> None:
    """Record files that were written; those that are recorded already stay as they are.

    From now on the transaction keeps them from the sweep, and their announcements go. The
    transaction's row is locked by the caller.
    """
    known = {piece.path for piece in pieces(on, transaction)}
    fresh = [piece for piece in added if piece.path not in known]
    if fresh:
        intents.redeem(on, [piece.path for piece in fresh])
        on.execute(insert(transaction_chunks), [_values(transaction, p) for p in fresh])


def replace_pieces(on: Connection, transaction: str, all_of_them: Sequence[Piece]) -> None:
    """Have a transaction hold these files, in this order, and no others."""
    known = {piece.path for piece in pieces(on, transaction)}
    intents.redeem(on, [piece.path for piece in all_of_them if piece.path not in known])
    on.execute(delete(transaction_chunks).where(transaction_chunks.c.transaction_id == transaction))
    if all_of_them:
        on.execute(insert(transaction_chunks), [_values(transaction, p) for p in all_of_them])


def _values(transaction: str, piece: Piece) -> dict[str, Any]:
    return {
        "transaction_id": transaction,
        "segment": piece.number,
        "rows": piece.rows,
        "bytes": piece.bytes,
        "min_time": piece.min_time,
        "max_time": piece.max_time,
        "disorder": piece.disorder,
        "path": piece.path,
    }


def _row(row: Any) -> TransactionRow:
    return TransactionRow(
        row.id,
        row.stream_id,
        row.writer,
        row.token,
        row.status,
        row.expires_at,
        json.loads(row.result) if row.result else {},
    )
