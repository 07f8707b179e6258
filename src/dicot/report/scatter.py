"""Points: accuracy against training time, ours against the paper's, maps of embeddings; as inline `<svg>` strings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dicot.errors import InputError
from dicot.protocols.base import Floats, Labels
from dicot.report.comparison import signed
from dicot.report.drawing import GREY, MARKERS, PALETTE, legend_text, plain_log, svg
from dicot.report.placement import label_points

PANELS = 4  # side by side
MAX_LEGEND = 20  # classes


def time_scatter(points: Mapping[str, tuple[float, float]], y_label: str, strong: Sequence[str] = ()) -> str:
    """name -> (seconds to fit, score), time on a logarithmic axis; the names in `strong` stand out."""
    if not points or min(seconds for seconds, _ in points.values()) <= 0:
        raise InputError(f"Training times must be above 0 and there must be one; got {dict(points)}.")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        labels = []
        for name, (seconds, score) in points.items():
            colour = PALETTE[1] if name in strong else PALETTE[0]
            axes.plot(seconds, score, "o", color=colour, markersize=5, zorder=3 if name in strong else 2)
            labels.append((seconds, score, name, colour if name in strong else "black"))
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        axes.margins(0.14, 0.12)
        axes.set(xlabel="seconds to fit, all data sets", ylabel=y_label)
        axes.grid(color="#eeeeee", linewidth=0.8)
        axes.set_axisbelow(True)
        label_points(figure, axes, labels)

    return svg(draw, (7.2, 4.6), f"{y_label} against seconds to fit of {len(points)} contenders")


def paper_scatter(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], metric: str) -> str:
    """name -> (the paper's, ours) over data sets, a panel each; on the line both agree."""
    if not pairs or any(len(paper) != len(ours) or not len(ours) for paper, ours in pairs.values()):
        raise InputError("A panel needs one number of ours per number of the paper, and at least one.")
    rows = -(-len(pairs) // PANELS)
    everything = np.concatenate([np.concatenate(both) for both in pairs.values()])
    pad = 0.04 * (everything.max() - everything.min() or 1.0)
    low, high = everything.min() - pad, everything.max() + pad

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, PANELS, squeeze=False, sharex=True, sharey=True)
        for axes in grid.flat[len(pairs) :]:
            axes.axis("off")
        for i, (axes, (name, (paper, ours))) in enumerate(zip(grid.flat, pairs.items(), strict=False)):
            axes.plot([low, high], [low, high], color=GREY, linewidth=0.8)
            axes.plot(paper, ours, "o", color=PALETTE[0], markersize=3, alpha=0.6, markeredgewidth=0)
            gap = float(np.mean(np.subtract(ours, paper)))
            decimals = 3 if high <= 1.5 else 2
            axes.set_title(f"{name}\n{signed(gap, decimals)} over {len(ours)}", fontsize=8)
            axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
            axes.tick_params(labelsize=7)
            if i + PANELS >= len(pairs):
                axes.tick_params(labelbottom=True)
        figure.supxlabel(f"{metric}, the paper's", fontsize=9)
        figure.supylabel(f"{metric}, ours", fontsize=9)

    return svg(draw, (7.2, 0.5 + 2.05 * rows), f"{metric}, ours against the paper's, {len(pairs)} contenders")


def embedding_map(points: ArrayLike, labels: ArrayLike, title: str) -> str:
    """Two-dimensional points, coloured and shaped by class; a legend up to 20 classes."""
    xy, y = np.asarray(points, dtype=np.float64), np.asarray(labels)
    if xy.ndim != 2 or xy.shape[1] != 2 or len(xy) == 0 or y.shape != (len(xy),):
        raise InputError(f"A map needs points (N, 2) and labels (N,); got {xy.shape} and {y.shape}.")
    classes = np.unique(y)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        _by_class(axes, xy, y, classes, size=14 if len(xy) <= 500 else 7)
        axes.set_title(title, wrap=True)
        axes.set_aspect("equal", adjustable="datalim")
        if len(classes) <= MAX_LEGEND:
            figure.legend(loc="outside right upper", frameon=False, markerscale=1.5)

    return svg(draw, (7.2, 5.2), f"{title}, {len(classes)} classes")


def map_panels(panels: Mapping[str, tuple[Floats, Labels]]) -> str:
    """name -> (points (N, 2), labels (N,)): maps side by side with the same colours for the same classes."""
    if not panels:
        raise InputError("Maps need at least one set of points; got none.")
    classes = np.unique(np.concatenate([labels for _, labels in panels.values()]))
    across = min(3, len(panels))
    rows = -(-len(panels) // across)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, across, squeeze=False)
        for axes in grid.flat:
            axes.axis("off")
        for axes, (name, (points, labels)) in zip(grid.flat, panels.items(), strict=False):
            axes.axis("on")
            axes.set_title(name)
            _by_class(axes, points, labels, classes, size=7)
        if len(classes) <= MAX_LEGEND:
            handles, names = grid.flat[0].get_legend_handles_labels()
            figure.legend(
                handles, names, loc="outside lower center", ncols=10, frameon=False, fontsize=8, markerscale=2
            )

    return svg(draw, (7.2, 0.6 + 2.4 * rows), f"Maps of {', '.join(panels)}")


def _by_class(axes: Any, xy: Floats, y: Labels, classes: Labels, size: float) -> None:
    """Points in a frame, coloured and shaped by class; the axes of such a map mean nothing."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    for i, c in enumerate(classes):
        look = {"color": PALETTE[i % len(PALETTE)], "marker": MARKERS[i // len(PALETTE) % len(MARKERS)]}
        axes.scatter(*xy[y == c].T, s=size, alpha=0.75, linewidths=0, label=legend_text(c), **look)
