"""`tidegate controller`: a mark controller as a process of its own.

It shares the streams of a store with all others that run, and gives its share back when it is asked
to stop.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from datetime import timedelta
from typing import Annotated

import typer

from tidegate.cli.terminal import open_console
from tidegate.eventtime.instants import parse_duration
from tidegate.store import Store
from tidegate.store.controller import INTERVAL, MarkController


def controller(
    address: Annotated[str, typer.Argument(help="The store: a folder, or a catalog URL.")],
    data: Annotated[
        str | None, typer.Option(help="Where the data lies, for a catalog URL.")
    ] = None,
    interval: Annotated[
        str, typer.Option(help="Between two cycles, such as 500ms or 1s.")
    ] = f"{INTERVAL.total_seconds():g}s",
) -> None:
    """Run the mark cycles, scaling and upkeep of a store's streams until told to stop."""
    pause: timedelta = parse_duration(interval)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    console = open_console()
    with Store.open(address, data=data, embedded_marks=False) as store:
        running = MarkController(store, f"{socket.gethostname()}:{os.getpid()}", interval=pause)
        console.print(f"controller {running.owner} runs every {interval}")
        running.run(stop)
    console.print("controller stopped, its leases are given back")
