"""The commands, put together.

An error of Tidegate is its text, in red, on stderr, and the exit code 2. A user never sees a
traceback for a mistake that has a name.
"""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from tidegate.cli.controller import controller
from tidegate.cli.demo import demo
from tidegate.cli.doctor.command import doctor
from tidegate.cli.stream import app as stream
from tidegate.cli.terminal import open_console
from tidegate.cli.version import version
from tidegate.errors import TidegateError


class Commands(TyperGroup):
    """A group of commands that tells errors in their own words."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except TidegateError as error:
            open_console(stderr=True).print(Text(str(error), style="red"), soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=Commands,
    help="Exact event time for Apache Spark: windows close when their data is complete.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(controller)
app.command()(demo)
app.command()(doctor)
app.command()(version)
app.add_typer(stream, name="stream")
