"""Figures that only the paper's exhibits and suites have, drawn as those of any report."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError, MissingDataError
from dicot.judge.report.figures import GREY, MARKERS, PALETTE, legend_text, map_panels, plain_log, svg
from dicot.judge.report.frame import contender_order
from dicot.judge.report.page import Part
from dicot.use.projection import read_maps

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
            style = {"color": PALETTE[i % len(PALETTE)], "marker": MARKERS[i % len(MARKERS)], "markersize": 4}
            axes.loglog(x, y, linewidth=1.2, label=legend_text(name), **style)
            if (end := (ends or {}).get(name)) is not None:
                axes.loglog([x[-1], end], [y[-1]] * 2, ":", color=style["color"], linewidth=1.2)
                axes.loglog([end], [y[-1]], "x", color=style["color"], markersize=8, markeredgewidth=2)
        ticks = sorted({value for x, _ in curves.values() for value in x} | set((ends or {}).values()))
        axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
        axes.minorticks_off()
        plain_log(axes.yaxis)
        axes.set(xlabel=x_label, ylabel=y_label)
        if len(curves) > 1:
            axes.legend(frameon=False)

    return svg(draw, (5.4, 3.4), f"{y_label} against {x_label}: {', '.join(curves)}")


def reference_curves(curves: Mapping[str, Sequence[float]], ticks: Sequence[str], x_label: str, y_label: str) -> str:
    """Draw one line per name with a value per tick (NaN: no point), its name at the right end."""

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


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Move values apart until neighbours are `gap` away from each other, in the same order, about their middle."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups: list[tuple[list[int], float]] = []  # members and the middle of each run of touching labels
    for i in order:
        members, middle = [i], float(values[i])
        while groups and middle - gap * (len(members) - 1) / 2 < groups[-1][1] + gap * (len(groups[-1][0]) + 1) / 2:
            before, _ = groups.pop()
            members = before + members
            middle = sum(values[m] for m in members) / len(members)
        groups.append((members, middle))
    out = [0.0] * len(values)
    for members, middle in groups:
        for i, m in enumerate(members):
            out[m] = middle + gap * (i - (len(members) - 1) / 2)
    return out


def sub_blocks(case: Sequence[float], k: int) -> str:
    """Draw the idea of Di-COT: a case, its k sub-blocks that share half, and which of them each has to pick."""
    length = 2 * len(case) / (k + 1)
    middles = [length * (j + 1) / 2 for j in range(k)]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.9, 1))
        left.plot(np.arange(len(case)) + 0.5, case, color="black", linewidth=1)
        low, gap = min(case) - 0.6, 0.45
        for j, middle in enumerate(middles):
            y, colour = low - gap * j, PALETTE[j % len(PALETTE)]
            ends = [middle - length / 2, middle + length / 2]
            left.plot(ends, [y, y], color=colour, linewidth=6, solid_capstyle="butt")
            left.text(ends[1] + 0.01 * len(case), y, str(j + 1), va="center", color=colour)
            if j:
                arrow = {"arrowstyle": "->", "color": GREY, "linewidth": 0.8}
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

    return svg(draw, (7.2, 3.2), f"A case, {k} overlapping sub-blocks, and the matrix of their similarities")


def drawn_maps(path: Path) -> Part:
    """Draw a file that paper.maps.run_maps wrote: every point of every contender, in the order of the tables."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of maps at {path}. `dicot paper --run` writes one.")
    maps = read_maps(path)
    if not maps.points:
        raise InputError(f"{path} holds no map yet. `dicot paper --run` goes on with it.")
    names = sorted(maps.points, key=contender_order)
    panels = {name: (maps.points[name].astype(np.float64), maps.labels) for name in names}
    trial = f" A trial: every training had {maps.steps} steps." if maps.steps else ""
    alike: dict[str, list[str]] = {}  # how maps came about -> whose did
    for name in names:
        alike.setdefault(maps.titles[name], []).append(name)
    made = "; ".join(f"{', '.join(own)}: {how}" for how, own in alike.items())
    text = f"{made}; seed {maps.seed}.{trial}"
    title = f"Maps of the test part of {maps.data_set}"
    return Part(title, figures={"maps": partial(map_panels, panels)}, text=text)
