"""Bars of scores and of wins, and a confusion matrix. Figures are inline `<svg>` strings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dicot.errors import InputError
from dicot.report.drawing import GREY, PALETTE, svg

MAX_NUMBERED = 15


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


def win_tie_loss(counts: Mapping[str, tuple[int, int, int]], baseline: str) -> str:
    """name -> on how many data sets `baseline` is better, equal and worse."""
    if not counts or any(sum(three) == 0 for three in counts.values()):
        raise InputError(f"Wins, ties and losses need a data set for every contender; got {dict(counts)}.")
    looks = ((PALETTE[0], "white"), ("#d8dde3", "black"), (PALETTE[4], "black"))
    words = (f"{baseline} better", "equal", f"{baseline} worse")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for row, three in enumerate(counts.values()):
            start = 0.0
            for count, (colour, ink), word in zip(three, looks, words, strict=True):
                share = 100 * count / sum(three)
                axes.barh(row, share, left=start, color=colour, height=0.7, label=word if row == 0 else None)
                if share >= 4:
                    axes.text(start + share / 2, row, str(count), ha="center", va="center", color=ink, fontsize=8)
                start += share
        axes.axvline(50, color=GREY, linewidth=0.8, linestyle="--")
        axes.set_yticks(range(len(counts)), list(counts))
        axes.set(xlim=(0, 100), ylim=(len(counts) - 0.5, -0.6), xlabel="share of the data sets, %")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8)

    return svg(draw, (7.2, 1.2 + 0.27 * len(counts)), f"Data sets on which {baseline} is better, equal or worse")
