"""Logs: what every source of rows gives to planners and readers, behind one protocol.

It may import the store, the planner and everything below them, and pyarrow with its file systems.
Start reading in `log.py`, which is the protocol; each other file is one log. Executors open a log
again from its description, so this door loads the protocol only.
"""

from tidegate.logs.log import EVENT_TIME, OFFSET, Log, facts_of, open_log

__all__ = ["Log", "facts_of", "open_log", "EVENT_TIME", "OFFSET"]
