"""Figures as inline `<svg>` strings, drawn by matplotlib: curves, series, points, maps."""

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dicot.data.inspection import decimate
from dicot.judge.protocols.base import Floats, Labels

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
