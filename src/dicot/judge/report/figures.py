"""Figures as inline `<svg>` strings, drawn by matplotlib: curves, series, points, maps, critical difference."""

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dicot.data.inspection import decimate
from dicot.judge.protocols.base import Floats, Labels
from dicot.judge.report.stats import ALPHA, average_ranks, cliques, nemenyi, wilcoxon_holm

Cases = NDArray[np.floating]  # (N, C, T)

# Okabe and Ito's palette, told apart with all common forms of colour blindness; black stands in for its pale yellow.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Seven more for points so small that no shape can be seen; the palest is dark enough on white.
FURTHER = ("#999999", "#5E3C99", "#A6761D", "#B2DF8A", "#FB9A99", "#8B0000", "#17BECF")
MARKERS = ("o", "^", "s")  # with 7 colours: 21 classes before a pair repeats
GREY = "#666666"

MAX_LEGEND = 20  # classes
LEGEND_WIDTH = 100  # letters side by side
MANY_POINTS = 2500  # from which on a map is a picture inside the figure: as shapes they would take megabytes
PICTURE_DPI = 130  # sharp enough for panels of this size, and a dozen of them stay below half a megabyte
MAX_NUMBERED = 15  # classes of a confusion matrix with numbers in it
PER_CLASS, MAX_CLASSES, MAX_CHANNELS = 3, 12, 12  # of series that are drawn
SAMPLES = 160  # of a drawn series; a longer one is drawn by the least and the greatest value of each stretch
SERIES = (
    f"Up to {PER_CLASS} training cases of each class, drawn at random; in brackets the number of its cases. Every "
    f"channel has one scale for all classes, the range below its name. Of many classes the {MAX_CLASSES} largest are "
    f"shown, of many channels the first {MAX_CHANNELS}."
)

STYLE = Path(__file__).with_name("report.mplstyle")


def svg(draw: Callable[[Any], None], size: tuple[float, float], label: str) -> str:
    """Draw on a fresh figure and return it as an element that can stand inside a page."""
    import matplotlib
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": f"dicot {label}"}, STYLE), warnings.catch_warnings():
        # The browser's fonts draw the text; what the measuring font lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        plain = {"Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", metadata=plain, transparent=True, dpi=PICTURE_DPI)
    text = buffer.getvalue()
    # Ids that count (axes_1) would repeat in a page; others are hashes of places, which processors round differently.
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text[text.index("<svg") :].strip())
    for number, name in enumerate(dict.fromkeys(re.findall(r' id="([a-z][0-9a-f]{10})"', text))):
        text = text.replace(name, re.sub(r"\W+", "-", f"{label} {number}"))
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label, quote=True)}"', 1)


def plain_log(axis: Any) -> None:
    """Put ticks at 1, 2 and 5 of each power of ten as plain numbers: formulas are not typeset here."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def legend_text(label: object) -> str:
    """Return the label so that a legend shows it, whatever it begins with."""
    text = _cut(str(label), LEGEND_WIDTH - 4)
    return f" {text}" if text.startswith("_") else text  # matplotlib hides names with a leading underscore


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def loss_curve(losses: Sequence[float], rates: Sequence[float]) -> str:
    """Draw the training loss over steps, and beneath it the learning rate."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
        for axes, values, name, colour in zip(
            panels, (losses, rates), ("loss", "learning rate"), PALETTE, strict=False
        ):
            marker = "o" if len(values) == 1 else None
            axes.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=1, marker=marker)
            axes.set_ylabel(name)
        axes.set(xlabel="step", ylim=(0, None))
        figure.align_ylabels()

    return svg(draw, (7.2, 4.0), f"Training loss and learning rate over {len(losses)} steps")


