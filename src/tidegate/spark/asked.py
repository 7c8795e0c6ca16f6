"""Asking at the desk: what the process of a source does instead of planning.

The class is made inside a function, which has it pickled by value: whoever unpickles it need not
import Tidegate, and that is what the desk is for.
"""

from __future__ import annotations

from typing import Any


def asker() -> type[Any]:
    """The class of those who ask: `Asked(address, key, name).ask(method, *arguments)`."""

    class Asked:
        """A planner at the desk of the driver."""

        def __init__(self, address: str, key: bytes, name: str) -> None:
            from multiprocessing.connection import Client

            self.connection = Client(address, authkey=key)
            self.connection.send(name)

        def ask(self, *question: Any) -> Any:
            """What a method of the planner gives; what it fails with is raised here."""
            self.connection.send(question)
            done, answer = self.connection.recv()
            if not done:
                raise answer
            return answer

    return Asked
