"""Figures as inline `<svg>` strings, the same bytes for the same input. Needs the extra `report`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dicot.errors import InputError
from dicot.report.drawing import GREY, MARKERS, PALETTE, legend_text, plain_log, svg

MAX_LEGEND = 20
MAX_NUMBERED = 15


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


def embedding_map(points: ArrayLike, labels: ArrayLike, title: str) -> str:
    """Two-dimensional points, coloured and shaped by class; a legend up to 20 classes."""
    xy, y = np.asarray(points, dtype=np.float64), np.asarray(labels)
    if xy.ndim != 2 or xy.shape[1] != 2 or len(xy) == 0 or y.shape != (len(xy),):
        raise InputError(f"A map needs points (N, 2) and labels (N,); got {xy.shape} and {y.shape}.")
    classes = np.unique(y)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for i, c in enumerate(classes):
            axes.scatter(
                *xy[y == c].T,
                s=14 if len(xy) <= 500 else 7,
                color=PALETTE[i % len(PALETTE)],
                marker=MARKERS[i // len(PALETTE) % len(MARKERS)],
                alpha=0.75,
                linewidths=0,
                label=legend_text(c),
            )
        axes.set_title(title, wrap=True)
        axes.set_xticks([])  # the axes of such a map mean nothing
        axes.set_yticks([])
        axes.spines[:].set_visible(True)
        axes.set_aspect("equal", adjustable="datalim")
        if len(classes) <= MAX_LEGEND:
            figure.legend(loc="outside right upper", frameon=False, markerscale=1.5)

    return svg(draw, (7.2, 5.2), f"{title}, {len(classes)} classes")


def confusion(matrix: ArrayLike, labels: Sequence[object]) -> str:
    """Counts of true class (rows) against predicted class (columns), shaded by the share of the row."""
    counts = np.asarray(matrix)
    k = len(labels)
    if k == 0 or counts.shape != (k, k) or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InputError(f"A confusion matrix needs counts of shape ({k}, {k}); got {counts.dtype} {counts.shape}.")
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
        if k <= MAX_NUMBERED:
            for (row, column), count in np.ndenumerate(counts):
                colour = "white" if share[row, column] > 0.5 else "black"
                axes.text(column + 0.5, row + 0.5, str(count), ha="center", va="center", color=colour, fontsize=8)

    side = min(6.6, 2.8 + 0.35 * k)
    return svg(draw, (side + 0.6, 0.88 * side), f"Confusion matrix of {k} classes")


def bars(values: Mapping[str, Sequence[float]], metric: str) -> str:
    """One bar per contender: mean over its seeds, sample standard deviation, each seed as a dot; none = failed."""
    if not values:
        raise InputError("A bar chart needs at least one contender; got none.")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for row, runs in enumerate(values.values()):
            if len(runs) == 0:
                axes.annotate(
                    "failed", (0, row), xytext=(4, 0), textcoords="offset points", va="center", color="#B00020"
                )
                continue
            spread = float(np.std(runs, ddof=1)) if len(runs) > 1 else None
            axes.barh(row, np.mean(runs), xerr=spread, color="#9CC3E0", height=0.62, capsize=3, ecolor=GREY)
            axes.plot(runs, [row] * len(runs), "o", color=PALETTE[0], markersize=3)
        axes.set_yticks(range(len(values)), list(values))
        axes.set_ylim(len(values) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.set_xlabel(metric)

    return svg(draw, (7.2, 1.0 + 0.34 * len(values)), f"{metric} of {len(values)} contenders")


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
