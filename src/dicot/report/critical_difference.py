"""The critical-difference diagram: average ranks on a line, and bars over methods that do not differ."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dicot.errors import InputError
from dicot.report.drawing import GREY, PALETTE, svg
from dicot.report.ranks import average_ranks, friedman, nemenyi
from dicot.report.significance import ALPHA, cliques, nemenyi_differs, wilcoxon_holm

NEMENYI, WILCOXON = PALETTE[0], PALETTE[1]
BAR, ROW, HEAD = 0.24, 0.30, 1.05  # heights in inches: of a bar, of a label, of what stands above the axis
LINE = 0.15  # of a further line of a label
MAX_WIDTH = 27  # letters of a label before it breaks
GAP, NUMBER = 4, 8  # points from a line to its rank, and how many times that to its name


def critical_difference(accuracy: ArrayLike, names: Sequence[str]) -> str:
    """(data sets, methods) as a diagram with both groupings; ranks are best at the left."""
    table = np.asarray(accuracy, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(names) or len(names) < 2 or len(table) < 2:
        raise InputError(
            f"A critical-difference diagram needs 2 data sets, 2 methods and a name each; got {table.shape} and "
            f"{len(names)} names."
        )
    ranks, n_sets = average_ranks(table), len(table)
    width = nemenyi(len(names), n_sets)[1]
    by_nemenyi = cliques(ranks, nemenyi_differs(ranks, n_sets))
    by_wilcoxon = cliques(ranks, wilcoxon_holm(table) <= ALPHA)
    order = np.argsort(ranks, kind="stable")
    left, right = order[: math.ceil(len(order) / 2)], order[math.ceil(len(order) / 2) :][::-1]
    band = BAR * (len(by_nemenyi) + len(by_wilcoxon) + 1)
    shown = [textwrap.fill(name, MAX_WIDTH) for name in names]
    row_height = ROW + LINE * max(name.count("\n") for name in shown)
    height = band + row_height * len(left) + HEAD

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        low, high = math.floor(ranks.min()), math.ceil(ranks.max())
        high = max(high, low + 1)
        axes.set(xlim=(low, high), ylim=(-band - row_height * len(left), HEAD))
        axes.axis("off")
        axes.plot([low, high], [0, 0], color="black", linewidth=1)
        for tick in range(low, high + 1):
            axes.plot([tick, tick], [0, 0.07], color="black", linewidth=1)
            axes.text(tick, 0.12, str(tick), ha="center", va="bottom", fontsize=8)
        for side, at, align in ((left, low, "right"), (right, high, "left")):
            for row, i in enumerate(side):
                y = -band - row_height * (row + 0.5)
                axes.plot([ranks[i], ranks[i], at], [0, y, y], color=GREY, linewidth=0.8, clip_on=False)
                gap = GAP if align == "left" else -GAP
                words = {"ha": align, "va": "center", "textcoords": "offset points"}
                axes.annotate(f"{ranks[i]:.2f}", (at, y), xytext=(gap, 0), **words)
                axes.annotate(shown[i], (at, y), xytext=(gap * NUMBER, 0), **words)
        _bars(axes, ranks, by_nemenyi, NEMENYI, 1)
        _bars(axes, ranks, by_wilcoxon, WILCOXON, 1 + len(by_nemenyi))
        axes.plot([low, low + min(width, high - low)], [0.48, 0.48], color=NEMENYI, linewidth=2, marker="|")
        axes.text(low, 0.58, f"Nemenyi, critical difference {width:.2f}", color=NEMENYI, va="bottom")
        axes.text(low, 0.82, "Wilcoxon, Holm's correction", color=WILCOXON, va="bottom")

    return svg(draw, (7.2, height), f"Critical difference of {len(names)} methods over {n_sets} data sets")


def _bars(axes: Any, ranks: Any, groups: Sequence[tuple[int, ...]], colour: str, first: int) -> None:
    for row, members in enumerate(groups, start=first):
        ends = [min(ranks[i] for i in members), max(ranks[i] for i in members)]
        axes.plot(ends, [-BAR * row + BAR / 4] * 2, color=colour, linewidth=3.5, solid_capstyle="round", alpha=0.9)


def friedman_text(accuracy: ArrayLike) -> str:
    """What stands below the diagram: whether ranks differ at all, and how the bars are to be read."""
    table = np.asarray(accuracy, dtype=np.float64)
    reading = (
        "A bar joins neighbours in rank of which no two differ: blue by Nemenyi's critical difference, orange by "
        f"Wilcoxon signed-rank tests of all pairs with Holm's correction, both at {100 * ALPHA:g} %."
    )
    if table.shape[1] < 3 or len(table) < 2 or (table == table[:, :1]).all():
        return f"Too few methods or data sets for a Friedman test. {reading}"
    statistic, p = friedman(table)
    verdict = "differ" if p < ALPHA else "do not differ beyond chance, so the bars mean little"
    shown = f"p = {p:.2g}" if p >= 1e-300 else "p < 1e-300"
    return f"Friedman: chi-squared {statistic:.1f}, {shown}: the average ranks {verdict}. {reading}"
