"""Figures of a benchmark as inline `<svg>` strings: time against score, critical difference."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bench.report.stats import average_ranks, cliques, nemenyi, wilcoxon_holm
from dicot.judge.report.figures import GREY, PALETTE, svg
from dicot.judge.report.stats import ALPHA


def plain_log(axis: Any) -> None:
    """Put ticks at 1, 2 and 5 of each power of ten as plain numbers: formulas are not typeset here."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def time_scatter(points: Mapping[str, tuple[float, float]], y_label: str, strong: Sequence[str] = ()) -> str:
    """Draw (seconds to fit, score) by name, time on a logarithmic axis; the names in `strong` stand out."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for name, (seconds, score) in points.items():
            axes.semilogx(seconds, score, "o", color=PALETTE[name in strong], markersize=5, zorder=2 + (name in strong))
        plain_log(axes.xaxis)
        axes.margins(0.14, 0.12)
        axes.set(xlabel="seconds to fit, all data sets", ylabel=y_label)
        axes.grid()
        gap, height = 0.04 * np.ptp(axes.get_ylim()), -math.inf
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
        for name, (x, y) in sorted(points.items(), key=lambda point: point[1][1]):
            height = max(y, height + gap)  # names that would touch move up
            look = {"va": "center", "fontsize": 8, "color": PALETTE[1] if name in strong else "black"}
            axes.annotate(name, (x, y), (1.07 * x, height), arrowprops=line, **look).set_in_layout(False)

    return svg(draw, (7.2, 4.6), f"{y_label} against seconds to fit of {len(points)} contenders")


def critical_difference(scores: ArrayLike, names: Sequence[str]) -> str:
    """Draw average ranks of scores (data sets, methods), best at the left, and bars over methods that do not differ."""
    table = np.asarray(scores, dtype=np.float64)
    ranks, n_sets = average_ranks(table), len(table)
    width = nemenyi(len(names), n_sets)[1]
    bars = [(group, PALETTE[0]) for group in cliques(ranks, np.abs(ranks[:, None] - ranks) > width)]
    bars += [(group, PALETTE[1]) for group in cliques(ranks, wilcoxon_holm(table) <= ALPHA)]
    order = np.argsort(ranks, kind="stable")
    left, right = order[: math.ceil(len(order) / 2)], order[math.ceil(len(order) / 2) :][::-1]
    shown = [textwrap.fill(name, 27) for name in names]
    # Heights in inches: of what stands above the axis, of the bars below it, of a label.
    head, band, row_height = 1.05, 0.24 * (len(bars) + 1), 0.3 + 0.15 * max(name.count("\n") for name in shown)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        low, high = math.floor(ranks.min()), max(math.ceil(ranks.max()), math.floor(ranks.min()) + 1)
        axes.set(xlim=(low, high), ylim=(-band - row_height * len(left), head))
        axes.axis("off")
        axes.plot([low, high], [0, 0], color="black", linewidth=1)
        for tick in range(low, high + 1):
            axes.plot([tick, tick], [0, 0.07], color="black", linewidth=1)
            axes.text(tick, 0.12, str(tick), ha="center", va="bottom", fontsize=8)
        for side, at, align, gap in ((left, low, "right", -4), (right, high, "left", 4)):
            for row, i in enumerate(side):
                y = -band - row_height * (row + 0.5)
                axes.plot([ranks[i], ranks[i], at], [0, y, y], color=GREY, linewidth=0.8, clip_on=False)
                words = {"ha": align, "va": "center", "textcoords": "offset points"}
                axes.annotate(f"{ranks[i]:.2f}", (at, y), xytext=(gap, 0), **words)
                axes.annotate(shown[i], (at, y), xytext=(8 * gap, 0), **words)
        for row, (group, colour) in enumerate(bars, start=1):
            ends, look = [min(ranks[list(group)]), max(ranks[list(group)])], {"color": colour, "alpha": 0.9}
            axes.plot(ends, [0.06 - 0.24 * row] * 2, linewidth=3.5, solid_capstyle="round", **look)
        axes.plot([low, low + min(width, high - low)], [0.48, 0.48], color=PALETTE[0], linewidth=2, marker="|")
        axes.text(low, 0.58, f"Nemenyi, critical difference {width:.2f}", color=PALETTE[0], va="bottom")
        axes.text(low, 0.82, "Wilcoxon, Holm's correction", color=PALETTE[1], va="bottom")

    size = (7.2, band + row_height * len(left) + head)
    return svg(draw, size, f"Critical difference of {len(names)} methods over {n_sets} data sets")
