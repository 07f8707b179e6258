"""How the paper's figures are drawn that no other report has."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from bench.report.figures import plain_log
from dicot.judge.report import figures as plots

LABEL_GAP = 0.042  # of the axis' height between two labels


def power_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    x_label: str,
    y_label: str,
    ends: Mapping[str, float] | None = None,
) -> str:
    """Draw lines (x, y) by name on logarithmic axes, where a power law is straight.

    `ends` gives the x at which a line could not go on: it leads there as dots, and stops at a cross.
    """

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for i, (name, (x, y)) in enumerate(curves.items()):
            colour, marker = (some[i % len(some)] for some in (plots.PALETTE, plots.MARKERS))
            axes.loglog(x, y, linewidth=1.2, color=colour, marker=marker, markersize=4, label=plots.legend_text(name))
            if (end := (ends or {}).get(name)) is not None:
                axes.loglog([x[-1], end], [y[-1]] * 2, ":", color=colour, linewidth=1.2)
                axes.loglog([end], [y[-1]], "x", color=colour, markersize=8, markeredgewidth=2)
        ticks = sorted({value for x, _ in curves.values() for value in x} | set((ends or {}).values()))
        shown = ticks[:: 1 + len(ticks) // 10]
        axes.set_xticks(shown, [f"{value:g}" for value in shown])
        axes.minorticks_off()
        plain_log(axes.yaxis)
        axes.set(xlabel=x_label, ylabel=y_label)
        if len(curves) > 1:
            axes.legend(frameon=False)

    return plots.svg(draw, (5.4, 3.4), f"{y_label} against {x_label}: {', '.join(curves)}")


def reference_curves(curves: Mapping[str, Sequence[float]], ticks: Sequence[str], x_label: str, y_label: str) -> str:
    """Draw one line per name with a value per tick (NaN: no point), its name at the right end."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        drawn = []
        for i, (name, values) in enumerate(curves.items()):
            colour = plots.PALETTE[i % len(plots.PALETTE)]
            marker = plots.MARKERS[i // len(plots.PALETTE) % len(plots.MARKERS)]
            style = ("-", "--", ":")[i // len(plots.PALETTE) % 3]
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

    return plots.svg(
        draw, (7.2, max(3.6, 0.21 * len(curves) + 1.2)), f"{y_label} over {x_label} of {len(curves)} contenders"
    )


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Move values apart until neighbours are `gap` away from each other, in the same order, about their middle."""
    order, steps = np.argsort(values, kind="stable"), gap * np.arange(len(values))
    out = np.empty(len(values))
    out[order] = isotonic_regression(np.asarray(values)[order] - steps) + steps
    return list(out.tolist())


def sub_blocks(case: Sequence[float], k: int) -> str:
    """Draw the idea of Di-COT: a case, its k sub-blocks that share half, and which of them each has to pick."""
    length = 2 * len(case) / (k + 1)
    middles = [length * (j + 1) / 2 for j in range(k)]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.9, 1))
        left.plot(np.arange(len(case)) + 0.5, case, color="black", linewidth=1)
        low, gap = min(case) - 0.6, 0.45
        for j, middle in enumerate(middles):
            y, colour = low - gap * j, plots.PALETTE[j % len(plots.PALETTE)]
            ends = [middle - length / 2, middle + length / 2]
            left.plot(ends, [y, y], color=colour, linewidth=6, solid_capstyle="butt")
            left.text(ends[1] + 0.01 * len(case), y, str(j + 1), va="center", color=colour)
            if j:
                arrow = {"arrowstyle": "->", "color": plots.GREY, "linewidth": 0.8}
                left.annotate("", (middles[j - 1], y + 0.8 * gap), (middle, y + 0.15 * gap), arrowprops=arrow)
        left.set_title(f"a case and its {k} sub-blocks; arrows: the positive ones")
        left.axis("off")
        shade = np.full((k, k), 0.08)
        shade[range(1, k), range(k - 1)] = shade[0, 0] = 0.75  # the first has no predecessor, and picks itself
        right.pcolormesh(shade, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
        for j in range(k):
            right.text(-0.2, j + 0.5, str(j + 1), ha="right", va="center")
            right.text(j + 0.5, -0.15, str(j + 1), ha="center", va="bottom")
        right.invert_yaxis()
        right.set(aspect="equal")
        right.set_title("similarities of sub-blocks:\ndark, what each row has to pick", pad=24)
        right.axis("off")

    return plots.svg(draw, (7.2, 3.2), f"A case, {k} overlapping sub-blocks, and the matrix of their similarities")
