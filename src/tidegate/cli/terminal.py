"""The terminal: where commands print.

Colours only where somebody can see them: a file or a pipe gets plain text, and so does who asks for
it by `--no-color` or by the variable NO_COLOR.
"""

from __future__ import annotations

import os

from rich.console import Console


def open_console(*, color: bool = True, stderr: bool = False) -> Console:
    """A console on what is stdout or stderr at this moment."""
    plain = not color or bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, color_system=None if plain else "auto", highlight=False)
