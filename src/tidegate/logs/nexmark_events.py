"""The events of Nexmark: an auction site's people, auctions and bids, by event number.

Of every 50 events the first is a new person, the next three are new auctions, and 46 are bids. All
of an event follows from the seed and its number, so any range can be made at any time and only the
columns that are asked for are made. Ids begin at 1000; a hot auction, seller or bidder is the first
(for bidders the second) id of each block of 100.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidegate.logs.draws import Draws
from tidegate.planning.facts import Numbers

PERSON, AUCTION, BID = 0, 1, 2
MIX: Final = (1, 3, 46)
ROUND: Final = sum(MIX)
FIRST_ID: Final = 1000
FIRST_CATEGORY: Final = 10
CATEGORIES: Final = 5
BLOCK: Final = 100
IN_FLIGHT: Final = 100
ACTIVE_PEOPLE: Final = 1000
LEAD: Final = 10
"""How many ids past the newest may be named: the row may come before what it speaks of."""

STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Final = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle",
    "Kent", "Cheyenne",
)  # fmt: skip
_FIRST: Final = ("Ada", "Boris", "Clara", "David", "Edith", "Farid", "Grace", "Hugo", "Irene")
_LAST: Final = ("Abel", "Brandt", "Costa", "Dietz", "Evans", "Fischer", "Gray", "Huber", "Jones")
HOT_CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS: Final = 10_000
_POOL: Final = 4096

# Average bytes of a row without `extra`, and with it.
_BARE: Final = {PERSON: 71, AUCTION: 128, BID: 104}
SIZES: Final = {PERSON: 200, AUCTION: 500, BID: 100}

TIME: Final = pa.timestamp("us", tz="UTC")
_TEXT, _WHOLE = pa.string(), pa.int64()

COLUMNS: Final[Mapping[int, Mapping[str, pa.DataType]]] = {
    PERSON: {
        "id": _WHOLE, "name": _TEXT, "emailAddress": _TEXT, "creditCard": _TEXT, "city": _TEXT,
        "state": _TEXT, "dateTime": TIME, "extra": _TEXT,
    },
    AUCTION: {
        "id": _WHOLE, "itemName": _TEXT, "description": _TEXT, "initialBid": _WHOLE,
        "reserve": _WHOLE, "dateTime": TIME, "expires": TIME, "seller": _WHOLE,
        "category": _WHOLE, "extra": _TEXT,
    },
    BID: {
        "auction": _WHOLE, "bidder": _WHOLE, "price": _WHOLE, "channel": _TEXT, "url": _TEXT,
        "dateTime": TIME, "extra": _TEXT,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Hot:
    """A hot id is named with probability 1 - 1 / ratio; 1: never."""

    auctions: int = 2
    sellers: int = 4
    bidders: int = 4


@dataclass(frozen=True)
class Events:
    """Columns of events; `auction_time` is how many microseconds 100 open auctions last."""

    draws: Draws
    hot: Hot
    auction_time: int

    def column(self, kind: int, name: str, events: Numbers, times: Numbers) -> pa.Array:
        """One column of events that are all of one kind."""
        if name == "dateTime":
            return pa.array(times).cast(TIME)
        if name == "extra":
            return _texts("extra", kind, self.draws.seed).take(self._pick(events, 40, _POOL))
        made: Callable[..., Any] = _MADE[kind, name]
        found = made(self, events, times)
        return pa.array(found) if isinstance(found, np.ndarray) else found

    # ---- fields ----

    def person_id(self, events: Numbers, times: Numbers) -> Numbers:
        """The person of its round."""
        return FIRST_ID + last_person(events)

    def person_name(self, events: Numbers, times: Numbers) -> pa.Array:
        """A first and a last name."""
        names = pa.array([f"{first} {last}" for first in _FIRST for last in _LAST])
        return names.take(self._pick(events, 1, len(names)))

    def email(self, events: Numbers, times: Numbers) -> pa.Array:
        """From a pool of addresses."""
        return _texts("email", PERSON, self.draws.seed).take(self._pick(events, 2, _POOL))

    def credit_card(self, events: Numbers, times: Numbers) -> pa.Array:
        """Four groups of four digits, from a pool."""
        return _texts("card", PERSON, self.draws.seed).take(self._pick(events, 3, _POOL))

    def city(self, events: Numbers, times: Numbers) -> pa.Array:
        """One of ten."""
        return pa.array(CITIES).take(self._pick(events, 4, len(CITIES)))

    def state(self, events: Numbers, times: Numbers) -> pa.Array:
        """One of six."""
        return pa.array(STATES).take(self._pick(events, 5, len(STATES)))

    def auction_id(self, events: Numbers, times: Numbers) -> Numbers:
        """Three to a round."""
        return FIRST_ID + last_auction(events)

    def item_name(self, events: Numbers, times: Numbers) -> pa.Array:
        """A short text."""
        return _texts("item", AUCTION, self.draws.seed).take(self._pick(events, 10, _POOL))

    def description(self, events: Numbers, times: Numbers) -> pa.Array:
        """A longer text."""
        return _texts("description", AUCTION, self.draws.seed).take(self._pick(events, 11, _POOL))

    def initial_bid(self, events: Numbers, times: Numbers) -> Numbers:
        """A price."""
        return self._price(events, 12)

    def reserve(self, events: Numbers, times: Numbers) -> Numbers:
        """The initial bid and another price."""
        return self._price(events, 12) + self._price(events, 13)

    def expires(self, events: Numbers, times: Numbers) -> pa.Array:
        """Between a millisecond and twice the time in which 100 auctions are opened, later."""
        span = max(2 * self.auction_time, 1)
        length = (self.draws.unit(events, 14) * span).astype(np.int64)
        return pa.array(times + 1000 + length).cast(TIME)

    def seller(self, events: Numbers, times: Numbers) -> Numbers:
        """The hot one, or any active person."""
        hot = last_person(events) // BLOCK * BLOCK
        chosen = self.draws.below(events, 15, self.hot.sellers) > 0
        return FIRST_ID + np.where(chosen, hot, self._any_person(events, 16))

    def category(self, events: Numbers, times: Numbers) -> Numbers:
        """10 to 14."""
        return FIRST_CATEGORY + self.draws.below(events, 17, CATEGORIES)

    def bid_auction(self, events: Numbers, times: Numbers) -> Numbers:
        """The hot one, or any that is open."""
        last = last_auction(events)
        first = np.maximum(last - IN_FLIGHT, 0)
        any_open = first + self.draws.below(events, 21, last - first + 1 + LEAD)
        chosen = self.draws.below(events, 20, self.hot.auctions) > 0
        return FIRST_ID + np.where(chosen, last // BLOCK * BLOCK, any_open)

    def bidder(self, events: Numbers, times: Numbers) -> Numbers:
        """The hot one, or any active person: an id that a person has, shifted by nothing."""
        hot = last_person(events) // BLOCK * BLOCK + 1
        chosen = self.draws.below(events, 22, self.hot.bidders) > 0
        return FIRST_ID + np.where(chosen, hot, self._any_person(events, 23))

    def price(self, events: Numbers, times: Numbers) -> Numbers:
        """From a hundred to a hundred million, each power of ten as likely."""
        return self._price(events, 24)

    def channel(self, events: Numbers, times: Numbers) -> pa.Array:
        """Half of the bids come through four channels."""
        return _channels(self.draws.seed)[0].take(self._channel(events))

    def url(self, events: Numbers, times: Numbers) -> pa.Array:
        """The page of the channel: three folders, and its number in the query."""
        return _channels(self.draws.seed)[1].take(self._channel(events))

    # ---- how they are drawn ----

    def _pick(self, events: Numbers, field: int, count: int) -> pa.Array:
        return pa.array(self.draws.below(events, field, count))

    def _channel(self, events: Numbers) -> pa.Array:
        hot = self.draws.below(events, 25, len(HOT_CHANNELS))
        other = len(HOT_CHANNELS) + self.draws.below(events, 26, _CHANNELS)
        return pa.array(np.where(self.draws.below(events, 27, 2) > 0, hot, other))

    def _price(self, events: Numbers, field: int) -> Numbers:
        found: Numbers = np.rint(100 * 10 ** (6 * self.draws.unit(events, field))).astype(np.int64)
        return found

    def _any_person(self, events: Numbers, field: int) -> Numbers:
        people = last_person(events) + 1
        active = np.minimum(people, ACTIVE_PEOPLE)
        return people - active + self.draws.below(events, field, active + LEAD)


def kind_of(events: Numbers) -> Numbers:
    """PERSON, AUCTION or BID."""
    place = events % ROUND
    found: Numbers = (place >= MIX[0]).astype(np.int64) + (place >= MIX[0] + MIX[1])
    return found


def last_person(events: Numbers) -> Numbers:
    """How many people came before the newest one at this event."""
    return events // ROUND


def last_auction(events: Numbers) -> Numbers:
    """How many auctions were opened before the newest one at this event; -1: none yet."""
    place = np.clip(events % ROUND - MIX[0], -1, MIX[1] - 1)
    found: Numbers = events // ROUND * MIX[1] + place
    return found


_MADE: Final[Mapping[tuple[int, str], Callable[..., Any]]] = {
    (PERSON, "id"): Events.person_id,
    (PERSON, "name"): Events.person_name,
    (PERSON, "emailAddress"): Events.email,
    (PERSON, "creditCard"): Events.credit_card,
    (PERSON, "city"): Events.city,
    (PERSON, "state"): Events.state,
    (AUCTION, "id"): Events.auction_id,
    (AUCTION, "itemName"): Events.item_name,
    (AUCTION, "description"): Events.description,
    (AUCTION, "initialBid"): Events.initial_bid,
    (AUCTION, "reserve"): Events.reserve,
    (AUCTION, "expires"): Events.expires,
    (AUCTION, "seller"): Events.seller,
    (AUCTION, "category"): Events.category,
    (BID, "auction"): Events.bid_auction,
    (BID, "bidder"): Events.bidder,
    (BID, "price"): Events.price,
    (BID, "channel"): Events.channel,
    (BID, "url"): Events.url,
}


@cache
def _texts(what: str, kind: int, seed: int) -> pa.Array:
    """A pool of random texts; taking from a pool is a copy, and a column of it costs little."""
    source = np.random.default_rng([seed & 0xFFFFFFFF, kind, len(what)])
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz     ", dtype=np.uint8)

    def text(low: int, high: int) -> str:
        chosen = source.integers(0, len(letters), int(source.integers(low, high + 1)))
        return letters[chosen].tobytes().decode()

    def one() -> str:
        if what == "email":
            return f"{text(7, 7)}@{text(5, 5)}.com".replace(" ", "x")
        if what == "card":
            return " ".join(f"{n:04d}" for n in source.integers(0, 10_000, 4))
        if what == "item":
            return text(5, 20)
        if what == "description":
            return text(20, 100)
        missing = max(SIZES[kind] - _BARE[kind], 10)
        return text(round(0.8 * missing), round(1.2 * missing))

    return pa.array([one() for _ in range(_POOL)])


@cache
def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    """Names and pages of the channels: the hot ones first."""
    source = np.random.default_rng([seed & 0xFFFFFFFF, 77])
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
    names = [*HOT_CHANNELS, *(f"channel-{n}" for n in range(_CHANNELS))]
    urls = []
    for place in range(len(names)):
        folders = letters[source.integers(0, 26, (3, 5))]
        path = "/".join(row.tobytes().decode() for row in folders)
        number = place - len(HOT_CHANNELS)
        query = f"query=1&channel_id={number}" if number >= 0 else "query=1"
        urls.append(f"https://www.nexmark.com/{path}/item.htm?{query}")
    return pa.array(names), pa.array(urls)
