"""The command `tidegate`: a door, so it may import every other room.

One file per command; `app.py` puts them together. What a command shows on the screen is drawn by
`chart.py`, what it draws into files by `picture.py`.
"""

from tidegate.cli.app import app

__all__ = ["main", "app"]


def main() -> None:
    """Run the command line; it ends the process."""
    app(prog_name="tidegate")
