"""`tidegate version`."""

from __future__ import annotations

from importlib.metadata import version as installed

from tidegate.cli.terminal import open_console


def version() -> None:
    """Tell which version this is."""
    open_console().print(f"tidegate {installed('tidegate')}", highlight=False)
