"""Lines: a loss over steps, a cost over sizes, a score over label counts. Figures are inline `<svg>` strings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dicot.errors import InputError
from dicot.report.drawing import MARKERS, PALETTE, legend_text, plain_log, svg
from dicot.report.placement import spread

LABEL_GAP = 0.042  # of the axis' height between two labels


def loss_curve(losses: Sequence[float], rates: Sequence[float]) -> str:
    """The training loss over steps, and beneath it the learning rate."""
    if len(losses) == 0 or len(losses) != len(rates):
        raise InputError(f"A loss curve needs one rate per loss and at least one; got {len(losses)} and {len(rates)}.")

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
        steps = np.arange(1, len(losses) + 1)
        top.plot(steps, losses, color=PALETTE[0], linewidth=1, marker="o" if len(losses) == 1 else None)
        top.set_ylabel("loss")
        bottom.plot(steps, rates, color=PALETTE[1], linewidth=1, marker="o" if len(rates) == 1 else None)
        bottom.set_ylabel("learning rate")
        bottom.set_xlabel("step")
        bottom.set_ylim(bottom=0)
        figure.align_ylabels()

    return svg(draw, (7.2, 4.0), f"Training loss and learning rate over {len(losses)} steps")


def power_curves(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_label: str, y_label: str) -> str:
    """Lines (x, y) by name on logarithmic axes, where a power law is straight."""
    for name, (x, y) in curves.items():
        if len(x) != len(y) or len(x) == 0 or min(*x, *y) <= 0:
            raise InputError(f"A curve needs as many x as y, all above 0; {name!r} has {len(x)} and {len(y)}.")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for i, (name, (x, y)) in enumerate(curves.items()):
            style = {"color": PALETTE[i % len(PALETTE)], "marker": MARKERS[i % len(MARKERS)], "markersize": 4}
            axes.loglog(x, y, linewidth=1.2, label=legend_text(name), **style)
        ticks = sorted({value for x, _ in curves.values() for value in x})
        axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
        axes.minorticks_off()
        plain_log(axes.yaxis)
        axes.set(xlabel=x_label, ylabel=y_label)
        if len(curves) > 1:
            axes.legend(frameon=False)

    return svg(draw, (5.4, 3.4), f"{y_label} against {x_label}: {', '.join(curves)}")


def reference_curves(curves: Mapping[str, Sequence[float]], ticks: Sequence[str], x_label: str, y_label: str) -> str:
    """name -> one value per tick, NaN where there is none; each line is named at its right end."""
    if not curves or not ticks or any(len(values) != len(ticks) for values in curves.values()):
        raise InputError(f"Each line needs {len(ticks)} values, and there must be one line and one tick.")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        drawn = []
        for i, (name, values) in enumerate(curves.items()):
            colour = PALETTE[i % len(PALETTE)]
            marker = MARKERS[i // len(PALETTE) % len(MARKERS)]
            style = ("-", "--", ":")[i // len(PALETTE) % 3]
            axes.plot(range(len(ticks)), values, style, color=colour, marker=marker, markersize=4, linewidth=1.2)
            ends = [(x, y) for x, y in enumerate(values) if y == y]  # NaN is not equal to itself
            drawn += [(ends[-1], name, colour)] if ends else []
        axes.set_xticks(range(len(ticks)), list(ticks))
        axes.set(xlabel=x_label, ylabel=y_label, xlim=(-0.15, len(ticks) - 0.6))
        axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
        low, high = axes.get_ylim()
        heights = spread([y for (_, y), _, _ in drawn], LABEL_GAP * (high - low))
        for ((x, y), name, colour), height in zip(drawn, heights, strict=True):
            axes.plot([x, len(ticks) - 0.62], [y, height], color=colour, linewidth=0.5, alpha=0.6, clip_on=False)
            axes.text(len(ticks) - 0.6, height, name, color=colour, va="center", fontsize=8)
        axes.set_ylim(min(low, *heights), max(high, *heights))

    return svg(draw, (7.2, max(3.6, 0.21 * len(curves) + 1.2)), f"{y_label} over {x_label} of {len(curves)} contenders")
