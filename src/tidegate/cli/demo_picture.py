"""The demo's picture: the watermarks of all partitions while the sites wrote, as PNG and SVG.

Time on the wall goes to the right, event time upwards. Whatever is delivered below the red line is
lost to stock Spark; the blue line is below every line that is still moving.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tidegate import errors
from tidegate.cli.demo_play import Played
from tidegate.cli.demo_rows import DELAY, FIRST, Site
from tidegate.cli.demo_screen import clock
from tidegate.cli.picture import BLUE, GREY, RED, STYLE
from tidegate.eventtime.instants import Instant, micros
from tidegate.eventtime.watermark import UNKNOWN, Known

_SHADES: Final[dict[Site, str]] = {
    "fast": "#7b3294",
    "steady": "#1b9e77",
    "slow": "#e08214",
    "crashing": "#d6409f",
    "quiet": "#5f6b73",
}
_MINUTE: Final = 60_000_000

Told = Sequence[tuple[float, Known]]
"""Moments by the wall clock, and the value that holds from then on."""


def draw_live(played: Played, folder: Path) -> list[Path]:
    """Write `live.png` and `live.svg` into a folder."""
    from matplotlib import rc_context

    files = [folder / "live.png", folder / "live.svg"]
    try:
        with rc_context(STYLE):
            figure = _figure(played)
            for file in files:
                figure.savefig(file)
    except OSError as failure:
        raise errors.output_not_written(str(folder), failure.strerror or str(failure)) from None
    return files


def _figure(played: Played) -> Any:
    from matplotlib.figure import Figure

    live, until = played.live, played.orders.until
    end = live.shown_until(until) - live.began
    lost = played.truth.rows - played.stock.results.rows
    ours = played.truth.rows - played.tidegate.results.rows
    figure = Figure(figsize=(11, 6.4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(
        f"{played.truth.rows:,} orders: stock Spark loses {lost:,}, Tidegate {ours:,}",
        x=0.01,
        ha="left",
        fontsize=14,
        fontweight="bold",
    )
    stock = _steps(live.stock_moments, live.began, end, until)
    axes.fill_between(*stock, FIRST, step="post", color=RED, alpha=0.06, linewidth=0)
    for name, site in played.orders.partitions().items():
        told = [(m.at, m.numbers.get(name, UNKNOWN)) for m in live.moments]
        line = _steps(told, live.began, end, until)
        axes.step(
            *line,
            where="post",
            color=_SHADES[site],
            linewidth=1.6,
            label=f"site: {site}",
            zorder=3,  # above W, which runs along one of them
        )
    minutes = micros(DELAY) // _MINUTE
    axes.step(
        *stock,
        where="post",
        color=RED,
        linewidth=2.6,
        label=f"stock Spark: one watermark, {minutes} minutes behind the maximum",
    )
    ours_line = _steps([(m.at, m.watermark) for m in live.moments], live.began, end, until)
    label = "Tidegate: W, the slowest that is not idle"
    axes.step(*ours_line, where="post", color=BLUE, linewidth=4, alpha=0.8, label=label)
    _tell_what_happened(axes, played)
    axes.set_xlim(0, end)
    axes.set_ylim(FIRST - 3 * _MINUTE, until + 9 * _MINUTE)
    ticks = range(FIRST, until + 1, 15 * _MINUTE)
    axes.set_yticks(list(ticks), [clock(tick) for tick in ticks])
    axes.set_xlabel("seconds since the sites began to write")
    axes.set_ylabel("event time")
    axes.spines[["right", "top"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    return figure


def _tell_what_happened(axes: Any, played: Played) -> None:
    """Say at the upper edge when a site crashed and when a quiet one was left out."""
    live, top = played.live, played.orders.until + 2 * _MINUTE
    named = {site: name for name, site in played.orders.partitions().items()}
    events = [
        (live.crashed, "crash", "crashing"),
        (live.taken_over, "taken over", "crashing"),
        *(
            (moment.at, "idle", "quiet")
            for moment in [m for m in live.moments if named["quiet"] in m.idle][:1]
        ),
    ]
    for place, (at, what, site) in enumerate(sorted(events)):
        x = at - live.began
        axes.axvline(x, color=GREY, linewidth=0.8, linestyle=(0, (2, 3)))
        axes.text(x + 0.1, top + place * 2 * _MINUTE, f"{site}: {what}", color=GREY, fontsize=8)


def _steps(
    told: Told, began: float, end: float, until: Instant
) -> tuple[list[float], list[Instant]]:
    """Seconds and values for a line of steps, from the first value that is known to the end."""
    known = [(at - began, min(value, until)) for at, value in told if value is not UNKNOWN]
    if known:
        known.append((max(end, known[-1][0]), known[-1][1]))
    return [at for at, _ in known], [value for _, value in known]
