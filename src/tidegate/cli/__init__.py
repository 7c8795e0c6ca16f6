"""The command `tidegate`: a door, so it may import every other room.

One file per command; `app.py` puts them together. The demo is a play in several files: its rows in
`demo_rows.py`, its writers in `demo_writers.py`, what happens in `demo_play.py`; what a command
shows on the screen is drawn by `chart.py`. The doctor has a file for each thing that it looks at:
`doctor/machine.py`, `doctor/store.py`, `doctor/progress.py`, `doctor/stock.py` and so on.
"""

from tidegate.cli.app import app

__all__ = ["main", "app"]


def main() -> None:
    """Run the command line; it ends the process."""
    app(prog_name="tidegate")