def confusion(matrix: ArrayLike, labels: Sequence[object]) -> str:
    """Draw counts of true class (rows) against predicted class (columns), shaded by the share of the row."""
    counts, k = np.asarray(matrix), len(labels)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        mesh = axes.pcolormesh(share, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
        figure.colorbar(mesh, ax=axes, label="share of the true class", shrink=0.7)
        names = [str(v) for v in labels]
        long = max(map(len, names)) > 3
        axes.set_xticks(np.arange(k) + 0.5, names, rotation=45 if long else 0, ha="right" if long else "center")
        axes.set_yticks(np.arange(k) + 0.5, names)
        axes.tick_params(length=0, labelsize=9 if k <= 20 else 6)
        axes.set(xlabel="predicted", ylabel="true", aspect="equal")
        axes.invert_yaxis()
        axes.spines[:].set_visible(False)
        for (row, column), count in np.ndenumerate(counts) if k <= MAX_NUMBERED else ():
            colour = "white" if share[row, column] > 0.5 else "black"
            axes.text(column + 0.5, row + 0.5, str(count), ha="center", va="center", color=colour, fontsize=8)

    side = min(6.6, 2.8 + 0.35 * k)
    return svg(draw, (side + 0.6, 0.88 * side), f"Confusion matrix of {k} classes")


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


def class_series(x: Cases, labels: Labels, channels: Sequence[str], classes: Labels) -> str:
    """Draw a few cases of each class over one another, a strip for each channel, with one scale per channel.

    `SERIES` says what is left out; `classes` gives the colours.
    """
    names, counts = np.unique(labels, return_counts=True)
    largest = sorted(np.argsort(-counts, kind="stable")[:MAX_CLASSES].tolist())
    rng = np.random.default_rng(0)
    chosen = [rng.choice(np.flatnonzero(labels == names[i]), min(PER_CLASS, counts[i]), replace=False) for i in largest]
    cases = [x[rows, :MAX_CHANNELS].astype(np.float64) for rows in chosen]
    low, high = np.concatenate(cases).min(axis=(0, 2)), np.concatenate(cases).max(axis=(0, 2))
    span, strips = np.where(high > low, high - low, 1.0), -np.arange(len(low))
    ticks = [f"{_cut(c, 24)}\n{a:.3g} to {b:.3g}" for c, a, b in zip(channels, low, high, strict=False)]
    across = min(3, len(largest))
    rows = -(-len(largest) // across)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, across, squeeze=False)
        for axes in grid.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, labelsize=7)
        for axes in grid[:, 0]:
            axes.set_yticks(strips + 0.4, ticks)
        for axes, i, own in zip(grid.flat, largest, cases, strict=False):
            axes.set_title(f"{_cut(str(names[i]), 17)} ({counts[i]})")
            colour = PALETTE[np.flatnonzero(classes == names[i])[0] % len(PALETTE)]
            for case in own:
                line = decimate((case - low[:, None]) / span[:, None], SAMPLES) * 0.85 + strips[:, None]
                axes.plot(line.T, color=colour, linewidth=0.8, alpha=0.7)

    size = (7.2, rows * (0.5 + max(0.8, 0.35 * len(low))))
    return svg(draw, size, f"Some series of {len(largest)} classes")


def map_panels(
    panels: Mapping[str, tuple[Floats, Labels]], classes: Labels | None = None, ringed: Floats | None = None
) -> str:
    """Draw maps (points (N, 2), labels (N,)) by name side by side, with the same colours for the same classes.

    Points (N, 2) in `ringed` have a ring around them.
    """
    every = np.unique(np.concatenate([labels for _, labels in panels.values()])) if classes is None else classes
    across, few = min(3, len(panels)), max(len(labels) for _, labels in panels.values()) < MANY_POINTS
    rows = -(-len(panels) // across)
    size = 2.0 if not few else 7.0 if across > 1 else 16.0

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, across, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.axis("off")
        for axes, (name, (points, labels)) in zip(grid.flat, panels.items(), strict=False):
            axes.set(xticks=[], yticks=[], title=name)  # the axes of such a map mean nothing
            axes.spines[:].set_visible(True)
            colours = PALETTE if len(points) < MANY_POINTS else (*PALETTE, *FURTHER)
            for i, one in enumerate(every):
                look: Any = {"color": colours[i % len(colours)], "marker": MARKERS[i // len(colours) % len(MARKERS)]}
                look |= {"alpha": 0.75, "linewidths": 0, "rasterized": len(points) >= MANY_POINTS}
                axes.scatter(*points[labels == one].T, s=size, label=legend_text(one), **look)
        if ringed is not None:
            axes.scatter(*ringed.T, s=2.5 * size, facecolors="none", edgecolors="black", linewidths=0.6)
        if len(every) <= MAX_LEGEND:
            handles, names = grid.flat[0].get_legend_handles_labels()
            ncols = max(1, min(10, LEGEND_WIDTH // (4 + max(map(len, names)))))
            look = {"frameon": False, "fontsize": 8, "markerscale": 2 if few else 4}
            figure.legend(handles, names, loc="outside lower center", ncols=ncols, **look)

    height = 2.4 if across > 1 else 4.8
    return svg(draw, (7.2, 0.6 + height * rows), f"Maps of {', '.join(panels)}")


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
