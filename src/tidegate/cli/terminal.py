"""The terminal: where commands print.

Colours only where somebody can see them: a file or a pipe gets plain text, and so does who asks for
it by `--no-color` or by the variable NO_COLOR.
"""

from __future__ import annotations

import os

from rich.console import Console
from rich.text import Text

IN_ASCII = str.maketrans("━·█│└─", "=.#|+-")
"""For terminals without Unicode."""


def open_console(*, color: bool = True, stderr: bool = False) -> Console:
    """A console on what is stdout or stderr at this moment."""
    plain = not color or bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, color_system=None if plain else "auto", highlight=False)


def spelled_for(console: Console, text: Text) -> Text:
    """The text in characters that the terminal has."""
    if console.options.ascii_only:
        text.plain = text.plain.translate(IN_ASCII)
    return text
