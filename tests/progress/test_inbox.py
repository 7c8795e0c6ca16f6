from __future__ import annotations

from tidegate.eventtime.watermark import IDLE, UNKNOWN
from tidegate.progress import Data, Ending
from tidegate.progress.inbox import Inbox


def test_a_row_is_heard_as_it_came() -> None:
    row = Data("tea", 7)
    assert Inbox(2).take(1, row) == [row]


def test_the_number_of_a_node_is_the_minimum_over_its_inputs() -> None:
    inbox = Inbox(2)
    assert inbox.take(0, 10) == []
    assert inbox.take(1, 4) == [4]
    assert inbox.take(1, 12) == [10]


def test_a_number_that_moves_nothing_is_not_heard() -> None:
    inbox = Inbox(1)
    assert inbox.take(0, 10) == [10]
    assert inbox.take(0, 10) == []
    assert inbox.take(0, 3) == []


def test_an_idle_input_is_not_waited_for() -> None:
    inbox = Inbox(2)
    assert inbox.take(0, 10) == []
    assert inbox.take(1, IDLE) == [10]
    assert inbox.take(0, 20) == [20]


def test_when_all_inputs_are_idle_the_maximum_stands_and_the_node_is_idle() -> None:
    inbox = Inbox(2)
    inbox.take(0, 10)
    inbox.take(1, 4)
    assert inbox.take(0, IDLE) == []
    assert inbox.take(1, IDLE) == [10, IDLE]
    assert inbox.take(1, IDLE) == []


def test_a_returning_input_wakes_the_node_and_holds_it_without_turning_it_back() -> None:
    inbox = Inbox(2)
    inbox.take(0, 10)
    inbox.take(0, IDLE)
    inbox.take(1, IDLE)
    assert inbox.take(1, UNKNOWN) == [UNKNOWN]
    assert inbox.take(1, 4) == []
    assert inbox.take(1, 15) == [15]
    assert inbox.take(0, UNKNOWN) == []
    assert inbox.take(1, 30) == []
    assert inbox.take(0, 20) == [20]


def test_a_gracefully_ended_input_is_not_waited_for() -> None:
    inbox = Inbox(2)
    inbox.take(0, 10)
    assert inbox.take(1, Ending.GRACEFUL) == [10]
    assert inbox.take(0, 20) == [20]
    assert inbox.take(0, Ending.GRACEFUL) == [Ending.GRACEFUL]


def test_when_only_idle_inputs_are_left_the_node_is_idle() -> None:
    inbox = Inbox(2)
    inbox.take(0, 10)
    inbox.take(1, 4)
    inbox.take(0, IDLE)
    assert inbox.take(1, Ending.GRACEFUL) == [10, IDLE]


def test_a_quickly_ended_input_keeps_holding_what_it_never_completed() -> None:
    inbox = Inbox(2)
    inbox.take(0, 10)
    inbox.take(1, 4)
    assert inbox.take(1, Ending.QUICK) == []
    assert inbox.take(0, 20) == []
    assert inbox.take(0, Ending.GRACEFUL) == [Ending.QUICK]
