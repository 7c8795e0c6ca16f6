"""The demo's picture as files: the watermarks over the batches of the headline.

Drawn with matplotlib, which is the extra `plot` and imported only here. No global state of it is
touched, and the same run gives the same picture.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidegate import errors
from tidegate.eventtime.watermark import UNKNOWN, Known
from tidegate.testing.headline import Headline, OneGlobalWatermark, Planned

_HOUR = 3_600_000_000
_UNKNOWN_AT = 0  # a row of its own, below the first event
RED, BLUE, GREY = "#c0392b", "#0b5394", "#5f6b73"
STYLE: Any = {"font.size": 10, "axes.edgecolor": GREY, "axes.labelcolor": GREY}


def can_draw() -> bool:
    """Whether the extra `plot` is installed."""
    return find_spec("matplotlib") is not None


def clock(instant: int) -> str:
    """An instant of the headline's first day, as hours and minutes.

    >>> clock(10_999_000_000)
    '03:03'
    """
    minutes = instant // 60_000_000
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def first_batches(headline: Headline) -> dict[str, int]:
    """With which batch the delivery of each partition begins."""
    begins: dict[str, int] = {}
    for batch, chunk in enumerate(headline.chunks()):
        begins.setdefault(chunk.partition, batch)
    return begins


def draw_watermarks(
    headline: Headline, planned: Planned, spark: OneGlobalWatermark, folder: Path
) -> list[Path]:
    """Write `watermarks.svg` and `watermarks.png` into a folder, which is made if need be."""
    from matplotlib import rc_context

    # Without dates and random names in it, the same run gives the same bytes.
    dates = {"svg": {"Date": None}, "png": {}}
    files = [folder / f"watermarks.{kind}" for kind in dates]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with rc_context({**STYLE, "svg.hashsalt": "tidegate"}):
            figure = _figure(headline, planned, spark)
            for file, metadata in zip(files, dates.values(), strict=True):
                figure.savefig(file, metadata=metadata)
    except OSError as failure:
        raise errors.output_not_written(str(folder), failure.strerror or str(failure)) from None
    return files


def _figure(headline: Headline, planned: Planned, spark: OneGlobalWatermark) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(
        f"The first partition that is read to its end closes the windows of the other"
        f" {headline.partitions - 1}",
        x=0.01,
        ha="left",
        fontsize=14,
        fontweight="bold",
    )
    _draw_partitions(axes, headline, planned)
    _draw_global(axes, spark)
    _draw_combined(axes, headline, planned)
    axes.set_xlim(0, len(planned.history) + 3)
    axes.set_ylim(-0.22 * _HOUR, 3.42 * _HOUR)
    ticks = [half * _HOUR // 2 for half in range(1, 7)]
    axes.set_yticks([_UNKNOWN_AT, *ticks], ["unknown", *(clock(tick) for tick in ticks)])
    axes.set_xlabel(f"batches delivered, up to {headline.poll} rows each")
    axes.set_ylabel("event time")
    axes.spines[["right"]].set_visible(False)
    return figure


def _draw_partitions(axes: Any, headline: Headline, planned: Planned) -> None:
    """Each partition while it is delivered; its number stands on the upper axis."""
    from matplotlib import colormaps

    shades = colormaps["viridis"]
    begins = first_batches(headline)
    ends = [*list(begins.values())[1:], len(planned.history)]
    upper = axes.secondary_xaxis("top")
    upper.set_xticks(
        [(first + 1 + last) / 2 for first, last in zip(begins.values(), ends, strict=True)],
        list(begins),
        fontsize=8,
    )
    upper.tick_params(length=0)
    upper.set_xlabel("partition that is delivered; its own watermark is the thin line", fontsize=9)
    for slot, name in enumerate(begins):
        numbers = [moment.numbers[int(name)] for moment in planned.history]
        shade = shades(0.15 + 0.7 * slot / len(begins))
        axes.plot(*_points(numbers), color=shade, linewidth=1.3)
        upper.get_xticklabels()[slot].set_color(shade)


def _draw_global(axes: Any, spark: OneGlobalWatermark) -> None:
    steps, values = _points(spark.history)
    axes.plot(steps, values, color=RED, linewidth=2.6)
    axes.fill_between(steps, 0.14 * _HOUR, values, color=RED, alpha=0.06, linewidth=0)
    axes.text(
        30,
        values[-1] + 0.07 * _HOUR,
        f"one global watermark: every window below it is closed, {spark.finish().lost:,} rows lost",
        color=RED,
        fontweight="bold",
    )


def _draw_combined(axes: Any, headline: Headline, planned: Planned) -> None:
    watermarks = [moment.watermark for moment in planned.history]
    steps, values = _points(watermarks)
    axes.plot(steps, values, color=BLUE, linewidth=4, solid_capstyle="butt")
    axes.plot([1, steps[0]], [_UNKNOWN_AT] * 2, color=BLUE, linewidth=4, linestyle=(0, (1, 1)))
    last = headline.partition_names()[-1]
    axes.text(
        30,
        -0.15 * _HOUR,
        f"Tidegate's W, the minimum: unknown until partition {last} has spoken, no row lost",
        color=BLUE,
        fontweight="bold",
    )


def _points(values: list[Known]) -> tuple[list[int], list[int]]:
    """The steps at which a value is known, counted from 1, and the values."""
    known = [(step, value) for step, value in enumerate(values, 1) if value is not UNKNOWN]
    return [step for step, _ in known], [value for _, value in known]
