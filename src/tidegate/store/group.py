"""The reader group: readers that share the segments of one or several streams.

Every committed row is read once by a group, and rows of one key in their order: a segment has one
reader, and a successor is read only when the group has read all it follows to their sealed ends.
Segments are shared evenly among live readers. One that has too many gives up those without
uncommitted rows; those of a reader that was silent for too long are free, and its next commit is an
error.

    group = store.reader_group("billing", ["orders"])
    with group.join("one") as reader:
        while (rows := reader.read()) is not None:
            ...
            reader.commit()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import Connection

from tidegate import errors
from tidegate.eventtime.instants import Instant, micros
from tidegate.marks.cut import Cut
from tidegate.marks.window import Side, TimeWindow, side_of, time_window
from tidegate.store.catalog import marks, readers, streams
from tidegate.store.catalog.readers import GroupState, Position
from tidegate.store.catalog.time_index import first_readable
from tidegate.store.reader import Reader
from tidegate.store.shares import shares

if TYPE_CHECKING:
    from tidegate.store.store import Store

EXPIRY: Final = timedelta(seconds=30)
"""How long a silent reader keeps its segments: longer than the work on one table should take."""

Start = Literal["earliest", "latest"] | Mapping[str, Mapping[str, int]]
Balance = Literal["rows", "time"]


class ReaderGroup:
    """Made by `Store.reader_group`. All it knows lies in the catalog: any process may open it."""

    def __init__(
        self,
        store: Store,
        name: str,
        streams: Sequence[str],
        *,
        start: Start = "earliest",
        balance: Balance = "rows",
        expiry: timedelta = EXPIRY,
    ) -> None:
        if balance not in ("rows", "time"):
            raise errors.wrong_setting("balance", balance, ["rows", "time"])
        if isinstance(start, str) and start not in ("earliest", "latest"):
            raise errors.wrong_setting("start", start, ["earliest", "latest", "cuts by stream"])
        if expiry <= timedelta(0):
            raise errors.not_a_positive_duration("expiry", expiry)
        self.store = store
        self.name = name
        self.streams = tuple(dict.fromkeys(streams))
        self.balance: Balance = balance
        self.expiry = expiry
        if not self.streams:
            raise errors.wrong_setting("streams", [], ["the names of one or more streams"])
        store.database.write(lambda on: self._open(on, start))

    def join(self, reader: str) -> Reader:
        """Be a reader of the group; an earlier one of that name is fenced, its segments stay."""
        expires_at = self.store.clock() + micros(self.expiry)

        def work(on: Connection) -> int:
            self._lock(on)
            return readers.join(on, self.name, reader, expires_at)

        return Reader(self, reader, self.store.database.write(work))

    def checkpoint(self) -> dict[str, Cut]:
        """The place of the group in every stream: all rows before it are read and committed.

        The place in the marks goes with it: it follows from the cut.
        """
        state = self.state()
        return {stream: state.cut(stream) for stream in self.streams if stream in state.stream_ids}

    def restore(self, cuts: Mapping[str, Mapping[str, int]]) -> None:
        """Go back, or ahead, to a checkpoint. All readers are fenced, and have to join again."""

        def work(on: Connection) -> None:
            self._lock(on)
            found = readers.state(on, self.name, self.store.clock())
            self._check_streams(set(cuts), set(found.stream_ids))
            readers.fence(on, self.name, [*found.live, *found.lapsed])
            for stream, cut in cuts.items():
                self._place(on, stream, cut)

        self.store.database.write(work)

    def delete(self) -> bool:
        """Delete the group with all its positions; return whether it was there."""
        return self.store.database.write(lambda on: readers.remove(on, self.name))

    def time_window(self, stream: str) -> TimeWindow:
        """Between which two numbers the group has read a stream: the minimum over its readers.

        A reader without segments does not count; without any reader the group's own place does.
        A lower number is known when all readers have one, an upper one when any has.
        """
        state = self.state()
        self._check_streams({stream}, set(state.stream_ids))
        owners = {
            p.reader for p in state.positions if p.stream == stream and p.reader in state.live
        }
        places = [self.place_of(state, stream, reader) for reader in sorted(map(str, owners))]
        windows = self.windows(state, stream, places or [state.cut(stream)])
        lowers, uppers = [w.lower for w in windows], [w.upper for w in windows]
        return TimeWindow(
            lower=min((n for n in lowers if n is not None), default=None)
            if None not in lowers
            else None,
            upper=min((n for n in uppers if n is not None), default=None),
        )

    # ---- used by its readers ----

    def state(self) -> GroupState:
        """The group as it is in the catalog now."""
        now = self.store.clock()
        return self.store.database.read(lambda on: readers.state(on, self.name, now))

    def place_of(
        self, state: GroupState, stream: str, reader: str, ahead: Mapping[str, int] | None = None
    ) -> Cut:
        """The place of a reader: unassigned segments count as its own.

        `ahead` are places it has read to since its last commit.
        """
        own = {
            p.record.name: p.offset
            for p in state.positions
            if p.stream == stream and (p.reader == reader or p.reader not in state.live)
        }
        return Cut(own | {name: at for name, at in (ahead or {}).items() if name in own})

    def windows(self, state: GroupState, stream: str, places: Sequence[Cut]) -> list[TimeWindow]:
        """The windows at places in a stream; none known where no writer notes time any more."""
        stream_id, lineage = state.stream_ids[stream], state.lineages[stream]

        def work(on: Connection) -> list[TimeWindow]:
            # From the group's own place on: no reader is behind it.
            found = marks.after_cut(on, stream_id, state.cut(stream), lineage)
            seen = marks.schedule(on, stream)
            known = seen is not None and bool(seen.writers)

            def window(place: Cut) -> TimeWindow:
                over = not found or side_of(place, found[-1].cut, lineage) is Side.PAST
                if over and not known:
                    return TimeWindow(None, None)
                return time_window(place, found, lineage)

            return [window(place) for place in places]

        return self.store.database.read(work)

    def settle(
        self, on: Connection, reader: str, now: Instant, busy: Iterable[tuple[str, str]]
    ) -> GroupState:
        """Let successors enter, free what the silent own, and take or give up what is due.

        `busy` are segments of the reader, by stream and name, with rows that are not committed. The
        group's row is locked by the caller.
        """
        state = readers.state(on, self.name, now)
        if state.lapsed:
            readers.fence(on, self.name, state.lapsed)
        # One that enters may be sealed and empty, and give way at once.
        while self._let_enter(on, state):
            state = readers.state(on, self.name, now)
        state = readers.state(on, self.name, now)
        share = shares(state.owned(), len(state.positions)).get(reader, 0)
        mine = [p for p in state.positions if p.reader == reader]
        if len(mine) > share:
            held = set(busy)
            idle = [p for p in mine if (p.stream, p.record.name) not in held]
            # The ones furthest behind go: whoever takes them has nothing else to do.
            self._hand(on, state, self._furthest(idle)[: len(mine) - share], reader, None)
        elif len(mine) < share:
            free = [p for p in state.positions if p.reader is None]
            self._hand(on, state, self._furthest(free)[: share - len(mine)], None, reader)
        return readers.state(on, self.name, now)

    def is_unsettled(self, state: GroupState, reader: str) -> bool:
        """Whether there is something for `settle` to do."""
        if state.lapsed or any(p.at_sealed_end for p in state.positions):
            return True
        owned = state.owned()
        share = shares(owned, len(state.positions)).get(reader, 0)
        free = any(p.reader is None for p in state.positions)
        return owned.get(reader, 0) > share or (owned.get(reader, 0) < share and free)

    # ---- inside ----

    def _let_enter(self, on: Connection, state: GroupState) -> bool:
        """Put successors in the place of what is read to its end; return whether there were any."""
        moved = False
        for stream, stream_id in state.stream_ids.items():
            wanted, here = state.frontier(stream), state.cut(stream).keys()
            if wanted != here:
                readers.depart(on, self.name, stream_id, here - wanted)
                starts = {r.name: r.start for r in streams.segment_records(on, stream_id)}
                fresh = {name: starts[name] for name in sorted(wanted - here)}
                readers.enter(on, self.name, stream_id, fresh)
                moved = True
        return moved

    def _furthest(self, positions: Iterable[Position]) -> list[Position]:
        """Positions, the one furthest behind first."""
        by_time = self.balance == "time"
        return sorted(positions, key=lambda p: -(p.time_behind if by_time else p.rows_behind))

    def _hand(
        self,
        on: Connection,
        state: GroupState,
        positions: Iterable[Position],
        old: str | None,
        new: str | None,
    ) -> None:
        for p in positions:
            number = p.record.segment.id.number
            readers.assign(on, self.name, state.stream_ids[p.stream], number, old=old, new=new)

    def _lock(self, on: Connection) -> None:
        if not readers.lock(on, self.name):
            raise errors.unknown_reader_group(self.name)

    def _open(self, on: Connection, start: Start) -> None:
        ids = {stream: streams.get(on, stream).id for stream in self.streams}
        if not readers.create(on, self.name, self.store.clock()):
            found = readers.state(on, self.name, self.store.clock())
            if set(found.stream_ids) != set(ids):
                raise errors.reader_group_differs(self.name, found.stream_ids, ids)
            return
        for stream, stream_id in ids.items():
            if isinstance(start, str):
                readers.place(on, self.name, stream_id, _symbol(on, stream_id, start))
            else:
                self._check_streams(set(ids), set(start))
                self._place(on, stream, start[stream])

    def _place(self, on: Connection, stream: str, cut: Mapping[str, int]) -> None:
        stream_id = streams.get(on, stream).id
        records = {r.name: r for r in streams.segment_records(on, stream_id)}
        lineage = streams.lineage(on, stream_id)
        whole = Cut(cut).reduced(lineage).completed(lineage)
        for name, offset in whole.items():
            if offset > records[name].end:
                raise errors.cut_ahead_of_stream(stream, name, offset, records[name].end)
        readers.place(on, self.name, stream_id, whole)

    def _check_streams(self, asked: set[str], known: set[str]) -> None:
        if not asked <= known:
            raise errors.unknown_stream(min(asked - known), known)


def _symbol(on: Connection, stream_id: int, start: str) -> Cut:
    """The first cut that can be read, or the end of the log."""
    records = streams.segment_records(on, stream_id)
    if start == "latest":
        return Cut((r.name, r.end) for r in records if r.segment.is_open)
    return first_readable(records, streams.lineage(on, stream_id))
